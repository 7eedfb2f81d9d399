# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Fixes of an antenna that stands still, in metres about their mean."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from sim2real_eval.common.findings import Finding
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.truth import local_frame_at_first_fix
from sim_sensors.core.measurements import FixArray, FloatArray, IntArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter
from . import findings
from .screening import longest_standstill, runs_of
from .signals import SignalFileError, evenly_spaced, signals_of

# Farther away [m] than receivers at rest jump.
_FAR = 60.0
# Share of the growth in `_has_steady_speed` that a drive has at least. In 300 s it was at most
# 0.19 for Gauss-Markov errors and jumps, and for a drive there and back or in circles of 5 m,
# with 1 m of white noise, at least 0.6.
_STEADY = 0.25


@dataclasses.dataclass(frozen=True)
class StandingOptions(Parameters):
    """When an antenna stands still."""

    speed: float = non_negative(0.1, 'm/s', 'Largest true speed, where the recording has a truth.')
    drift: float = non_negative(
        0.2,
        'm/s',
        'Largest horizontal speed between the means of neighbouring windows of fixes, '
        'unless their noise explains a higher speed.',
    )
    window: float = parameter(5.0, 's', 'Length of these windows.', above=0.0)
    margin: float = non_negative(1.0, 's', 'Time excluded after stopping and before starting.')
    shortest: float = parameter(8.0, 's', 'Shortest standstill that is used.', above=0.0)
    fewest: int = parameter(20, '1', 'Fewest fixes of a standstill.', minimum=8)
    reject_motion: bool = parameter(True, '', 'Exclude fixes recorded in motion.')


@dataclasses.dataclass(frozen=True, eq=False)
class StandingRun:
    """One standstill of the recording `name`.

    `start` is in s since the first fix of the recording, `time` `(n,)` in s since its own first
    fix, increasing; `error` `(n, 3)` m, east-north-up, is about the mean, as a constant error
    cannot be seen; `covariance` `(n, 3, 3)` m^2 is as stated.
    """

    name: str
    start: float
    time: FloatArray
    error: FloatArray
    covariance: FloatArray

    @property
    def seconds(self) -> float:
        """Length."""
        return float(self.time[-1])


def standing_runs(
    recording: Recording, options: StandingOptions | None = None
) -> tuple[list[StandingRun], list[Finding]]:
    """Return the standstills of a recording's GPS, and notes.

    Whether it stands is told by the true speed where there is truth. Otherwise the fixes stand
    where the means of neighbouring windows stay together or the IMU stands still, or all of them
    do because they have neither a net motion nor a steady speed. SignalFileError when there is no
    GPS, no valid fix, or nothing stands still for long enough.
    """
    options = options or StandingOptions()
    where = recording.path or recording.name
    fixes = recording.gps
    if fixes is None:
        raise SignalFileError(f'{where}: no topic of a GPS; name one with --topic gps=')
    valid = fixes.is_valid
    valid &= np.concatenate([[True], np.diff(np.maximum.accumulate(fixes.stamp_ns)) > 0])
    notes: list[Finding] = []
    if not valid.all():
        notes.append(findings.BAD_FIXES(count=(~valid).sum(), fixes=len(fixes)))
    fixes = fixes.take(valid)
    if len(fixes) < options.fewest:
        raise SignalFileError(
            f'{where}: {len(fixes)} fixes are too few; must be {options.fewest} or more'
        )
    time = (fixes.stamp_ns - fixes.stamp_ns[0]) * 1e-9
    place = local_frame_at_first_fix(fixes).to_enu(fixes.latitude, fixes.longitude, fixes.altitude)
    if time[-1] < options.shortest:
        raise SignalFileError(
            f'{where}: fixes for {time[-1]:.3g} s are too few; must be {options.shortest:g} s '
            'or more'
        )
    speed = _true_speed(recording, fixes.stamp_ns)
    if not options.reject_motion:
        still, reason = np.ones(len(time), dtype=np.bool_), ''
    elif speed is not None:
        still = speed <= options.speed
        reason = f'the true speed is {speed.min():.3g} m/s at least'
    else:
        pace, still = _own_speed(time, place, options)
        still |= _at_rest_with_imu(recording, fixes.stamp_ns, place, options)
        goes_nowhere = not (
            _has_net_motion(time, place, options) or _has_steady_speed(time, place, options)
        )
        if goes_nowhere and not still.all():
            away = np.linalg.norm((place - place.mean(axis=0))[:, :2], axis=1).max()
            notes.append(findings.WANDERS(share=1.0 - still.mean(), away=away))
            still[:] = True
        reason = f'the fixes drift by {pace:.3g} m/s at least'
    limit = options.speed if speed is not None else options.drift
    runs = _runs(recording.name, time, place, fixes, still, options)
    if not runs:
        if still.any():
            raise SignalFileError(
                f'{where}: the GPS never stands still for {options.shortest:g} s with '
                f'{options.fewest} fixes; --moving keep analyses it all the same'
            )
        raise SignalFileError(
            f'{where}: the GPS never stands still: {reason}; must be {limit:g} m/s or less; '
            '--moving keep analyses it all the same'
        )
    share = sum(len(run.time) for run in runs) / len(fixes)
    if share < 0.999:
        spans = ', '.join(f'{run.start:.4g} to {run.start + run.seconds:.4g} s' for run in runs)
        notes.append(findings.STANDS_STILL(share=share, spans=spans))
        used = np.any([(time >= r.start) & (time <= r.start + r.seconds) for r in runs], axis=0)
        away = np.linalg.norm((place - place[used].mean(axis=0))[:, :2], axis=1)
        if speed is None and away.max() < _FAR:
            notes.append(findings.JUMPS(away=away.max(), kept=away[used].max()))
    return runs, notes


def _runs(
    name: str,
    time: FloatArray,
    place: FloatArray,
    fixes: FixArray,
    still: NDArray[np.bool_],
    options: StandingOptions,
) -> list[StandingRun]:
    runs = []
    for first, last in runs_of(still):
        begin = time[first] + (options.margin if first else 0.0)
        end = time[last - 1] - (options.margin if last < len(time) else 0.0)
        inside = (time >= begin) & (time <= end)
        if inside.sum() < options.fewest or end - begin < options.shortest:
            continue
        at = time[inside]
        runs.append(
            StandingRun(
                name=name,
                start=float(at[0]),
                time=at - at[0],
                error=place[inside] - place[inside].mean(axis=0),
                covariance=fixes.position_covariance[inside],
            )
        )
    return runs


def _true_speed(recording: Recording, stamp_ns: IntArray) -> FloatArray | None:
    truth = recording.truth
    if truth is None:
        return None
    speed = np.linalg.norm(truth.linear_velocity, axis=1)
    origin = truth.stamp_ns[0]
    at, truth_seconds = (
        (stamps - origin).astype(np.float64) for stamps in (stamp_ns, truth.stamp_ns)
    )
    # Beyond the truth nothing is known.
    return np.asarray(np.interp(at, truth_seconds, speed, left=np.inf, right=np.inf), np.float64)


def _at_rest_with_imu(
    recording: Recording, stamp_ns: IntArray, place: FloatArray, options: StandingOptions
) -> NDArray[np.bool_]:
    """Return the fixes, (n,), in the longest standstill of the IMU, if they go nowhere in it.

    A steady drive is rest for an IMU, but its fixes have a steady speed and a net motion.
    """
    nothing = np.zeros(len(stamp_ns), dtype=np.bool_)
    try:
        even = evenly_spaced(signals_of(recording))
        assert even.rate is not None
        standstill = longest_standstill(even, even.rate)
    except SignalFileError:
        return nothing
    assert recording.imu is not None
    begin, end = recording.imu.stamp_ns[[0, -1]].tolist()
    if len(even) < 0.99 * (end - begin) * 1e-9 * even.rate:
        return nothing  # a gap cut the record, and where its longest piece begins is open
    at = (stamp_ns - begin) * 1e-9 * even.rate
    inside: NDArray[np.bool_] = (at >= standstill.start) & (at <= standstill.stop)
    time, track = at[inside] / even.rate, place[inside]
    drives = _has_net_motion(time, track, options) and _has_steady_speed(time, track, options)
    return nothing if drives else inside


def _has_net_motion(time: FloatArray, place: FloatArray, options: StandingOptions) -> bool:
    """Return whether the means of the first and the last quarter are apart by the drift."""
    quarter = len(time) // 4
    if not quarter:
        return True
    ends = [place[part, :2].mean(axis=0) for part in (slice(quarter), slice(-quarter, None))]
    seconds = time[-quarter:].mean() - time[:quarter].mean()
    return bool(np.linalg.norm(ends[1] - ends[0]) > options.drift * seconds)


def _has_steady_speed(time: FloatArray, place: FloatArray, options: StandingOptions) -> bool:
    """Return whether the fixes, `(n, 3)` m, have a speed of their own, as a vehicle has.

    The mean square of their change over a lag grows with the square of the lag while a vehicle
    drives, in proportion to it for jumps and random walks, and not at all for white noise. These
    three are fitted, with coefficients >= 0, to lags up to two windows. The speed is steady if
    the square is more than `_STEADY` of the growth over a window, or in records too short to tell.
    """
    window = max(round(options.window / float(np.median(np.diff(time)))), 3)
    if len(time) < 4 * window:
        return True
    lags = np.unique(np.linspace(1, 2 * window, 12).round().astype(np.int64))
    squares = [np.mean(np.sum((place[k:, :2] - place[:-k, :2]) ** 2, axis=1)) for k in lags]
    share = lags / window
    shapes = np.stack([np.ones(len(lags)), share, share**2], axis=1)
    # Relative errors count alike at all lags.
    relative = shapes / np.maximum(squares, 1e-12)[:, None]
    (_, walk, drive), _ = nnls(relative, np.ones(len(lags)))
    return bool(drive > _STEADY * (walk + drive))


def _own_speed(
    time: FloatArray, place: FloatArray, options: StandingOptions
) -> tuple[float, NDArray[np.bool_]]:
    """Return the slowest speed between windows, and which fixes stand still, (n,)."""
    number = np.floor(time / options.window).astype(np.int64)
    windows = np.unique(number)
    plane = place[:, :2]
    centre = np.stack([plane[number == window].mean(axis=0) for window in windows])
    middle = np.array([time[number == window].mean() for window in windows])
    counts = np.array([(number == window).sum() for window in windows])
    if len(windows) < 2:
        return 0.0, np.ones(len(time), dtype=np.bool_)
    step = np.linalg.norm(np.diff(centre, axis=0), axis=1)
    pace = step / np.diff(middle)
    # White noise as differences of neighbours show it, without a steady drive.
    jumps = np.diff(plane, axis=0)
    jumps = jumps - np.median(jumps, axis=0)
    white = 1.4826 * float(np.median(np.abs(jumps))) / np.sqrt(2.0)
    noise = white * np.sqrt(1.0 / counts[1:] + 1.0 / counts[:-1])
    calm = step <= np.maximum(options.drift * np.diff(middle), 6.0 * noise)
    # A window is still when it stays where both its neighbours are.
    still = np.concatenate([[True], calm]) & np.concatenate([calm, [True]])
    return float(pace.min()), still[np.searchsorted(windows, number)]
