# SPDX-License-Identifier: Apache-2.0
"""The numbers of a camera as a CSV file, which has a column d0, d1 ... for each coefficient."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from sim2real_eval.recording.csv_table import read_header, read_table, write_table
from sim2real_eval.recording.errors import RecordingError
from sim2real_eval.recording.message_types import CAMERA_INFO, MessageType
from sim2real_eval.recording.recording import Note
from sim_sensors.camera_info import LARGEST, CameraInfoArray
from sim_sensors.measurements import FloatArray, IntArray, MessageArray

__all__ = ['read_camera_info', 'write_camera_info']

_WHOLE = (
    *('width', 'height', 'binning_x', 'binning_y'),
    *('roi_x_offset', 'roi_y_offset', 'roi_height', 'roi_width', 'roi_do_rectify'),
)
_MATRICES = tuple(
    f'{name}{k}' for name, count in (('k', 9), ('r', 9), ('p', 12)) for k in range(count)
)


@dataclasses.dataclass(frozen=True, eq=False)
class _CameraInfoLines(MessageArray):
    distortion_model: str
    whole: IntArray
    numbers: FloatArray


def _line(coefficients: int) -> MessageType:
    names = (*(f'd{k}' for k in range(coefficients)), *_MATRICES)
    columns = (('whole', _WHOLE), ('numbers', names))
    return MessageType(CAMERA_INFO.name, _CameraInfoLines, (), columns, text='distortion_model')


def read_camera_info(path: Path) -> tuple[CameraInfoArray, tuple[Note, ...]]:
    """Read one file; errors are those of `read_table`."""
    known = read_header(path)
    count = sum(name[:1] == 'd' and name[1:].isdecimal() for name in known)
    lines, notes = read_table(path, _line(count))
    assert isinstance(lines, _CameraInfoLines)
    whole = lines.whole.reshape(len(lines), len(_WHOLE))
    wrong = (whole < 0) | (whole > LARGEST)
    if wrong.any():
        line, column = np.argwhere(wrong)[0].tolist()
        raise RecordingError(
            f'{path}: line {line + 2}: {_WHOLE[column]}: {whole[line, column]} is not allowed; '
            f'must be in 0 .. {LARGEST}'
        )
    numbers = lines.numbers.reshape(len(lines), count + len(_MATRICES))
    distortion, k, r, p = np.split(numbers, [count, count + 9, count + 18], axis=1)
    array = CameraInfoArray(
        stamp_ns=lines.stamp_ns,
        arrival_ns=lines.arrival_ns,
        frame=lines.frame,
        distortion_model=lines.distortion_model,
        size=whole[:, :2],
        distortion=distortion,
        matrix=k.reshape(-1, 3, 3),
        rectification=r.reshape(-1, 3, 3),
        projection=p.reshape(-1, 3, 4),
        binning=whole[:, 2:4],
        roi=whole[:, 4:],
    )
    return array, notes


def write_camera_info(path: Path, array: CameraInfoArray) -> None:
    """Write one file, gzip when its name ends in .gz; equal arrays give equal bytes."""
    lines = _CameraInfoLines(
        stamp_ns=array.stamp_ns,
        arrival_ns=array.arrival_ns,
        frame=array.frame,
        distortion_model=array.distortion_model,
        whole=np.concatenate([array.size, array.binning, array.roi], axis=1),
        numbers=np.concatenate(
            [
                array.distortion,
                array.matrix.reshape(-1, 9),
                array.rectification.reshape(-1, 9),
                array.projection.reshape(-1, 12),
            ],
            axis=1,
        ),
    )
    write_table(path, _line(array.distortion.shape[1]), lines)
