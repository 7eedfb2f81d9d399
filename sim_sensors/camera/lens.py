# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Lenses: distortion of the rays X/Z, Y/Z of a camera, by the models of OpenCV and ROS."""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, parameter, variants

# Newton's method for the undistorted ray: iterations, relative step at which it stops, relative
# error of an accepted solution.
_ITERATIONS = 50
_CONVERGED = 1e-15
_SOLVED = 1e-12
# Largest imaginary part of a root that counts as real.
_REAL = 1e-12


@dataclasses.dataclass(frozen=True)
class Lens(Parameters, abc.ABC):
    """Base of all lenses: a map of rays X/Z, Y/Z in the optical frame, `(n, 2)`.

    The parameters of a lens are its coefficients, in the order of a sensor_msgs/CameraInfo. A
    model that was fitted to an image is valid where its radius grows with that of the ray. It
    would fold points far outside the image back into it.
    """

    @property
    def coefficients(self) -> list[float]:
        """Coefficients in the order of a sensor_msgs/CameraInfo."""
        return [getattr(self, name) for name in self.declarations()]

    @property
    @abc.abstractmethod
    def largest_radius(self) -> float:
        """Radius of rays up to which the distorted radius grows; infinite if it always does."""

    @abc.abstractmethod
    def apply(self, rays: FloatArray) -> FloatArray:
        """Return distorted rays `(n, 2)`."""

    @abc.abstractmethod
    def jacobian(self, rays: FloatArray) -> FloatArray:
        """Return the derivative of distorted rays with respect to rays, `(n, 2, 2)`."""

    @abc.abstractmethod
    def remove(self, distorted: FloatArray) -> FloatArray:
        """Return the rays `(n, 2)` that `apply` maps to `distorted`; NaN where there is none."""

    def valid(self, rays: FloatArray) -> NDArray[np.bool_]:
        """Return for which rays `(n, 2)` the model is valid and unique, `(n,)`."""
        return np.asarray(np.hypot(rays[:, 0], rays[:, 1]) < self.largest_radius)


@dataclasses.dataclass(frozen=True)
class PlumbBob(Lens):
    """Radial and tangential distortion, for usual lenses: `plumb_bob` of ROS, radtan of Kalibr.

    It is the model of Brown, of the Caltech toolbox (kc = k1, k2, p1, p2, k3) and of OpenCV:
    [Ligorio2015], equation 7. A ray (x, y), r^2 = x^2 + y^2, is moved to::

        L = 1 + k1 r^2 + k2 r^4 + k3 r^6

        xd = L x + 2 p1 x y + p2 (r^2 + 2 x^2)
        yd = L y + p1 (r^2 + 2 y^2) + 2 p2 x y
    """

    kind: ClassVar[str] = 'plumb_bob'

    k1: float = parameter(0.0, '1', 'Radial coefficient of r^2; negative: barrel.')
    k2: float = parameter(0.0, '1', 'Radial coefficient of r^4.')
    p1: float = parameter(0.0, '1', 'Tangential coefficient, mainly along y.')
    p2: float = parameter(0.0, '1', 'Tangential coefficient, mainly along x.')
    k3: float = parameter(0.0, '1', 'Radial coefficient of r^6.')

    @functools.cached_property
    def _numerator(self) -> Polynomial:
        """Numerator of L as a polynomial of r^2."""
        return Polynomial([1.0, self.k1, self.k2, self.k3])

    @functools.cached_property
    def _denominator(self) -> Polynomial:
        """Denominator of L as a polynomial of r^2."""
        return Polynomial([1.0])

    @functools.cached_property
    def largest_radius(self) -> float:
        """Radius r up to which r L(r) grows; infinite if it always grows."""
        top, bottom = self._numerator, self._denominator
        # Derivative of r L by r, times the square of the denominator.
        growth = top * bottom + Polynomial([0.0, 2.0]) * (
            top.deriv() * bottom - top * bottom.deriv()
        )
        roots = np.concatenate([growth.roots(), bottom.roots()])
        squares = roots.real[(np.abs(roots.imag) < _REAL) & (roots.real > 0.0)]
        return float(np.sqrt(squares.min())) if len(squares) else np.inf

    def _radial(self, r2: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return L and its derivative by r^2."""
        top, bottom = self._numerator, self._denominator
        scale = 1.0 / bottom(r2)
        factor = top(r2) * scale
        return factor, (top.deriv()(r2) - factor * bottom.deriv()(r2)) * scale

    def valid(self, rays: FloatArray) -> NDArray[np.bool_]:
        """Return for which rays `(n, 2)` the model is valid and unique, `(n,)`."""
        jacobian = self.jacobian(rays)
        grows = jacobian[:, 0, 0] * jacobian[:, 1, 1] - jacobian[:, 0, 1] * jacobian[:, 1, 0] > 0.0
        return np.asarray(grows & super().valid(rays))

    def apply(self, rays: FloatArray) -> FloatArray:
        """Return distorted rays `(n, 2)`."""
        x, y = rays[:, 0], rays[:, 1]
        r2 = x * x + y * y
        radial, _ = self._radial(r2)
        result = np.empty_like(rays, dtype=np.float64)
        result[:, 0] = radial * x + 2.0 * self.p1 * x * y + self.p2 * (r2 + 2.0 * x * x)
        result[:, 1] = radial * y + self.p1 * (r2 + 2.0 * y * y) + 2.0 * self.p2 * x * y
        return result

    def jacobian(self, rays: FloatArray) -> FloatArray:
        """Return the derivative of distorted rays with respect to rays, `(n, 2, 2)`."""
        x, y = rays[:, 0], rays[:, 1]
        radial, by_square = self._radial(x * x + y * y)
        # Derivative of L with respect to x, divided by x.
        slope = 2.0 * by_square
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
        if not any(self.coefficients):
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
class RationalPolynomial(PlumbBob):
    """`plumb_bob` with a denominator, OpenCV's model of eight coefficients for wide lenses.

    The factor L is::

        L = (1 + k1 r^2 + k2 r^4 + k3 r^6) / (1 + k4 r^2 + k5 r^4 + k6 r^6)
    """

    kind: ClassVar[str] = 'rational_polynomial'

    k4: float = parameter(0.0, '1', 'Coefficient of r^2 in the denominator.')
    k5: float = parameter(0.0, '1', 'Coefficient of r^4 in the denominator.')
    k6: float = parameter(0.0, '1', 'Coefficient of r^6 in the denominator.')

    @functools.cached_property
    def _denominator(self) -> Polynomial:
        return Polynomial([1.0, self.k4, self.k5, self.k6])


# Rays below which the derivative of theta_d / r is taken from its series.
_NEAR_AXIS = 1e-3
# Halvings that reduce half a circle to the spacing of its numbers.
_BISECTIONS = 60


@dataclasses.dataclass(frozen=True)
class Equidistant(Lens):
    """Fisheye lens of [Kannala2006]: `equidistant` of ROS and Kalibr, OpenCV's module fisheye.

    The distance from the principal point grows with the angle theta between a ray (x, y) and the
    optical axis::

        r^2 = x^2 + y^2
        theta = atan(r)
        theta_d = theta (1 + k1 theta^2 + k2 theta^4 + k3 theta^6 + k4 theta^8)

        xd = theta_d x / r
        yd = theta_d y / r

    Rays X/Z, Y/Z exist for less than 90 deg from the axis; points beyond are not seen.
    """

    kind: ClassVar[str] = 'equidistant'

    k1: float = parameter(0.0, '1', 'Coefficient of theta^3.')
    k2: float = parameter(0.0, '1', 'Coefficient of theta^5.')
    k3: float = parameter(0.0, '1', 'Coefficient of theta^7.')
    k4: float = parameter(0.0, '1', 'Coefficient of theta^9.')

    @functools.cached_property
    def largest_angle(self) -> float:
        """Angle from the optical axis up to which theta_d grows, rad; at most 90 deg."""
        growth = Polynomial([1.0, 3.0 * self.k1, 5.0 * self.k2, 7.0 * self.k3, 9.0 * self.k4])
        roots = growth.roots()
        squares = roots.real[(np.abs(roots.imag) < _REAL) & (roots.real > 0.0)]
        largest = math.sqrt(squares.min()) if len(squares) else math.inf
        return min(largest, 0.5 * math.pi)

    @property
    def largest_radius(self) -> float:
        """Radius of rays up to which theta_d grows; infinite for a lens that sees 90 deg."""
        angle = self.largest_angle
        return math.tan(angle) if angle < 0.5 * math.pi else math.inf

    def _distorted_angle(self, angle: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return theta_d and its derivative by theta."""
        q = angle * angle
        factor = 1.0 + q * (self.k1 + q * (self.k2 + q * (self.k3 + q * self.k4)))
        slope = 1.0 + q * (
            3.0 * self.k1 + q * (5.0 * self.k2 + q * (7.0 * self.k3 + q * 9.0 * self.k4))
        )
        return angle * factor, slope

    def apply(self, rays: FloatArray) -> FloatArray:
        """Return distorted rays `(n, 2)`."""
        radius = np.hypot(rays[:, 0], rays[:, 1])
        distorted, _ = self._distorted_angle(np.arctan(radius))
        with np.errstate(invalid='ignore', divide='ignore'):
            scale = np.where(radius > 0.0, distorted / radius, 1.0)
        return np.asarray(rays * scale[:, None])

    def jacobian(self, rays: FloatArray) -> FloatArray:
        """Return the derivative of distorted rays with respect to rays, `(n, 2, 2)`."""
        radius = np.hypot(rays[:, 0], rays[:, 1])
        distorted, slope = self._distorted_angle(np.arctan(radius))
        # The derivative is s I + (ds/dr / r) (x, y)' (x, y) for the scale s = theta_d / r, which
        # is 1 + (k1 - 1/3) r^2 + (1/5 - k1 + k2) r^4 near the axis.
        first, second = self.k1 - 1.0 / 3.0, 0.2 - self.k1 + self.k2
        square = radius * radius
        is_near = radius < _NEAR_AXIS
        far = np.where(is_near, 1.0, radius)
        scale = np.where(is_near, 1.0 + square * (first + square * second), distorted / far)
        bend = (slope / (1.0 + square) - scale) / far**2
        bend = np.where(is_near, 2.0 * first + 4.0 * second * square, bend)
        outer = rays[:, :, None] * rays[:, None, :]
        return np.asarray(scale[:, None, None] * np.eye(2) + bend[:, None, None] * outer)

    def remove(self, distorted: FloatArray) -> FloatArray:
        """Return the rays `(n, 2)` that `apply` maps to `distorted`, by bisection and Newton.

        A row is NaN if there is no such ray.
        """
        distorted = np.asarray(distorted, dtype=np.float64)
        radius = np.hypot(distorted[:, 0], distorted[:, 1])
        largest = self._distorted_angle(np.array(self.largest_angle))[0]
        low, high = np.zeros_like(radius), np.full_like(radius, self.largest_angle)
        # theta_d grows between both ends, so that Newton's steps that leave them are halved ones.
        angle = np.clip(radius, low, high)
        with np.errstate(all='ignore'):
            for _ in range(_BISECTIONS):
                reached, slope = self._distorted_angle(angle)
                error = reached - radius
                low, high = np.where(error < 0.0, angle, low), np.where(error < 0.0, high, angle)
                step = angle - error / slope
                is_inside = (step > low) & (step < high)
                following = np.where(is_inside, step, 0.5 * (low + high))
                following = np.where(error == 0.0, angle, following)
                if not (np.abs(following - angle) > _CONVERGED * angle).any():
                    break
                angle = following
            scale = np.where(radius > 0.0, np.tan(angle) / radius, 1.0)
        rays = distorted * scale[:, None]
        rays[~(radius < largest)] = np.nan
        return np.asarray(rays)


LENSES = variants('a lens model', Lens)

# Names of other programs.
_ALIASES = {
    'radtan': 'plumb_bob', 'radial-tangential': 'plumb_bob', 'brown': 'plumb_bob',
    'equi': 'equidistant', 'fisheye': 'equidistant', 'kannala_brandt': 'equidistant',
    'kannala-brandt': 'equidistant', 'rational': 'rational_polynomial',
}  # fmt: skip


def lens_name(model: object) -> object:
    """Return the kind of the lens that other programs call `model`; other names as they are."""
    return _ALIASES.get(model.lower(), model) if isinstance(model, str) else model


def lens_mapping(value: object, where: str, key: str) -> object:
    """Return a mapping with the `model` of a lens and its coefficients by name.

    Parameters
    ----------
    value : mapping or list
        Coefficients by name, or the model with a list `coefficients`; without `model` they are
        those of `plumb_bob`. A list of four or five is one of `plumb_bob`, as Kalibr's radtan.
    where, key : str
        File and key, for messages.

    Raises
    ------
    ParameterError
        When the length of a list does not fit the model.

    Examples
    --------
    >>> lens_mapping({'model': 'fisheye', 'coefficients': [0.01, 0.0, 0.0, 0.0]}, '', '')
    {'model': 'equidistant', 'k1': 0.01, 'k2': 0.0, 'k3': 0.0, 'k4': 0.0}
    """
    if isinstance(value, (list, tuple)):
        value = {'coefficients': value}
    if not isinstance(value, Mapping):
        return value
    mapping = {**value, 'model': lens_name(value.get('model', PlumbBob.kind))}
    if 'coefficients' not in mapping or mapping['model'] not in LENSES.names():
        return mapping
    listed = mapping.pop('coefficients')
    names = list(LENSES.get(str(mapping['model'])).declarations())
    least = 4 if mapping['model'] == PlumbBob.kind else len(names)
    if not isinstance(listed, (list, tuple)) or not least <= len(listed) <= len(names):
        lengths = ' or '.join(map(str, range(least, len(names) + 1)))
        raise ParameterError(
            where,
            f'{key}.coefficients' if isinstance(value, Mapping) and 'model' in value else key,
            f'{listed!r} is not allowed; {mapping["model"]} has {lengths} coefficients: '
            f'{", ".join(names)}',
        )
    return {**mapping, **dict(zip(names, listed, strict=False))}


def lens_of(model: str, coefficients: Sequence[float]) -> Lens | None:
    """Return the lens of a sensor_msgs/CameraInfo; None for an unknown model or length."""
    try:
        mapping = lens_mapping({'model': model, 'coefficients': list(coefficients)}, '', '')
    except ParameterError:
        return None
    assert isinstance(mapping, Mapping)
    if mapping['model'] not in LENSES.names():
        return None
    values = {name: value for name, value in mapping.items() if name != 'model'}
    lens: Lens = LENSES.get(mapping['model'])(**values)
    return lens
