# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Write the reference pages that come from declarations: `python docs/write_reference.py`.

Parameters need rclpy, because nodes declare some; `python docs/write_reference.py cli findings`
writes the pages that do not. Some pages are written by hand around generated blocks; see
`writers.blocks`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path

from writers import blocks, command, findings, parameters

FOLDER = Path(__file__).with_name('reference')
_LATE_IN_SEARCH = '---\nsearch:\n  boost: 0.3\n---\n\n'
"""Head of long lists, before which the search finds what explains and tells how."""


def _list(page: Callable[[], str]) -> Callable[[], str]:
    return lambda: _LATE_IN_SEARCH + page()


PAGES: dict[str, Callable[[], str]] = {
    'cli': command.index_page,
    **{f'cli/{verb}': functools.partial(command.verb_page, verb) for verb in command.verbs()},
    'findings': _list(findings.page),
    'parameters': _list(parameters.page),
    **{name: functools.partial(blocks.page, name) for name in blocks.pages()},
}
"""What makes each page, by its name."""

if __name__ == '__main__':
    wanted = sys.argv[1:] or ['']
    for name, page in PAGES.items():
        if name.startswith(tuple(wanted)):
            (FOLDER / f'{name}.md').write_text(page(), encoding='utf-8')
