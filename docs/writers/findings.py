# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The page of all findings, from their declarations."""

from __future__ import annotations

import functools
import string
import textwrap
from collections.abc import Iterator

from sim2real_eval.common.findings import FindingKind, declared_kinds

_INTRODUCTION = """\
<!-- Made by `python docs/write_reference.py`; change the declarations instead. -->
# Findings

A *finding* is a message about a recording or a run, with a code. The terminal prints findings
under "Please note", the most severe first. After a study it prints only the decisive ones;
findings.txt of the result has all. JSON output (`--json`, `study.json`, `vepd.json` ...) has the
record:

```json
{"code": "navsat.no_fix", "severity": "decisive", "subject": "navsat_transform", "numbers": {},
 "words": {}, "text": "navsat_transform: got no valid fix, ...", "remedy": "check status ..."}
```

`numbers` maps each name to `{"value": ..., "unit": ...}`. The findings of many runs are merged by
code, subject and words: `runs` then lists group, count and total, and a value that differs is a
pair of the smallest and the largest. `where` names a judge, a scenario or a recording if the
finding does not concern all.

| severity | meaning |
|---|---|
| decisive | Read it before you use the result: it may invalidate the result, or conclude it. |
| assumed | The recording does not contain a value, so one was assumed. |
| routine | Worth knowing; no action is needed. |

A package of your own declares its findings with `decisive`, `assumed` or `routine` of
`sim2real_eval.common.findings`, and makes one by calling the declaration.
"""


def page() -> str:
    """Return the whole page."""
    return _INTRODUCTION + ''.join(_sections())


def _sections() -> Iterator[str]:
    area = ''
    for code, kind in declared_kinds().items():
        if area != code.partition('.')[0]:
            area = code.partition('.')[0]
            yield f'\n## {area}\n'
        yield f'\n### {code}\n\n{_described(kind)}'


def _described(kind: FindingKind) -> str:
    about = [f'*{kind.severity.name.lower()}*: `{_shown(kind.text)}`', kind.meaning]
    about += [f'Remedy: {_shown(kind.remedy)}.'] if kind.remedy else []
    fill = functools.partial(textwrap.fill, width=100, break_on_hyphens=False)
    return '\n\n'.join(map(fill, about)) + '\n'


def _shown(template: str) -> str:
    """Return a template with names and units in place of its fields."""
    text = ''
    for literal, name, form, _ in string.Formatter().parse(template):
        # In place of a format the reader sees the unit.
        text += literal + (f'<{name}>{"".join((form or "").partition(" ")[1:])}' if name else '')
    return text
