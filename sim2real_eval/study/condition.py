# SPDX-License-Identifier: Apache-2.0
"""What happens to the fixes of real and simulated runs alike, as in a tunnel."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.recording import Recording, RecordingError
from sim2real_eval.study.entry import Entry
from sim_sensors.measurements import IntArray

__all__ = ['Condition', 'read_conditions']


@dataclasses.dataclass(frozen=True)
class Condition:
    """A condition under which the receiver works.

    Attributes
    ----------
    label : str
        Empty for a study that has none.
    outages : tuple of (float, float)
        From and until when there are no fixes, seconds since the first stamp of the truth; the
        beginning belongs to the outage, the end does not.
    gps_rate : float or None
        Hz; fixes that come sooner after the last one that is kept are left out.
    """

    label: str = ''
    outages: tuple[tuple[float, float], ...] = ()
    gps_rate: float | None = None

    def apply(self, recording: Recording, origin_ns: int) -> Recording:
        """Return the recording as it would be under the condition.

        Raises
        ------
        RecordingError
            When no fix is left.
        """
        fixes = recording.gps
        if fixes is None or (not self.outages and self.gps_rate is None):
            return recording
        kept = np.ones(len(fixes), dtype=np.bool_)
        for start, end in self.outages:
            since = (fixes.stamp_ns - origin_ns) * 1e-9
            kept &= (since < start) | (since >= end)
        if self.gps_rate is not None:
            kept[kept] = _thinned(fixes.stamp_ns[kept], self.gps_rate)
        if not kept.any():
            raise RecordingError(f'{recording.name}: condition {self.label} leaves no fix')
        return recording.with_messages('gps', fixes.take(kept))

    def to_mapping(self) -> dict[str, Any]:
        """Return the condition as plain values."""
        return {
            'label': self.label,
            'outages': [list(outage) for outage in self.outages],
            'gps_rate': self.gps_rate,
        }


def _thinned(stamp_ns: IntArray, rate: float) -> NDArray[np.bool_]:
    """Return which fixes come nearest to a grid of the rate that begins at the first fix."""
    slot = (stamp_ns - stamp_ns[0]) * (rate * 1e-9)
    # Jitter of stamps must not make every other gap twice as long: slots are half-way between.
    number = np.floor(slot + 0.5)
    kept = np.zeros(len(stamp_ns), dtype=np.bool_)
    for one in np.unique(number):
        inside = np.flatnonzero(number == one)
        kept[inside[np.argmin(np.abs(slot[inside] - one))]] = True
    return kept


def read_conditions(conditions: Entry) -> tuple[Condition, ...]:
    """Return the conditions of a study.

    Raises
    ------
    ParameterError
        For a wrong entry, or a label given twice.
    """
    found = [_read(entry) for entry in conditions.items('conditions')]
    labels = [condition.label for condition in found]
    for label in labels:
        if labels.count(label) > 1:
            conditions.refuse(f'{label!r} is the label of several conditions; must be of one')
    return tuple(found)


def _read(entry: Entry) -> Condition:
    fields = entry.fields(('label', 'outages', 'gps_rate'), required=('label',))
    outages = []
    for outage in fields['outages'].items('outages') if 'outages' in fields else []:
        if not outage.is_list or len(outage.value) != 2:
            outage.refuse_value('[start, end] in seconds')
        start, end = (one.number('s', minimum=0.0) for one in outage.items('times'))
        if end <= start:
            outage.refuse_value('[start, end] with start < end')
        outages.append((start, end))
    rate = (
        fields['gps_rate'].number('Hz', minimum=0.0, above=True) if 'gps_rate' in fields else None
    )
    return Condition(fields['label'].label(), tuple(outages), rate)
