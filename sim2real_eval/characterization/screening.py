# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Faults of a record at rest: outliers, motion, and values in other units.

Outliers are replaced and counted, and what replacing them does to the noise is told. Two rules:

robust
    Values further than `factor` (6) robust deviations from the median of their block of about a
    second take that median. The deviation is 1.4826 times the median absolute deviation of the
    whole record ([Hampel1974]), and at least one step of the sensor's resolution, for where more
    than half of the values are alike that median is 0. A share of 2e-9 of clean Gaussian data is
    replaced.
iqr
    The rule of [Cesenek2019], section 3.1.3: values outside [Q1 - factor IQR, Q3 + factor IQR]
    take the mean of the record; the factor is 1.0 there, not the usual 1.5. It is +-2.02 sigma:
    4.3 % of clean Gaussian data are replaced, the standard deviation shrinks to 0.865 and white
    noise comes out 13.5 % low.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from sim2real_eval.common.findings import Finding
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter
from sim_sensors.world.geodesy import STANDARD_GRAVITY
from . import findings
from .signals import UNIT_OPTIONS, SignalFileError, Signals, quantity_of, unit_of

FACTORS = {'robust': 6.0, 'iqr': 1.0}
"""Default factor of each rule."""
_QUARTILE = float(norm.ppf(0.75))
_MIN_IN_BLOCK = 32
_SAMPLE = 200_000


@dataclasses.dataclass(frozen=True, eq=False)
class Screened:
    """An axis without outliers.

    `values` `(n,)` are the array given, or a copy where samples were replaced, the furthest by
    `largest` u. `noise_ratio` is noise after over before, as the root mean square of differences
    of neighbours, and `gaussian_ratio` the same for clean Gaussian noise: what the rule itself
    does.
    """

    values: FloatArray
    replaced: int
    largest: float
    noise_ratio: float
    gaussian_ratio: float


def screen(
    values: FloatArray, rate: float, rule: str = 'robust', factor: float | None = None
) -> Screened:
    """Replace outliers of values, `(n,)` u at `rate` Hz, by the rule `robust`, `iqr` or `none`.

    `factor`, above 0, is by default that of the rule.
    """
    if rule == 'none':
        return Screened(values, 0, 0.0, 1.0, 1.0)
    factor = FACTORS[rule] if factor is None else factor
    if rule == 'iqr':
        low, high = np.quantile(values, [0.25, 0.75])
        reach = factor * (high - low)
        out = (values < low - reach) | (values > high + reach)
        centre: FloatArray = np.full(len(values), values.mean())
        limit = _QUARTILE * (1.0 + 2.0 * factor)
    else:
        centre = _block_medians(values, rate)
        away = np.abs(values - centre)
        scale = max(float(np.median(away)) / _QUARTILE, resolution(values))
        out = away > factor * scale
        limit = factor
    count = int(out.sum())
    if not count:
        return Screened(values, 0, 0.0, 1.0, gaussian_shrinkage(limit))
    clean = np.where(out, centre, values)
    return Screened(
        values=clean,
        replaced=count,
        largest=float(np.abs(values - centre)[out].max()),
        noise_ratio=_noise(clean) / _noise(values),
        gaussian_ratio=gaussian_shrinkage(limit),
    )


def gaussian_shrinkage(limit: float) -> float:
    """Return the standard deviation of Gaussian noise after what lies beyond +-limit standard
    deviations has become its mean, over that before.

    The variance is 1 - 2 (limit phi(limit) + Q(limit)), with phi the density and Q the tail.

    Examples
    --------
    >>> round(gaussian_shrinkage(0.6745 * 3), 3)
    0.865
    """
    return math.sqrt(1.0 - 2.0 * (limit * float(norm.pdf(limit)) + float(norm.sf(limit))))


def resolution(values: FloatArray) -> float:
    """Return the step that all values are multiples apart of, u; 0 where there is none.

    Looks at the first 200 000 samples. A step is believed when values come back again and again
    and all neighbouring levels are whole steps apart to 5 %, which single-precision files allow.
    """
    levels = np.unique(values[:_SAMPLE])
    if len(levels) < 3 or len(levels) > len(values[:_SAMPLE]) / 8:
        return 0.0
    steps = np.diff(levels)
    # Rounded copies of one level, as conversions leave them, are no steps.
    steps = steps[steps > 1e-6 * max(abs(levels[0]), abs(levels[-1]))]
    if not len(steps):
        return 0.0
    finest = float(np.median(steps[steps < 1.5 * steps.min()]))
    ratio = steps / finest
    return finest if float(np.abs(ratio - np.rint(ratio)).max()) < 0.05 else 0.0


def _block_medians(values: FloatArray, rate: float) -> FloatArray:
    size = max(round(rate), _MIN_IN_BLOCK)
    count = len(values) // size
    if count == 0:
        return np.full(len(values), np.median(values))
    windows = values[: count * size].reshape(count, size)
    medians = np.zeros(values.shape)
    filled = medians[: count * size].reshape(count, size)
    filled[:] = np.median(windows, axis=1, keepdims=True)
    medians[count * size :] = filled[-1, 0]
    return medians


def _noise(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.diff(values) ** 2)))


# Fewer scatter so much that still windows look like others.
_MIN_IN_WINDOW = 50


@dataclasses.dataclass(frozen=True)
class StandstillOptions(Parameters):
    """Limits of standing still, window by window."""

    window: float = parameter(1.0, 's', 'Length of a window; at least 50 samples.', above=0.0)
    noise_ratio: float = parameter(
        2.5,
        '1',
        'Largest noise of a window at rest, relative to the quietest twentieth of the windows.',
        above=1.0,
    )
    rate_limit: float = parameter(
        0.02,
        'rad/s',
        'Largest deviation of the mean rate of a window from the median of the windows at rest.',
    )
    acceleration_limit: float = parameter(
        0.3, 'm/s^2', 'Largest deviation of the mean acceleration of a window from that median.'
    )
    speed_limit: float = non_negative(
        0.2, 'm/s', 'Largest true speed in a window, if the recording has a truth.'
    )
    turn_limit: float = non_negative(
        0.02,
        'rad/s',
        'Largest median of the true angular rate in a window, if the recording has a truth.',
    )
    rate_noise: float = parameter(
        0.2, 'rad/s', 'Noise of the angular rate above which a window is never at rest.'
    )
    acceleration_noise: float = parameter(
        1.5, 'm/s^2', 'Noise of the acceleration above which a window is never at rest.'
    )


@dataclasses.dataclass(frozen=True)
class StandstillInterval:
    """The longest time without motion: samples from `start` to before `stop`; and how many windows
    of the whole record are still, of how many.
    """

    start: int
    stop: int
    still: int
    windows: int


def longest_standstill(
    signals: Signals, rate: float, options: StandstillOptions | None = None
) -> StandstillInterval:
    """Find the longest run of windows in which nothing moves.

    A window is still when the noise in it is not much above that of the quietest windows, and its
    mean is near the median of such windows; a steady turn or a slope is quiet too, but not there.
    A bias is no motion, however large, nor is its slow drift. So a steady drive looks like rest,
    and a turn that never changes like a bias, unless the recording tells the true motion, which
    then counts in place of the means.

    `signals` are evenly spaced at `rate` Hz. SignalFileError when no window is still, with by how
    much the best fails, or there are fewer than 3.
    """
    options = options or StandstillOptions()
    size = max(round(options.window * rate), _MIN_IN_WINDOW)
    count = len(signals) // size
    if count < 3:
        raise SignalFileError(
            f'{signals.name}: {len(signals)} samples are too short to tell motion from noise; '
            f'must be {3 * size} or more'
        )
    still = np.ones(count, dtype=np.bool_)

    def keep(values: FloatArray, limit: float, what: str, unit: str) -> None:
        nonlocal still
        passed = still & (values <= limit)
        if not passed.any():
            raise SignalFileError(
                f'{signals.name}: the sensor never stands still: {what} is '
                f'{values[still].min():.3g} {unit} at least; must be {limit:.3g} or less; '
                '--moving keep analyses it all the same'
            )
        still = passed

    if signals.motion is not None:
        motion = signals.motion[: size * count].reshape(count, size, 2)
        speed = motion[:, :, 0].max(axis=1)
        keep(speed, options.speed_limit, 'the true speed', 'm/s')
        # One that is measured, too, is noisy: not the largest.
        turn = np.median(motion[:, :, 1], axis=1)
        keep(turn, options.turn_limit, 'the true rate of turn', 'rad/s')
    limits = {
        'gyroscope': (options.rate_noise, options.rate_limit),
        'accelerometer': (options.acceleration_noise, options.acceleration_limit),
    }
    noises, means, steps = windows_of(signals, size, count)
    for quantity, noise in noises.items():
        unit = unit_of(f'{quantity}_x')
        doubt = f'{quantity} noise (is the unit right? {UNIT_OPTIONS[quantity]})'
        keep(noise, limits[quantity][0], doubt, unit)
        limit = options.noise_ratio * noise_floor(noise, steps[quantity])
        keep(noise, limit, f'{quantity} noise', unit)
    # The truth, where there is one, tells a motion from a bias that wanders far.
    for quantity, mean in means.items() if signals.motion is None else ():
        away = np.sqrt(((mean - np.median(mean[still], axis=0)) ** 2).sum(axis=1))
        name = f'the {quantity} beside its median'
        keep(away, limits[quantity][1], name, unit_of(f'{quantity}_x'))
    first, last = max(runs_of(still), key=lambda run: run[1] - run[0])
    # The remainder at the end belongs to the last window.
    stop = len(signals) if last == count else last * size
    return StandstillInterval(first * size, stop, int(still.sum()), count)


def windows_of(
    signals: Signals, size: int, count: int
) -> tuple[dict[str, FloatArray], dict[str, FloatArray], dict[str, float]]:
    """Return noise, `(count,)`, and medians, `(count, axes)`, of the windows, and the resolution
    of all axes together, by quantity.
    """
    noises: dict[str, FloatArray] = {}
    means: dict[str, list[FloatArray]] = {}
    steps: dict[str, float] = {}
    last = size - 1 - size // 50
    for axis in signals.axes:
        cut = signals.column(axis)[: size * count].reshape(count, size)
        quantity = quantity_of(axis)
        steps[quantity] = float(np.hypot(steps.get(quantity, 0.0), resolution(cut.ravel())))
        centre = np.median(cut, axis=1)
        means.setdefault(quantity, []).append(centre)
        squares = _mean_square(cut, centre, last)
        noises[quantity] = noises.get(quantity, np.zeros(count)) + squares
    return (
        {quantity: np.sqrt(noise) for quantity, noise in noises.items()},
        {quantity: np.stack(columns, axis=1) for quantity, columns in means.items()},
        steps,
    )


def _mean_square(windows: FloatArray, centre: FloatArray, last: int) -> FloatArray:
    """Return the mean square about the centre of each window, `(count,)`, without its furthest
    samples: those after the `last` nearest.
    """
    # The furthest fiftieth is left out: a lone outlier is no motion.
    squares = np.partition((windows - centre[:, None]) ** 2, last, axis=1)[:, : last + 1]
    return np.asarray(squares.mean(axis=1))


def noise_floor(noise: FloatArray, step: float) -> float:
    """Return the noise at rest, of that of all windows and the resolution.

    Values that go up and down by one step now and then have windows without any noise.
    """
    return float(np.hypot(np.quantile(noise, 0.05), 0.5 * step))


def runs_of(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the first of each run of set flags, and the one after its last."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.view(np.int8), [0]]))).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


# Measurements of an IMU at rest whose numbers have another unit than the assumed one.
#
# Gravity tells the unit of an accelerometer. A gyroscope at rest measures noise and bias only. The
# data sheets of the catalogue state 0.005 to 0.014 deg/s/sqrt(Hz) of noise, and degrees taken for
# radians make that 57 times larger, so ten times the worst of them is told.

_NOISIEST = math.radians(0.15)
_GRAVITY_TOLERANCE = 0.1
# A horizontal axis in m/s^2 that is tilted by 6 degrees also shows about 1.
_VERTICAL_TOLERANCE = 0.03


def unit_warnings(means: Mapping[str, float], whites: Mapping[str, float]) -> list[Finding]:
    """Return what is hard to believe, each with the option that corrects it.

    Means at rest, rad/s or m/s^2, and white noise, the same per sqrt(Hz), by axis as in
    `signals.AXES`. Fewer than three axes of an accelerometer tell its unit if one of them is
    vertical.
    """
    notes = []
    force = [mean for axis, mean in means.items() if axis.startswith('accelerometer')]
    size = float(np.linalg.norm(force))
    is_whole = len(force) == 3
    tolerance = 2.0 * _GRAVITY_TOLERANCE if is_whole else _VERTICAL_TOLERANCE
    for unit, gravity in (('g', 1.0), ('mg', 1000.0)):
        if abs(size / gravity - 1.0) < tolerance:
            notes.append(findings.UNIT_IS_G(force=size, unit=unit))
            break
    else:
        largest = (1.0 + _GRAVITY_TOLERANCE) * STANDARD_GRAVITY
        smallest = (1.0 - _GRAVITY_TOLERANCE) * STANDARD_GRAVITY if is_whole else 0.0
        if force and not smallest <= size <= largest:
            notes.append(findings.NOT_GRAVITY(force=size, gravity=STANDARD_GRAVITY))
    noises = [white for axis, white in whites.items() if axis.startswith('gyroscope')]
    if noises and float(np.median(noises)) > _NOISIEST:
        notes.append(findings.UNIT_IS_DEGREES(noise=float(np.median(noises))))
    return notes
