# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Draw report.png: the first screen of the page that the tutorial leads to.

Needs Chromium: python docs/images/draw_report.py result_gps/report.html
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'test'))

from browser_examples import browser_binary, running_browser

HERE = Path(__file__).parent


def main() -> None:
    """Write the picture."""
    binary = browser_binary()
    if binary is None:
        raise SystemExit('no chromium on the path')
    with running_browser(binary) as browser:
        browser.open(Path(sys.argv[1]), width=1080, height=640)
        browser.picture(HERE / 'report.png')


main()
