# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Fixes beside the truth, and the turn, scale and delay between them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property

import numpy as np

from sim2real_eval.recording.truth import local_frame_at_first_fix
from sim_sensors.core import rotations
from sim_sensors.core.blocks import seconds
from sim_sensors.core.measurements import FixArray, FloatArray, OdometryArray
from .arrays import plane
from .delays import EXPLAINED, DelayFit, fit_delay, has_longer_delays

_WINDOW_S = 2.0
"""Time over which fixes are differenced. Slow errors of a receiver, tens of seconds long, cancel,
and the remaining errors are nearly independent from one window to the next."""
_MIN_EXTENT_M = 2.0
_LEAPS_S = (18.0, -18.0, 37.0, -37.0)


@dataclasses.dataclass(frozen=True)
class Track:
    """Positions of the fixes and of the truth at the antenna.

    Attributes
    ----------
    stamps : (n,) float
        Times of the fixes, s since the truth began.
    measured : (n,) complex
        Fixes, east + i north, m.
    height : (n,) float
        Altitude of the fixes, m, above the first one.
    truth, truth_height : callable
        Return the same of the truth at times, s.
    span : float
        Length of the run, s.
    step : int
        Number of fixes in 2 s.
    """

    stamps: FloatArray
    measured: FloatArray
    height: FloatArray
    truth: Callable[[FloatArray], FloatArray]
    truth_height: Callable[[FloatArray], FloatArray]
    span: float
    step: int

    @cached_property
    def near(self) -> DelayFit:
        """Turn, scale and delay, at most 2 s, from the truth to the fixes.

        The fit is repeated without steps that are ten robust deviations off: jumps of either.
        """
        return self._fit()

    @cached_property
    def in_mirror(self) -> DelayFit:
        """The same from the mirror image of the truth."""
        return self._fit(mirrored=True)

    @cached_property
    def fitted(self) -> DelayFit:
        """The same as `near` with any delay; a mirrored track may look like a late one."""
        is_mirrored = self.in_mirror.explained > EXPLAINED
        is_near = is_mirrored or not has_longer_delays(self.span)
        fit = self.near if is_near else self._fit(longer=True)
        if fit.explained > EXPLAINED:
            return fit
        leap = self._with_leap_seconds()
        limit = 0.2 * self.in_mirror.residual if is_mirrored else fit.residual
        return leap if leap is not None and leap.residual < limit else fit

    def _with_leap_seconds(self) -> DelayFit | None:
        """Return the best fit with stamps of GPS time, 18 s, or atomic time, 37 s ahead of UTC.

        None if leap seconds explain nothing.
        """
        fits = []
        for leap in _LEAPS_S:
            if abs(leap) < 0.5 * self.span:
                fit = dataclasses.replace(self, stamps=self.stamps - leap).near
                fits.append(dataclasses.replace(fit, seconds=fit.seconds + leap))
        best = max(fits, key=lambda fit: fit.explained, default=None)
        return best if best is not None and best.explained > EXPLAINED else None

    @cached_property
    def residual(self) -> FloatArray:
        """Fixes less the truth, (n,) complex m."""
        return np.asarray(self.measured - self.truth(self.stamps))

    @cached_property
    def heights(self) -> tuple[FloatArray, FloatArray]:
        """Heights of the fixes and of the truth without their means, (n,) m each."""
        truth = self.truth_height(self.stamps)
        return self.height - self.height.mean(), truth - truth.mean()

    @property
    def height_correlation(self) -> float:
        """Correlation of both heights; 0 if one of them is constant."""
        fixes, truth = self.heights
        size = float(np.sqrt(np.mean(fixes**2) * np.mean(truth**2)))
        return float(np.mean(fixes * truth)) / size if size >= 1e-6 else 0.0

    def take(self, rows: slice) -> Track:
        """Return the track of some fixes that follow one another."""
        stamps = self.stamps[rows]
        return dataclasses.replace(
            self,
            stamps=stamps,
            measured=self.measured[rows],
            height=self.height[rows],
            span=float(stamps[-1] - stamps[0]),
        )

    def _fit(self, *, mirrored: bool = False, longer: bool = False) -> DelayFit:
        steps_of_fixes = self.measured[self.step :] - self.measured[: -self.step]

        def steps(delay: FloatArray | float) -> FloatArray:
            positions = self.truth(self.stamps - delay)
            positions = np.conj(positions) if mirrored else positions
            return positions[..., self.step :] - positions[..., : -self.step]

        first = fit_delay(steps_of_fixes, steps, self.span, _WINDOW_S, longer=longer)
        true = steps(first.seconds)
        residual = np.abs(steps_of_fixes - first.gain * true)
        kept = residual <= 10.0 * float(np.median(residual))
        # For a robot that rests most of the time, a wrong fit excludes its motion, not jumps.
        moves = float(np.sum(np.abs(true[kept]) ** 2)) > 0.5 * float(np.sum(np.abs(true) ** 2))
        if kept.all() or kept.mean() < 0.5 or not moves:
            return first
        return fit_delay(
            steps_of_fixes[kept],
            lambda delay: steps(delay)[..., kept],
            self.span,
            _WINDOW_S,
            longer=longer,
        )


def make_track(fixes: FixArray, truth: OdometryArray, lever_arm: FloatArray) -> Track | None:
    """Return fixes beside the truth; None if the truth moves by less than 2 m.

    Parameters
    ----------
    fixes : FixArray
        Valid fixes.
    truth : OdometryArray
        Truth of the base frame.
    lever_arm : (3,) float
        Position of the antenna in the base frame, m.
    """
    if float(np.hypot(*np.ptp(truth.position[:, :2], axis=0))) < _MIN_EXTENT_M:
        return None
    frame = local_frame_at_first_fix(fixes)
    # Altitudes in another unit must not scale the track.
    first = float(fixes.altitude[0])
    level = np.full(len(fixes), first if -500.0 < first < 20000.0 else 0.0)
    east, north, _ = frame.to_enu(fixes.latitude, fixes.longitude, level).T
    start = truth.stamp_ns[0]
    time, stamps = (seconds(array.stamp_ns, start) for array in (truth, fixes))
    period = float(np.median(np.diff(stamps)))
    step = min(max(round(_WINDOW_S / max(period, 1e-3)), 1), len(stamps) // 2)
    arms = np.tile(lever_arm, (len(truth), 1))
    antenna = truth.position + rotations.rotate(truth.orientation, arms)
    positions, z = plane(antenna), np.ascontiguousarray(antenna[:, 2])

    def truth_at(times: FloatArray) -> FloatArray:
        return np.asarray(np.interp(times, time, positions))

    return Track(
        stamps,
        np.asarray(east + 1j * north),
        np.asarray(fixes.altitude - fixes.altitude[0]),
        truth_at,
        lambda times: np.asarray(np.interp(times, time, z)),
        float(stamps[-1] - stamps[0]),
        step,
    )
