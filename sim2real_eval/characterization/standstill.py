# SPDX-License-Identifier: Apache-2.0
"""When a sensor stood still, and whether its values at rest have the expected units."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.characterization import findings
from sim2real_eval.characterization.screening import resolution
from sim2real_eval.characterization.signals import SignalFileError, Signals, quantity_of, unit_of
from sim2real_eval.common.findings import Finding
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, parameter
from sim_sensors.world.geodesy import STANDARD_GRAVITY

# Fewer scatter so much that still windows look like others.
_FEWEST_IN_WINDOW = 50
_UNIT_OPTIONS = {'gyroscope': '--gyro-unit', 'accelerometer': '--accel-unit'}


@dataclasses.dataclass(frozen=True)
class StandstillOptions(Parameters):
    """What counts as standing still, window by window."""

    window: float = parameter(
        1.0, 's', 'Length of a window; at least 50 samples.', minimum=0.0, minimum_excluded=True
    )
    noise_ratio: float = parameter(
        2.5,
        '1',
        'Largest noise of a window over that of the quietest twentieth of the windows.',
        minimum=1.0,
        minimum_excluded=True,
    )
    rate_limit: float = parameter(
        0.02, 'rad/s', 'Largest mean rate of a window beside the median of the still ones.'
    )
    acceleration_limit: float = parameter(
        0.3, 'm/s^2', 'Largest mean acceleration of a window beside that median.'
    )
    speed_limit: float = parameter(
        0.2, 'm/s', 'Largest true speed in a window, where the recording tells it.', minimum=0.0
    )
    turn_limit: float = parameter(
        0.02,
        'rad/s',
        'Largest median of the true rate of turn in a window, where the recording tells it.',
        minimum=0.0,
    )
    rate_noise: float = parameter(
        0.2, 'rad/s', 'Noise of the rate in a window above which nothing stands still.'
    )
    acceleration_noise: float = parameter(
        1.5, 'm/s^2', 'Noise of the acceleration in a window above which nothing stands still.'
    )


@dataclasses.dataclass(frozen=True)
class StandstillInterval:
    """The longest time without motion.

    Attributes
    ----------
    start, stop : int
        Samples from `start` to before `stop`.
    still, windows : int
        Windows of the whole record that are still, and how many there are.
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

    Parameters
    ----------
    signals : Signals
        Evenly spaced.
    rate : float
        Hz.
    options : StandstillOptions, optional

    Raises
    ------
    SignalFileError
        When no window is still: by how much the best fails; or there are fewer than 3.
    """
    options = options or StandstillOptions()
    size = max(round(options.window * rate), _FEWEST_IN_WINDOW)
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
                '--motion keep analyses it all the same'
            )
        still = passed

    if signals.motion is not None:
        speed, turn = signals.motion[: size * count].reshape(count, size, 2).transpose(2, 0, 1)
        keep(speed.max(axis=1), options.speed_limit, 'the true speed', 'm/s')
        # One that is measured, too, is noisy: not the largest.
        keep(np.median(turn, axis=1), options.turn_limit, 'the true rate of turn', 'rad/s')
    limits = {
        'gyroscope': (options.rate_noise, options.rate_limit),
        'accelerometer': (options.acceleration_noise, options.acceleration_limit),
    }
    noises, means, steps = _windows(signals, size, count)
    for quantity, noise in noises.items():
        unit = unit_of(f'{quantity}_x')
        doubt = f'{quantity} noise (is the unit right? {_UNIT_OPTIONS[quantity]})'
        keep(noise, limits[quantity][0], doubt, unit)
        # Values that go up and down by one step now and then have windows without any noise.
        floor = float(np.hypot(np.quantile(noise, 0.05), 0.5 * steps[quantity]))
        keep(noise, options.noise_ratio * floor, f'{quantity} noise', unit)
    # The truth, where there is one, tells a motion from a bias that wanders far.
    for quantity, mean in means.items() if signals.motion is None else ():
        away = np.sqrt(((mean - np.median(mean[still], axis=0)) ** 2).sum(axis=1))
        keep(
            away,
            limits[quantity][1],
            f'the {quantity} beside its median',
            unit_of(f'{quantity}_x'),
        )
    first, last = _longest_run(still)
    # What is left over at the end belongs to the last window.
    stop = len(signals) if last == count else last * size
    return StandstillInterval(first * size, stop, int(still.sum()), count)


def _windows(
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
        # Without the furthest fiftieth: a lone outlier is no motion.
        squares = np.partition((cut - centre[:, None]) ** 2, last, axis=1)[:, : last + 1]
        noises[quantity] = noises.get(quantity, np.zeros(count)) + squares.mean(axis=1)
    return (
        {quantity: np.sqrt(noise) for quantity, noise in noises.items()},
        {quantity: np.stack(columns, axis=1) for quantity, columns in means.items()},
        steps,
    )


def _longest_run(flags: NDArray[np.bool_]) -> tuple[int, int]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.view(np.int8), [0]])))
    starts, stops = edges[::2], edges[1::2]
    longest = int(np.argmax(stops - starts))
    return int(starts[longest]), int(stops[longest])


# What an IMU at rest measures when its numbers are not in the units they are taken for.
#
# Gravity tells the unit of an accelerometer. A gyroscope at rest measures noise and
# bias only. The
# data sheets of the catalogue state 0.005 to 0.014 deg/s/sqrt(Hz) of noise, and degrees
# taken for
# radians make that 57 times larger, so ten times the worst of them is told.

_NOISIEST = math.radians(0.15)
_GRAVITY_TOLERANCE = 0.1


def unit_warnings(means: Mapping[str, float], whites: Mapping[str, float]) -> list[Finding]:
    """Return what is hard to believe, each with the option that corrects it.

    Parameters
    ----------
    means : mapping
        Of an axis at rest, rad/s or m/s^2, by its name in `signals.AXES`.
    whites : mapping
        Its white noise, the same per sqrt(Hz).
    """
    notes = []
    force = [mean for axis, mean in means.items() if axis.startswith('accelerometer')]
    if len(force) == 3:
        size = float(np.linalg.norm(force))
        for unit, gravity in (('g', 1.0), ('mg', 1000.0)):
            if abs(size / gravity - 1.0) < 2.0 * _GRAVITY_TOLERANCE:
                notes.append(findings.UNIT_IS_G(force=size, unit=unit))
                break
        else:
            if abs(size / STANDARD_GRAVITY - 1.0) > _GRAVITY_TOLERANCE:
                notes.append(findings.NOT_GRAVITY(force=size, gravity=STANDARD_GRAVITY))
    noises = [white for axis, white in whites.items() if axis.startswith('gyroscope')]
    if noises and float(np.median(noises)) > _NOISIEST:
        notes.append(findings.UNIT_IS_DEGREES(noise=float(np.median(noises))))
    return notes
