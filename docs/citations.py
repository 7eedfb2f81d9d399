# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Makes links of the keys of sources, such as [Groves2013], on all pages of the site."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.utils import get_relative_url

_LIST = 'reference/references'
_SOURCES = Path(__file__).parent / f'{_LIST}.md'
_KEYS = re.findall(r'^- \*\*\[(\w+)\]', _SOURCES.read_text(encoding='utf-8'), re.M)
# Code and links stay as they are, and so does whatever else stands within a tag.
_TEXT = re.compile(
    rf'(?s)<(pre|code|a)\b.*?</\1>|<[^>]*>|\[(?P<key>{"|".join(map(re.escape, _KEYS))})\]'
)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Return a page with its keys as links; in the list of sources they are what is linked to."""
    listed = page.url == f'{_LIST}.html'

    def linked(found: re.Match[str]) -> str:
        key = found['key']
        if key is None:
            return found[0]
        if listed and html[: found.start()].endswith('<strong>'):
            return f'<span id="{key}">[{key}]</span>'
        return f'[<a href="{get_relative_url(f"{_LIST}.html", page.url)}#{key}">{key}</a>]'

    return _TEXT.sub(linked, html)
