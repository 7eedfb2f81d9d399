# SPDX-License-Identifier: Apache-2.0
"""Pinhole camera with skew and a lens: conversion between points and pixels.

Optical frame (REP-103): z forward, x right, y down. Pixels: u to the right, v down. The centre of
the first pixel is (0, 0), as in OpenCV and ROS, so the image extends from -0.5 to width - 0.5.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core.measurements import FloatArray, IntArray, MessageArray, set_array
from sim_sensors.core.parameters import Parameters, parameter, positive

# Newton's method for the undistorted ray: iterations, relative step at which it stops, relative
# error of an accepted solution.
_ITERATIONS = 50
_CONVERGED = 1e-15
_SOLVED = 1e-12


@dataclasses.dataclass(frozen=True)
class Distortion(Parameters):
    """Lens distortion of rays X/Z, Y/Z in the optical frame, `(n, 2)`.

    It is the model of Brown, of the Caltech toolbox (kc = k1, k2, p1, p2, k3), of OpenCV and of
    ROS (`plumb_bob`): [Ligorio2015], equation 7. A ray (x, y), r^2 = x^2 + y^2, is moved to::

        L = 1 + k1 r^2 + k2 r^4 + k3 r^6

        xd = L x + 2 p1 x y + p2 (r^2 + 2 x^2)
        yd = L y + p1 (r^2 + 2 y^2) + 2 p2 x y
    """

    k1: float = parameter(0.0, '1', 'Radial coefficient of r^2; negative: barrel.')
    k2: float = parameter(0.0, '1', 'Radial coefficient of r^4.')
    p1: float = parameter(0.0, '1', 'Tangential coefficient, mainly along y.')
    p2: float = parameter(0.0, '1', 'Tangential coefficient, mainly along x.')
    k3: float = parameter(0.0, '1', 'Radial coefficient of r^6.')

    @functools.cached_property
    def largest_radius(self) -> float:
        """Radius r up to which r L(r) grows; infinite if it always grows.

        A polynomial that was fitted to an image is not valid beyond. It would fold points far
        outside the image back into it.
        """
        roots = np.roots([7.0 * self.k3, 5.0 * self.k2, 3.0 * self.k1, 1.0])
        squares = roots.real[(np.abs(roots.imag) < 1e-12) & (roots.real > 0.0)]
        return float(np.sqrt(squares.min())) if len(squares) else np.inf

    def valid(self, rays: FloatArray) -> NDArray[np.bool_]:
        """Return for which rays `(n, 2)` the model is valid and unique, `(n,)`."""
        x, y = rays[:, 0], rays[:, 1]
        jacobian = self.jacobian(rays)
        grows = jacobian[:, 0, 0] * jacobian[:, 1, 1] - jacobian[:, 0, 1] * jacobian[:, 1, 0] > 0.0
        inside = x * x + y * y < self.largest_radius**2
        return grows & inside

    def apply(self, rays: FloatArray) -> FloatArray:
        """Return distorted rays `(n, 2)`."""
        x, y = rays[:, 0], rays[:, 1]
        r2 = x * x + y * y
        radial = 1.0 + r2 * (self.k1 + r2 * (self.k2 + r2 * self.k3))
        result = np.empty_like(rays, dtype=np.float64)
        result[:, 0] = radial * x + 2.0 * self.p1 * x * y + self.p2 * (r2 + 2.0 * x * x)
        result[:, 1] = radial * y + self.p1 * (r2 + 2.0 * y * y) + 2.0 * self.p2 * x * y
        return result

    def jacobian(self, rays: FloatArray) -> FloatArray:
        """Return the derivative of distorted rays with respect to rays, `(n, 2, 2)`."""
        x, y = rays[:, 0], rays[:, 1]
        r2 = x * x + y * y
        radial = 1.0 + r2 * (self.k1 + r2 * (self.k2 + r2 * self.k3))
        # Derivative of L with respect to x, divided by x.
        slope = 2.0 * (self.k1 + r2 * (2.0 * self.k2 + r2 * 3.0 * self.k3))
        result = np.empty((len(rays), 2, 2))
        result[:, 0, 0] = radial + slope * x * x + 2.0 * self.p1 * y + 6.0 * self.p2 * x
        result[:, 0, 1] = slope * x * y + 2.0 * self.p1 * x + 2.0 * self.p2 * y
        result[:, 1, 0] = result[:, 0, 1]
        result[:, 1, 1] = radial + slope * y * y + 6.0 * self.p1 * y + 2.0 * self.p2 * x
        return result

    def remove(self, distorted: FloatArray) -> FloatArray:
        """Return the rays `(n, 2)` that `apply` maps to `distorted`, by Newton's method.

        A row is NaN if there is no such ray.
        """
        rays = np.array(distorted, dtype=np.float64)
        if not any((self.k1, self.k2, self.p1, self.p2, self.k3)):
            return rays
        with np.errstate(all='ignore'):
            for _ in range(_ITERATIONS):
                error = self.apply(rays) - distorted
                j = self.jacobian(rays)
                determinant = j[:, 0, 0] * j[:, 1, 1] - j[:, 0, 1] * j[:, 1, 0]
                step = np.empty_like(rays)
                step[:, 0] = j[:, 1, 1] * error[:, 0] - j[:, 0, 1] * error[:, 1]
                step[:, 1] = j[:, 0, 0] * error[:, 1] - j[:, 1, 0] * error[:, 0]
                step /= determinant[:, None]
                rays -= step
                if not (np.abs(step) > _CONVERGED * (1.0 + np.abs(rays))).any():
                    break
            error = np.abs(self.apply(rays) - distorted)
            solved = (error <= _SOLVED * (1.0 + np.abs(distorted))).all(axis=1)
            rays[~(solved & self.valid(rays))] = np.nan
        return rays


@dataclasses.dataclass(frozen=True)
class Intrinsics(Parameters):
    """Size, focal lengths, principal point, skew and lens ([Ligorio2015], equation 7).

    u = fx (xd + skew yd) + cx, v = fy yd + cy, with xd, yd the distorted ray. `skew` is the ratio
    alpha_c of the Caltech toolbox; the entry of the camera matrix is fx skew.
    """

    width: int = parameter(640, 'px', 'Columns of the image.', minimum=1)
    height: int = parameter(480, 'px', 'Rows of the image.', minimum=1)
    fx: float = positive(500.0, 'px', 'Focal length along u.')
    fy: float = positive(500.0, 'px', 'Focal length along v.')
    cx: float = parameter(319.5, 'px', 'Principal point, u.')
    cy: float = parameter(239.5, 'px', 'Principal point, v.')
    skew: float = parameter(0.0, '1', 'Skew ratio: entry of the camera matrix divided by fx.')
    distortion: Distortion = dataclasses.field(default_factory=Distortion)

    @property
    def matrix(self) -> FloatArray:
        """Camera matrix K, `(3, 3)` px."""
        return np.array(
            [[self.fx, self.fx * self.skew, self.cx], [0.0, self.fy, self.cy], [0.0, 0.0, 1.0]]
        )

    def project(self, points: FloatArray) -> FloatArray:
        """Return pixels `(n, 2)`, inside the image or not, of points `(n, 3)` m, optical frame.

        A row is NaN if the point is not in front of the camera or beyond the range of the lens
        model (`Distortion.largest_radius`).
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

    # `plumb_bob` for the five coefficients of `Distortion`; the same for all
    distortion_model: str
    size: IntArray  # (n, 2) columns and rows of the image, px
    distortion: FloatArray  # (n, k) coefficients D; of `plumb_bob` k1, k2, p1, p2, k3
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
            distortion_model='plumb_bob',
            size=repeat([intrinsics.width, intrinsics.height]),
            distortion=repeat([lens.k1, lens.k2, lens.p1, lens.p2, lens.k3]),
            matrix=repeat(intrinsics.matrix),
            rectification=repeat(np.eye(3)),
            projection=repeat(np.hstack([intrinsics.matrix, np.zeros((3, 1))])),
            binning=repeat([0, 0]),
            roi=repeat([0] * 5),
        )

    def intrinsics(self) -> Intrinsics:
        """Return the calibration of the first message, without a distortion of unknown model."""
        matrix, lens = self.matrix[0], self.distortion[0]
        names = ('k1', 'k2', 'p1', 'p2', 'k3') if self.distortion_model == 'plumb_bob' else ()
        width, height = self.size[0].tolist()
        return Intrinsics(
            width=width,
            height=height,
            fx=float(matrix[0, 0]),
            fy=float(matrix[1, 1]),
            cx=float(matrix[0, 2]),
            cy=float(matrix[1, 2]),
            skew=float(matrix[0, 1] / matrix[0, 0]),
            distortion=Distortion(**dict(zip(names, lens.tolist(), strict=False))),
        )
