# SPDX-License-Identifier: Apache-2.0
"""Hermite polynomials between samples, and the differences that supply missing slopes.

All arrays have time first, `(n, 3)`; `h` is the length of each interval in seconds, `(n, 1)`, and
`s` the place in it, 0 to 1, `(n, 1)`. `start` and `end` are a value, its slope and, of a quintic,
its second derivative.
"""

from __future__ import annotations

import numpy as np

from sim_sensors.core.measurements import FloatArray

Slope = tuple[FloatArray, FloatArray]
Bend = tuple[FloatArray, FloatArray, FloatArray]


def cubic(
    s: FloatArray, h: FloatArray, start: Slope, end: Slope
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Value, first and second derivative of the cubic with given values and slopes at its ends."""
    p0, m0, b, c = _newton(h, start, end)
    value = p0 + h * s * (m0 + s * (b + s * c))
    first = m0 + s * (2.0 * b + 3.0 * s * c)
    second = (2.0 * b + 6.0 * s * c) / h
    return value, first, second


def cubic_integral(s: FloatArray, h: FloatArray, start: Slope, end: Slope) -> FloatArray:
    """Integral over time of `cubic` from the start of the interval to `s`."""
    p0, m0, b, c = _newton(h, start, end)
    return h * s * (p0 + h * s * (m0 / 2.0 + s * (b / 3.0 + s * c / 4.0)))


def _newton(h: FloatArray, start: Slope, end: Slope) -> tuple[FloatArray, ...]:
    """Return p0, m0, b and c of the cubic as p0 + h s (m0 + s (b + s c))."""
    (p0, m0), (p1, m1) = start, end
    jump = p1 - p0
    return p0, m0, 3.0 * jump / h - 2.0 * m0 - m1, m0 + m1 - 2.0 * jump / h


def quintic(
    s: FloatArray, h: FloatArray, start: Bend, end: Bend
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Value, first and second derivative of the quintic with given values, slopes and second
    derivatives at both ends.
    """
    p0, m0, a0 = start
    p1, m1, a1 = end
    # What the parabola of the start leaves to be made up at the end, in units of s.
    value_left = p1 - p0 - h * m0 - 0.5 * h * h * a0
    slope_left = h * (m1 - m0 - h * a0)
    curve_left = h * h * (a1 - a0)
    c3 = 10.0 * value_left - 4.0 * slope_left + 0.5 * curve_left
    c4 = -15.0 * value_left + 7.0 * slope_left - curve_left
    c5 = 6.0 * value_left - 3.0 * slope_left + 0.5 * curve_left
    cube = s * s * s
    value = p0 + h * s * (m0 + 0.5 * h * s * a0) + cube * (c3 + s * (c4 + s * c5))
    first = m0 + h * s * a0 + s * s * (3.0 * c3 + s * (4.0 * c4 + 5.0 * s * c5)) / h
    second = a0 + s * (6.0 * c3 + s * (12.0 * c4 + 20.0 * s * c5)) / (h * h)
    return value, first, second


def parabola(
    h_before: FloatArray, before: FloatArray, h_after: FloatArray, after: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Slope and second derivative at the middle one of three unevenly spaced samples.

    `before` and `after` are the steps from the sample before to the middle, and from the middle to
    the sample after, `(n, 3)`; `h_before` and `h_after` `(n, 1)` their times, s. For the end of a
    record both samples may lie on one side; the time (and the step) of the one on the wrong side
    is then negative.
    """
    rate_before, rate_after = before / h_before, after / h_after
    span = h_before + h_after
    slope = (h_after * rate_before + h_before * rate_after) / span
    second = 2.0 * (rate_after - rate_before) / span
    return np.asarray(slope), np.asarray(second)
