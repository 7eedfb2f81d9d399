# SPDX-License-Identifier: Apache-2.0
"""Feature tracks as a CSV file: a line for each feature, and one with the id -1 for a frame that
has none.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from sim2real_eval.recording.csv_table import read_table, write_table
from sim2real_eval.recording.errors import RecordingError
from sim2real_eval.recording.message_types import FEATURES, MessageType
from sim2real_eval.recording.recording import Note
from sim_sensors.feature_tracks import FeatureArray
from sim_sensors.measurements import FloatArray, IntArray, MessageArray

__all__ = ['read_features', 'write_features']

_NONE = -1
_COLUMNS = ('u', 'v', 'previous_u', 'previous_v', 'ray_x', 'ray_y')


@dataclasses.dataclass(frozen=True, eq=False)
class _FeatureLines(MessageArray):
    ids: IntArray
    age: IntArray
    numbers: FloatArray


_LINE = MessageType(
    FEATURES.name, _FeatureLines, (), (('ids', ('id',)), ('age', ('age',)), ('numbers', _COLUMNS))
)


def read_features(path: Path) -> tuple[FeatureArray, tuple[Note, ...]]:
    """Read one file; errors are those of `read_table`."""
    lines, notes = read_table(path, _LINE)
    assert isinstance(lines, _FeatureLines)
    change = np.diff(lines.stamp_ns, prepend=lines.stamp_ns[:1] - 1) != 0
    change |= np.diff(lines.arrival_ns, prepend=lines.arrival_ns[:1] - 1) != 0
    frames = np.flatnonzero(change)
    is_feature = lines.ids != _NONE
    if (is_feature & (lines.ids < 0)).any():
        wrong = int(lines.ids[lines.ids < _NONE][0])
        raise RecordingError(f'{path}: id: {wrong} is not allowed; must be >= 0, or -1 for none')
    before = np.concatenate([[0], np.cumsum(is_feature)])
    numbers = lines.numbers[is_feature]
    array = FeatureArray(
        stamp_ns=lines.stamp_ns[frames],
        arrival_ns=lines.arrival_ns[frames],
        frame=lines.frame,
        first=before[np.append(frames, len(lines))],
        ids=lines.ids[is_feature],
        pixels=numbers[:, 0:2],
        previous=numbers[:, 2:4],
        age=lines.age[is_feature],
        rays=numbers[:, 4:6],
    )
    return array, notes


def write_features(path: Path, array: FeatureArray) -> None:
    """Write one file, gzip when its name ends in .gz; equal arrays give equal bytes."""
    counts = np.diff(array.first)
    frame = np.repeat(np.arange(len(array)), np.maximum(counts, 1))
    is_feature = np.repeat(counts > 0, np.maximum(counts, 1))
    ids = np.full(len(frame), _NONE, dtype=np.int64)
    age = np.zeros(len(frame), dtype=np.int64)
    numbers = np.full((len(frame), len(_COLUMNS)), np.nan)
    ids[is_feature], age[is_feature] = array.ids, array.age
    numbers[is_feature] = np.concatenate([array.pixels, array.previous, array.rays], axis=1)
    lines = _FeatureLines(
        stamp_ns=array.stamp_ns[frame],
        arrival_ns=array.arrival_ns[frame],
        frame=array.frame,
        ids=ids,
        age=age,
        numbers=numbers,
    )
    write_table(path, _LINE, lines)
