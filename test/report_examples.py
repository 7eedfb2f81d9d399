# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Drawn studies for reports, also with hostile labels."""

from __future__ import annotations

import dataclasses
from typing import Any

from study_examples import drawn_study

from sim2real_eval.metrics.options import ENDS_EARLY
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.run import RunKey

HOSTILE = (
    '<script>alert(1)</script>', '"><img src=x onerror=alert(2)>', "' onload='alert(3)",
    '</script><script>alert(4)</script>', '</style></svg><b>bold</b>',
    '&lt;i&gt; & &amp; {{ 7 * 7 }} {% raw %}',
    '\u202eLTR-\u0645\u062b\u0627\u0644 javascript:alert(5)', 'a' * 200,
    '$x^{$', r'$\frac$ \input{x} % of _a_', '=cmd() | pipe `code` ]( javascript:alert(6)) ]]>',
    '[red]rich[/red] :smile: \U0001f600',
)  # fmt: skip
"""Labels: each must be read as it stands, and do nothing."""


def renamed(outcome: StudyOutcome, **changes: dict[str, str]) -> StudyOutcome:
    """The study with other labels: old to new, for judge, model, recording, scenario and group."""

    def label(kind: str, old: str) -> str:
        return changes.get(kind, {}).get(old, old)

    runs, back = [], {}
    for run in outcome.runs:
        key = RunKey(
            label('judge', run.key.judge),
            label('recording', run.key.recording),
            label('model', run.key.model),
            run.key.repetition,
        )
        back[key] = run.key
        runs.append(
            dataclasses.replace(
                run,
                key=key,
                scenario=label('scenario', run.scenario),
                group=label('group', run.group),
            )
        )
    return StudyOutcome(outcome.record, tuple(runs), lambda key: outcome.signals(back[key]))


def with_record(outcome: StudyOutcome, **changes: Any) -> StudyOutcome:
    return dataclasses.replace(outcome, record={**outcome.record, **changes})


def small_study(**words: Any) -> StudyOutcome:
    """Return a drawn study with few resamples, for tests that ignore the numbers."""
    return with_record(drawn_study(**words), uncertainty={'resamples': 200})


def hostile_study() -> StudyOutcome:
    """Every label of a study is hostile, and so is every text of its record."""
    study = small_study(
        judges=('one', 'two'), scenarios=('line', 'circle'), runs=3,
        models={f'm{number}': 0.03 * (number + 1) for number in range(4)},
        groups=('g',),
    )  # fmt: skip
    study = renamed(
        study,
        judge={'one': HOSTILE[0], 'two': HOSTILE[7]},
        model={f'm{number}': HOSTILE[number + 1] for number in range(4)},
        recording={f'gline_{n}': f'{HOSTILE[5]} {n}' for n in (1, 2, 3)},
        scenario={'line': HOSTILE[5], 'circle': HOSTILE[6]},
        group={'g': HOSTILE[4]},
    )
    notes = tuple(
        ENDS_EARLY(hostile_text, time=1.0, other=hostile_text) for hostile_text in HOSTILE[:2]
    )
    runs = tuple(dataclasses.replace(run, notes=notes) for run in study.runs[:2])
    study = dataclasses.replace(study, runs=(*runs, *study.runs[2:]))
    return with_record(
        study,
        title=HOSTILE[0],
        description=HOSTILE[3],
        judges=[{'label': label, 'about': HOSTILE[1]} for label in study.judges],
        models={label: {'gps': HOSTILE[2]} for label in study.models},
        recordings=[{'path': HOSTILE[3], 'name': HOSTILE[0]}],
        failures=[
            {'recording': HOSTILE[1], 'judge': HOSTILE[0], 'reason': hostile_text}
            for hostile_text in (HOSTILE[3], *HOSTILE[8:])
        ],
        notes=[{'code': hostile_text, 'text': hostile_text} for hostile_text in HOSTILE],
        versions={HOSTILE[0]: HOSTILE[2]},
    )
