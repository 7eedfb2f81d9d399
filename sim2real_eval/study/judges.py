# SPDX-License-Identifier: Apache-2.0
"""Judges in a study file."""

from __future__ import annotations

import dataclasses
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sim2real_eval.common.results import file_digest
from sim2real_eval.judge.robot_localization.replay_options import (
    FRONT_ENDS,
    Options,
    corrections,
    latency_ns,
)
from sim2real_eval.judge.setup import Judge, JudgeSetup
from sim2real_eval.recording.frames import TransformFile
from sim2real_eval.study.entry import Entry

__all__ = ['JUDGE_KINDS', 'StudyJudge', 'read_judges']

_INERTIAL = ('error_state', 'gtsam')
_NODES = ('robot_localization', 'judge_node')
JUDGE_KINDS = ('embedded', *_NODES, *_INERTIAL)

_KEYS = (
    'label', 'judge', 'config', 'navsat_config', 'case', 'filter', 'section', 'correct', 'latency',
    'transforms', 'front_end', 'navsat_node',
)  # fmt: skip
_OF_INERTIAL = ('label', 'judge', 'config', 'transforms')


@dataclasses.dataclass(frozen=True, eq=False)
class StudyJudge:
    """A judge of a study.

    Attributes
    ----------
    label : str
        In tables and names of files.
    kind : str
        Of JUDGE_KINDS.
    setup : Judge
    """

    label: str
    kind: str
    setup: Judge

    @property
    def is_fast(self) -> bool:
        """Whether a run takes it milliseconds."""
        return self.kind == 'embedded'

    def to_mapping(self) -> dict[str, Any]:
        """Return what identifies it, as plain values."""
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
    """Return the judges of a study; paths are relative to `folder`.

    Raises
    ------
    Sim2RealError
        For a wrong entry or file, a label given twice, or a judge that is not installed.
    """
    found = [_read(entry, folder) for entry in judges.items('judges')]
    labels = [judge.label for judge in found]
    for label in labels:
        if labels.count(label) > 1:
            judges.refuse(f'{label!r} is the label of several judges; must be of one')
    return tuple(found)


def _read(entry: Entry, folder: Path) -> StudyJudge:
    if entry.is_text:
        name = entry.text()
        key = 'judge' if name in JUDGE_KINDS else 'config'
        if name in JUDGE_KINDS and name not in _INERTIAL:
            entry.refuse(f'{name} needs a config; write {{judge: {name}, config: ...}}')
        fields = {key: entry}
    else:
        fields = entry.fields(_KEYS)
    kind = fields['judge'].text(JUDGE_KINDS) if 'judge' in fields else 'embedded'
    config = fields['config'].text() if 'config' in fields else None
    if 'label' in fields:
        label = fields['label'].label()
    else:
        shown = kind if config is None else Path(config).stem
        label = Entry(entry.where, entry.key, shown).label()
    place = None if config is None else _place(config, folder)
    if kind in _INERTIAL:
        for name in fields:
            if name not in _OF_INERTIAL:
                fields[name].refuse(f'does not go with judge {kind}')
        transforms = _transforms(fields, folder)
        with fields.get('config', entry).looked_up():
            return StudyJudge(label, kind, _inertial(kind, place, transforms))
    if config is None or place is None:
        entry.field('config').refuse('is missing; must be a profile or a parameter file')
    options = _options(fields, folder)
    with fields['config'].looked_up():
        setup = JudgeSetup.load(
            place,
            folder / fields['navsat_config'].text() if 'navsat_config' in fields else None,
            folder / fields['case'].text() if 'case' in fields else None,
            options,
        )
    # The place of the study does not count, what is in its files does.
    setup = dataclasses.replace(setup, name=config)
    if kind == 'embedded':
        if 'navsat_node' in fields:
            fields['navsat_node'].refuse('goes with judge robot_localization only')
        return StudyJudge(label, kind, setup)
    return StudyJudge(label, kind, _on_graph(entry, fields, kind, setup))


def _place(config: str, folder: Path) -> str | Path:
    is_path = config.endswith(('.yaml', '.yml')) or len(Path(config).parts) > 1
    return folder / config if is_path else config


def _transforms(fields: dict[str, Entry], folder: Path) -> TransformFile | None:
    if 'transforms' not in fields:
        return None
    return TransformFile.from_file(folder / fields['transforms'].text())


def _options(fields: dict[str, Entry], folder: Path) -> Options:
    correct = latency = None
    if 'correct' in fields:
        entry = fields['correct']
        listed = entry.items('deviations to correct') if entry.value != [] else []
        correct = corrections([one.value for one in listed], entry.where, entry.key)
    if 'latency' in fields:
        entry = fields['latency']
        if not entry.is_mapping:
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


def _inertial(kind: str, place: str | Path | None, transforms: TransformFile | None) -> Judge:
    if kind == 'error_state':
        from sim2real_eval.judge.error_state.error_state import ErrorStateJudge

        return ErrorStateJudge.load(place, transforms)
    from sim2real_eval.judge.smoother.smoother import SmootherJudge

    return SmootherJudge.load(place, transforms)


def _on_graph(entry: Entry, fields: dict[str, Entry], kind: str, setup: JudgeSetup) -> Judge:
    nodes = ('embedded', 'robot_localization')
    navsat_node = fields['navsat_node'].text(nodes) if 'navsat_node' in fields else 'embedded'
    if find_spec('rclpy') is None:
        entry.refuse(f'judge {kind} needs rclpy: source the setup file of ROS; embedded needs not')
    from sim2real_eval.judge.external.graph_setup import GraphJudgeSetup

    return GraphJudgeSetup.of(setup, kind, navsat_node=navsat_node)
