# SPDX-License-Identifier: Apache-2.0
"""What failed in a study, and which runs do not count because of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sim2real_eval.series_folder import REAL
from sim2real_eval.study.run import RunKey

__all__ = ['Losses', 'StudyFailure', 'told_failures']

_MOST = 0.5


class StudyFailure(NamedTuple):
    """A run that could not be judged, and why.

    Attributes
    ----------
    judge, recording : str
    model : str
        `real`, or the variant whose run it was; empty when the recording could not be read.
    reason : str
    """

    judge: str
    recording: str
    model: str
    reason: str


class Losses:
    """The runs of a study that do not count because something failed.

    Models are to be compared on the same recordings: one on which a run fails is left out under
    that judge for all of them. But a model that fails on more than half of the recordings of a
    group is left out itself there, for else it would take them from the others.

    Parameters
    ----------
    failures : sequence of StudyFailure
    groups : mapping
        Group of every run of the study.
    """

    def __init__(self, failures: Sequence[StudyFailure], groups: Mapping[RunKey, str]) -> None:
        self._groups = {(key.judge, key.recording): group for key, group in groups.items()}
        whole = {(one.judge, one.recording) for one in failures if one.model in ('', REAL)}
        tried: dict[tuple[str, str, str], set[str]] = {}
        for key, group in groups.items():
            if (key.judge, key.recording) not in whole:
                tried.setdefault((key.judge, group, key.model), set()).add(key.recording)
        failed: dict[tuple[str, str, str], set[str]] = {}
        for one in failures:
            if (one.judge, one.recording) not in whole:
                failed.setdefault(self._model(one), set()).add(one.recording)
        self._models = {
            model for model, found in failed.items() if len(found) > _MOST * len(tried[model])
        }
        self._recordings = whole | {
            (one.judge, one.recording) for one in failures if self._model(one) not in self._models
        }
        self._failures = failures

    def __contains__(self, key: RunKey) -> bool:
        place = (key.judge, key.recording)
        return place in self._recordings or (
            (key.judge, self._groups[place], key.model) in self._models
        )

    def records(self) -> list[dict[str, Any]]:
        """Return the failures as plain values; `group` and `left_out`, recording or model, too."""
        found = []
        for one in self._failures:
            judge, group, _ = model = self._model(one)
            whole = (judge, one.recording) in self._recordings and model not in self._models
            found.append(
                {
                    **one._asdict(),
                    'group': group,
                    'left_out': 'recording' if whole else 'model',
                }
            )
        return found

    def _model(self, one: StudyFailure) -> tuple[str, str, str]:
        return (one.judge, self._groups[one.judge, one.recording], one.model)


def told_failures(record: Mapping[str, Any]) -> list[str]:
    """Say what a study left out, each once, with the judges when these are not all.

    Parameters
    ----------
    record : mapping
        Of a study, see `StudyOutcome`.
    """
    found: dict[str, list[str]] = {}
    models: dict[tuple[str, str, str], list[str]] = {}
    for failure in record['failures']:
        recording, reason = str(failure['recording']), str(failure['reason'])
        judge, model = failure.get('judge', ''), failure.get('model', '')
        text = reason if reason.startswith(recording) else f'{recording}: {reason}'
        if failure.get('left_out') == 'model':
            models.setdefault((model, failure['group'], judge), []).append(text)
            continue
        found.setdefault(f'{text} ({model})' if model not in ('', REAL) else text, []).append(
            judge
        )
    for (model, group, judge), texts in models.items():
        where = f' in {group}' if group else ''
        text = f'model {model}{where}: fails on {len(texts)} recordings, as on {texts[0]}'
        found.setdefault(text, []).append(judge)
    judges = {judge['label'] for judge in record['judges']}
    return [
        text
        if judges <= set(concerned) or '' in concerned
        else f'{text} (judge {", ".join(concerned)})'
        for text, concerned in found.items()
    ]
