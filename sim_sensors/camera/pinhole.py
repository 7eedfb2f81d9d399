# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Pinhole camera with skew and a lens: conversion between points and pixels.

Optical frame (REP-103): z forward, x right, y down. Pixels: u to the right, v down. The centre of
the first pixel is (0, 0), as in OpenCV and ROS, so the image extends from -0.5 to width - 0.5.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core.measurements import FloatArray, IntArray, MessageArray, set_array
from sim_sensors.core.parameters import VariedParameters, parameter, positive
from sim_sensors.core.registry import Registry
from .lens import LENSES, Lens, PlumbBob, lens_mapping, lens_of

I = TypeVar('I', bound='Intrinsics')  # noqa: E741


@dataclasses.dataclass(frozen=True)
class Intrinsics(VariedParameters):
    """Size, focal lengths, principal point, skew and lens ([Ligorio2015], equation 7).

    u = fx (xd + skew yd) + cx, v = fy yd + cy, with xd, yd the distorted ray. `skew` is the ratio
    alpha_c of the Caltech toolbox; the entry of the camera matrix is fx skew.
    """

    varied: ClassVar[Mapping[str, Registry[Any]]] = {'distortion': LENSES}

    width: int = parameter(640, 'px', 'Columns of the image.', minimum=1)
    height: int = parameter(480, 'px', 'Rows of the image.', minimum=1)
    fx: float = positive(500.0, 'px', 'Focal length along u.')
    fy: float = positive(500.0, 'px', 'Focal length along v.')
    cx: float = parameter(319.5, 'px', 'Principal point, u.')
    cy: float = parameter(239.5, 'px', 'Principal point, v.')
    skew: float = parameter(0.0, '1', 'Skew ratio: entry of the camera matrix divided by fx.')
    distortion: Lens = dataclasses.field(default_factory=PlumbBob)

    @classmethod
    def from_mapping(cls: type[I], mapping: Mapping[str, object], where: str, path: str = '') -> I:
        """Build from a plain mapping, whose `distortion` may be a list; see `lens_mapping`."""
        if isinstance(mapping, Mapping) and 'distortion' in mapping:
            key = f'{path}.distortion' if path else 'distortion'
            lens = lens_mapping(mapping['distortion'], where, key)
            mapping = {**mapping, 'distortion': lens}
        return super().from_mapping(mapping, where, path)

    @property
    def matrix(self) -> FloatArray:
        """Camera matrix K, `(3, 3)` px."""
        return np.array(
            [[self.fx, self.fx * self.skew, self.cx], [0.0, self.fy, self.cy], [0.0, 0.0, 1.0]]
        )

    def project(self, points: FloatArray) -> FloatArray:
        """Return pixels `(n, 2)`, inside the image or not, of points `(n, 3)` m, optical frame.

        A row is NaN if the point is not in front of the camera or beyond the range of the lens
        model (`Lens.valid`).
        """
        rays = np.full((len(points), 2), np.nan)
        front = points[:, 2] > 0.0
        rays[front] = points[front, :2] / points[front, 2:]
        front[front] = self.distortion.valid(rays[front])
        rays[~front] = np.nan
        return self.pixels(rays)

    def pixels(self, rays: FloatArray) -> FloatArray:
        """Return pixels `(n, 2)` of rays X/Z, Y/Z `(n, 2)`."""
        distorted = self.distortion.apply(rays)
        result = np.empty_like(distorted)
        result[:, 0] = self.fx * (distorted[:, 0] + self.skew * distorted[:, 1]) + self.cx
        result[:, 1] = self.fy * distorted[:, 1] + self.cy
        return result

    def rays(self, pixels: FloatArray) -> FloatArray:
        """Return rays X/Z, Y/Z `(n, 2)` of pixels `(n, 2)`; NaN if no ray leads to a pixel."""
        distorted = np.empty((len(pixels), 2))
        distorted[:, 1] = (pixels[:, 1] - self.cy) / self.fy
        distorted[:, 0] = (pixels[:, 0] - self.cx) / self.fx - self.skew * distorted[:, 1]
        return self.distortion.remove(distorted)

    def ray_jacobian(self, rays: FloatArray) -> FloatArray:
        """Return the derivative of pixels with respect to rays, `(n, 2, 2)` px."""
        lens = self.distortion.jacobian(rays)
        result = np.empty_like(lens)
        result[:, 0] = self.fx * (lens[:, 0] + self.skew * lens[:, 1])
        result[:, 1] = self.fy * lens[:, 1]
        return result

    def inside(self, pixels: FloatArray, border: float = 0.0) -> NDArray[np.bool_]:
        """Return which pixels `(n, 2)` are in the image and `border` px from its edge, `(n,)`."""
        u, v = pixels[:, 0], pixels[:, 1]
        with np.errstate(invalid='ignore'):
            result: NDArray[np.bool_] = (
                (u >= border - 0.5)
                & (u < self.width - 0.5 - border)
                & (v >= border - 0.5)
                & (v < self.height - 0.5 - border)
            )
        return result


LARGEST = 2**32 - 1
"""Largest integer of a sensor_msgs/CameraInfo."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class CameraInfoArray(MessageArray):
    """sensor_msgs/CameraInfo."""

    # `kind` of a `Lens`, or that of a lens of another program; the same for all
    distortion_model: str
    size: IntArray  # (n, 2) columns and rows of the image, px
    distortion: FloatArray  # (n, k) coefficients D, in the order of the `Lens`
    matrix: FloatArray  # (n, 3, 3) K, px
    rectification: FloatArray  # (n, 3, 3) R
    projection: FloatArray  # (n, 3, 4) P, px
    binning: IntArray  # (n, 2) along u and v
    roi: IntArray  # (n, 5) x_offset, y_offset, height, width, do_rectify (0 or 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        n, coefficients = len(self), np.shape(self.distortion)[-1]
        for name, shape in {'size': (2,), 'binning': (2,), 'roi': (5,)}.items():
            integers = set_array(self, name, np.int64, (n, *shape))
            if ((integers < 0) | (integers > LARGEST)).any():
                raise ValueError(f'CameraInfoArray.{name} must be in 0 .. {LARGEST}')
        set_array(self, 'distortion', np.float64, (n, coefficients))
        set_array(self, 'projection', np.float64, (n, 3, 4))
        for name in ('matrix', 'rectification'):
            set_array(self, name, np.float64, (n, 3, 3))

    @classmethod
    def from_intrinsics(
        cls, intrinsics: Intrinsics, stamp_ns: IntArray, arrival_ns: IntArray, frame: str
    ) -> CameraInfoArray:
        """Return the messages of a monocular camera with constant intrinsics, one per frame."""
        lens = intrinsics.distortion
        n = len(stamp_ns)

        def repeat(field: Any) -> NDArray[Any]:
            return np.broadcast_to(field, (n, *np.shape(field)))

        return cls(
            stamp_ns=stamp_ns,
            arrival_ns=arrival_ns,
            frame=frame,
            distortion_model=lens.kind,
            size=repeat([intrinsics.width, intrinsics.height]),
            distortion=repeat(lens.coefficients),
            matrix=repeat(intrinsics.matrix),
            rectification=repeat(np.eye(3)),
            projection=repeat(np.hstack([intrinsics.matrix, np.zeros((3, 1))])),
            binning=repeat([0, 0]),
            roi=repeat([0] * 5),
        )

    def intrinsics(self) -> Intrinsics:
        """Return the calibration of the first message, without a distortion of unknown model."""
        matrix = self.matrix[0]
        width, height = self.size[0].tolist()
        calibration = Intrinsics(
            width=width,
            height=height,
            fx=float(matrix[0, 0]),
            fy=float(matrix[1, 1]),
            cx=float(matrix[0, 2]),
            cy=float(matrix[1, 2]),
            skew=float(matrix[0, 1] / matrix[0, 0]),
        )
        lens = lens_of(self.distortion_model, self.distortion[0].tolist())
        return calibration if lens is None else dataclasses.replace(calibration, distortion=lens)
