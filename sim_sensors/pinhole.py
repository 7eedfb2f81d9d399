# SPDX-License-Identifier: Apache-2.0
"""A pinhole camera with skew and a lens: points in its optical frame to pixels and back.

Optical frame (REP-103): z forward, x right, y down. Pixels u to the right, v down; the centre of
the first pixel is (0, 0), as in OpenCV and ROS, so the image reaches from -0.5 to width - 0.5.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sim_sensors.distortion import Distortion
from sim_sensors.measurements import FloatArray
from sim_sensors.parameters import Parameters, parameter

__all__ = ['Intrinsics']


@dataclasses.dataclass(frozen=True)
class Intrinsics(Parameters):
    """Size, focal lengths, principal point, skew and lens ([Ligorio2015], equation 7).

    u = fx (xd + skew yd) + cx, v = fy yd + cy, with xd, yd the distorted ray. `skew` is the ratio
    alpha_c of the Caltech toolbox; the entry of the camera matrix is fx skew.
    """

    width: int = parameter(640, 'px', 'Columns of the image.', minimum=1)
    height: int = parameter(480, 'px', 'Rows of the image.', minimum=1)
    fx: float = parameter(500.0, 'px', 'Focal length along u.', minimum=0.0, minimum_excluded=True)
    fy: float = parameter(500.0, 'px', 'Focal length along v.', minimum=0.0, minimum_excluded=True)
    cx: float = parameter(319.5, 'px', 'Principal point, u.')
    cy: float = parameter(239.5, 'px', 'Principal point, v.')
    skew: float = parameter(0.0, '1', 'Skew ratio: entry of the camera matrix divided by fx.')
    distortion: Distortion = dataclasses.field(default_factory=Distortion)

    @property
    def matrix(self) -> FloatArray:
        """Camera matrix K, `(3, 3)` px."""
        return np.array(
            [
                [self.fx, self.fx * self.skew, self.cx],
                [0.0, self.fy, self.cy],
                [0.0, 0.0, 1.0],
            ]
        )

    def project(self, points: FloatArray) -> FloatArray:
        """Return pixels `(n, 2)` of points `(n, 3)` m of the optical frame, in the image or not.

        A row is NaN where the point is not in front of the camera or the lens model does not
        reach that far (`Distortion.largest_radius`).
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
        """Return rays X/Z, Y/Z `(n, 2)` of pixels `(n, 2)`; NaN where no ray gets to."""
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

    def inside(self, pixels: FloatArray, border: float = 0.0) -> np.typing.NDArray[np.bool_]:
        """Return which pixels `(n, 2)` are in the image and `border` px from its edge, `(n,)`."""
        u, v = pixels[:, 0], pixels[:, 1]
        with np.errstate(invalid='ignore'):
            result: np.typing.NDArray[np.bool_] = (
                (u >= border - 0.5)
                & (u < self.width - 0.5 - border)
                & (v >= border - 0.5)
                & (v < self.height - 0.5 - border)
            )
        return result
