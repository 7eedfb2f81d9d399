# SPDX-License-Identifier: Apache-2.0
"""What a camera tells of itself with each frame: size of the image, camera matrix, lens."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim_sensors.camera.pinhole import Intrinsics
from sim_sensors.core.measurements import FloatArray, IntArray, MessageArray

LARGEST = 2**32 - 1
"""Of the whole numbers of a sensor_msgs/CameraInfo."""

_MODEL = 'plumb_bob'


@dataclasses.dataclass(frozen=True, eq=False)
class CameraInfoArray(MessageArray):
    """sensor_msgs/CameraInfo.

    Attributes
    ----------
    distortion_model : str
        `plumb_bob` for the five coefficients of `sim_sensors.camera.pinhole`; the same for all.
    size : (n, 2) int
        Columns and rows of the image, px.
    distortion : (n, k) float
        Coefficients D; of `plumb_bob` k1, k2, p1, p2, k3.
    matrix : (n, 3, 3) float
        K, px.
    rectification : (n, 3, 3) float
        R.
    projection : (n, 3, 4) float
        P, px.
    binning : (n, 2) int
        Along u and v.
    roi : (n, 5) int
        x_offset, y_offset, height, width, do_rectify (0 or 1).
    """

    distortion_model: str
    size: IntArray
    distortion: FloatArray
    matrix: FloatArray
    rectification: FloatArray
    projection: FloatArray
    binning: IntArray
    roi: IntArray

    def __post_init__(self) -> None:
        super().__post_init__()
        n, coefficients = len(self), np.shape(self.distortion)[-1]
        shapes: dict[str, tuple[int, ...]] = {
            'size': (2,),
            'distortion': (coefficients,),
            'matrix': (3, 3),
            'rectification': (3, 3),
            'projection': (3, 4),
            'binning': (2,),
            'roi': (5,),
        }
        for name, shape in shapes.items():
            is_whole = name in ('size', 'binning', 'roi')
            array: NDArray[Any] = np.ascontiguousarray(
                getattr(self, name), dtype=np.int64 if is_whole else np.float64
            )
            if array.shape != (n, *shape):
                raise ValueError(
                    f'CameraInfoArray.{name} has shape {array.shape}, must be {(n, *shape)}'
                )
            if is_whole and ((array < 0) | (array > LARGEST)).any():
                raise ValueError(f'CameraInfoArray.{name} must be in 0 .. {LARGEST}')
            object.__setattr__(self, name, array)

    @classmethod
    def of(
        cls, intrinsics: Intrinsics, stamp_ns: IntArray, arrival_ns: IntArray, frame: str
    ) -> CameraInfoArray:
        """Return what a monocular camera that never changes tells with each frame."""
        lens = intrinsics.distortion
        n = len(stamp_ns)

        def every(value: Any) -> NDArray[Any]:
            return np.broadcast_to(value, (n, *np.shape(value)))

        return cls(
            stamp_ns=stamp_ns,
            arrival_ns=arrival_ns,
            frame=frame,
            distortion_model=_MODEL,
            size=every([intrinsics.width, intrinsics.height]),
            distortion=every([lens.k1, lens.k2, lens.p1, lens.p2, lens.k3]),
            matrix=every(intrinsics.matrix),
            rectification=every(np.eye(3)),
            projection=every(np.hstack([intrinsics.matrix, np.zeros((3, 1))])),
            binning=every([0, 0]),
            roi=every([0] * 5),
        )
