# SPDX-License-Identifier: Apache-2.0
"""Judges of a study, and how a study file names them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, NoReturn

from sim2real_eval.common.results import file_digest
from sim2real_eval.judge.protocol import (
    JUDGES,
    Judge,
    JudgeRequest,
    judge_class,
    judge_label,
    load_judge,
)
from sim2real_eval.judge.robot_localization.configuration import FRONT_ENDS
from sim2real_eval.judge.robot_localization.replay_options import Options, corrections, latency_ns
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.frames import TransformFile
from sim_sensors.core.registry import is_in_file
from .entry import Entry

_KEYS = (
    'label', 'judge', 'config', 'navsat_config', 'case', 'filter', 'section', 'correct', 'latency',
    'transforms', 'front_end',
)  # fmt: skip
_COMMON_KEYS = ('label', 'judge', 'config', 'transforms')


@dataclasses.dataclass(frozen=True, eq=False)
class StudyJudge:
    """A judge of a study."""

    label: str  # name in tables and files
    kind: str  # name in `JUDGES`, or class in a file, `my_filter.py:MyFilter`
    setup: Judge

    @property
    def is_fast(self) -> bool:
        """Whether it judges a run within milliseconds."""
        return self.setup.is_fast

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values that identify it."""
        return {
            'label': self.label,
            'judge': self.kind,
            'name': self.setup.name,
            'files': [
                {
                    'name': path.name,
                    'sha256': file_digest(path),
                    'text': path.read_text(encoding='utf-8'),
                }
                for path in self.setup.files
            ],
            **self.setup.settings(),
        }


def read_judges(judges: Entry, folder: Path) -> tuple[StudyJudge, ...]:
    """Read the judges of a study file; paths are relative to `folder`.

    Raises
    ------
    Sim2RealError
        When an entry or file is wrong, a label is given twice, or a judge is not installed.
    """
    result = [_read_judge(entry, folder) for entry in judges.items('judges')]
    judges.refuse_twice([judge.label for judge in result], 'label of several judges')
    return tuple(result)


def _read_judge(entry: Entry, folder: Path) -> StudyJudge:
    if isinstance(entry.value, str):
        is_judge = entry.text() in JUDGES.names() or is_in_file(entry.text())
        fields = {'judge' if is_judge else 'config': entry}
    else:
        fields = entry.fields(_KEYS)
    kind = fields['judge'].text() if 'judge' in fields else 'embedded'
    config = fields['config'].text() if 'config' in fields else None
    if 'label' in fields:
        label = fields['label'].label()
    else:
        label = Entry(entry.where, entry.key, judge_label(kind, config)).label()

    def refuse(name: str, problem: str) -> NoReturn:
        (fields[name] if name in fields else entry.field(name)).refuse(problem)

    with fields.get('judge', entry).looked_up():
        is_node = getattr(judge_class(kind, folder=folder), 'takes_node_options', False)
    if is_node and isinstance(entry.value, str) and 'judge' in fields:
        entry.refuse(f'{kind} needs a config; write {{judge: {kind}, config: ...}}')
    path: str | Path | None = config
    if config is not None and (config.endswith(('.yaml', '.yml')) or len(Path(config).parts) > 1):
        path = folder / config
    request = JudgeRequest(
        judge=kind,
        config=path,
        transforms=_transforms(fields, folder),
        node_options=_node_options(fields, folder) if is_node else {},
        given=tuple(name for name in fields if name not in _COMMON_KEYS),
        refuse=refuse,
        folder=folder,
    )
    with fields.get('config', entry).looked_up():
        setup = load_judge(request)
    if isinstance(setup, JudgeSetup) and config is not None:
        # The folder of the study must not identify the judge, only the contents of its files.
        setup = dataclasses.replace(setup, name=config)
    return StudyJudge(label, kind, setup)


def _transforms(fields: dict[str, Entry], folder: Path) -> TransformFile | None:
    if 'transforms' not in fields:
        return None
    return TransformFile.from_file(folder / fields['transforms'].text())


def _replay_options(fields: dict[str, Entry], folder: Path) -> Options:
    correct = latency = None
    if 'correct' in fields:
        entry = fields['correct']
        names = entry.items('deviations to correct') if entry.value != [] else []
        correct = corrections([name.value for name in names], entry.where, entry.key)
    if 'latency' in fields:
        entry = fields['latency']
        if not isinstance(entry.value, dict):
            entry.refuse_value('a mapping of topics to seconds')
        latency = latency_ns(entry.value, entry.where, entry.key)
    return Options(
        unscented=fields['filter'].text(('ekf', 'ukf')) == 'ukf' if 'filter' in fields else None,
        correct=correct,
        latency_ns=latency or {},
        transforms=_transforms(fields, folder),
        front_end=fields['front_end'].text(FRONT_ENDS) if 'front_end' in fields else None,
        section=fields['section'].text() if 'section' in fields else None,
    )


def _node_options(fields: dict[str, Entry], folder: Path) -> dict[str, Any]:
    files: dict[str, Any] = {
        name: folder / fields[name].text() for name in ('navsat_config', 'case') if name in fields
    }
    return {**files, 'options': _replay_options(fields, folder)}
