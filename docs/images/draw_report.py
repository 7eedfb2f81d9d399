# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Draw report.png: the first screen of the page that the tutorial leads to.

Needs Chromium: python docs/images/draw_report.py result_gps/report.html

The picture carries VEPD and interval of each model, so that a test can compare them with the
commands of the tutorial (test/test_page_commands.py).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'test'))

from browser_examples import browser_binary, running_browser

HERE = Path(__file__).parent


def main() -> None:
    """Write the picture."""
    binary = browser_binary()
    if binary is None:
        raise SystemExit('no chromium on the path')
    page, picture = Path(sys.argv[1]), HERE / 'report.png'
    with running_browser(binary) as browser:
        browser.open(page, width=1080, height=640)
        browser.picture(picture)
    add_numbers(picture, page.with_name('uncertainty.json'))


def add_numbers(picture: Path, uncertainty: Path) -> None:
    """Write VEPD, lower and upper bound of each model of the last ranking into a PNG file."""
    models = json.loads(uncertainty.read_text('utf-8'))[-1]['models']
    numbers = {
        model['model']: [model[key] for key in ('distance', 'low', 'high')] for model in models
    }
    text = PngInfo()
    text.add_text('VEPD', json.dumps(numbers))
    with Image.open(picture) as image:
        image.save(picture, pnginfo=text)


main()
