# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Check of a fitted model: simulate it, analyse it as the recording was, compare.

If the parameters that went in do not come back, the model file would not give the sensor that was
recorded, whatever the reason.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sim_sensors.core.blocks import seconds
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.imu.chain import ImuChain
from sim_sensors.imu.imu import ImuModel
from sim_sensors.motion.sampling import SampleGrid
from sim_sensors.motion.scenarios import Standstill
from .allan import AllanCurve
from .analysis import RecordingResult, combined_terms
from .axis_fit import fit_axis
from .imu_file import chain_model, common_low_pass, passed_bandwidth
from .noise_terms import Coefficient, NoiseTerms, short_terms
from .signals import AXES, quantity_of

_BLOCK = 1 << 16


@dataclasses.dataclass(frozen=True)
class RecoveredParameter:
    """Coefficient of one axis in the model and after its simulation.

    `given` in the model (0 where it has none) and `found` with its uncertainty (0 where the
    simulated record does not show it), SI; `is_recovered` is what `Coefficient.agrees_with` says:
    within three standard uncertainties.
    """

    axis: str
    coefficient: str
    given: float
    found: float
    std: float
    observable: bool
    is_recovered: bool


@dataclasses.dataclass(frozen=True, eq=False)
class Reidentified:
    """A simulated record at rest, analysed: every axis and coefficient, and its curves by axis."""

    recovered_parameters: tuple[RecoveredParameter, ...]
    curves: dict[str, AllanCurve]

    @property
    def lost(self) -> tuple[RecoveredParameter, ...]:
        """Coefficients that did not come back."""
        return tuple(p for p in self.recovered_parameters if not p.is_recovered)


def simulated_standstill(
    model: ImuModel, samples: int, *, seed: int, progress: Callable[[], None] | None = None
) -> FloatArray:
    """Return what a model measures at rest, `(samples, 6)` in the order of `AXES`.

    Block by block, so that memory holds little besides the result; the bits are those of one call.
    """
    grid = SampleGrid(0, model.rate)
    motion = Standstill(duration=(samples + 1) / model.rate)
    sensor = model.start(seed, 'allan')
    values = np.zeros((samples, len(AXES)))
    for first in range(0, samples, _BLOCK):
        last = min(first + _BLOCK, samples)
        measured = sensor.measure(motion.at(seconds(grid.stamps(first, last), 0)))
        values[first:last, :3] = measured.angular_velocity
        values[first:last, 3:] = measured.linear_acceleration
        if progress is not None:
            progress()
    return values


def blocks(samples: int) -> int:
    """Return how often `simulated_standstill` reports progress."""
    return math.ceil(samples / _BLOCK)


def reidentify(
    model: ImuModel,
    terms: Mapping[str, NoiseTerms],
    samples: int,
    *,
    seed: int,
    progress: Callable[[], None] | None = None,
) -> Reidentified:
    """Simulate a record at rest and say of each coefficient whether it comes back.

    The model was made from `terms`, by axis; `samples` are as many as the recording had.
    `progress` is called after each of `blocks(samples)` blocks.
    """
    values = simulated_standstill(model, samples, seed=seed, progress=progress)
    parameters, curves = [], {}
    nothing = Coefficient(0.0, 0.0, 0.0, 0.0, observable=False)
    for axis, modelled in terms.items():
        column = np.ascontiguousarray(values[:, AXES.index(axis)])
        fitted = fit_axis(column, model.rate)
        if fitted is None:
            continue  # an axis that the model leaves without noise
        curves[axis], choice = fitted.curve, fitted.choice
        # The other kind of bias where the simulated record does not say which one it is.
        fits = (choice.markov, choice.flicker) if modelled.gauss_markov else (choice.flicker,)
        fit = next((fit for fit in fits if fit and not choice.separated), choice.fit)
        for name, coefficient in modelled.coefficients().items():
            again = fit.terms.coefficients().get(name, nothing)
            given = coefficient.value
            if name == 'bandwidth' and fit.terms.low_pass:
                # The three axes of the model share one filter, and passed noise has one bandwidth.
                width, order = common_low_pass([terms.get(other) for other in _triad_of(axis)])
                passed = passed_bandwidth(width, order)
                given = passed / passed_bandwidth(1.0, fit.terms.low_pass.order)
            parameters.append(RecoveredParameter(
                axis, name, given, again.value, again.std, again.observable,
                is_recovered=again.agrees_with(given),
            ))  # fmt: skip
    return Reidentified(tuple(parameters), curves)


def _triad_of(axis: str) -> list[str]:
    return [f'{quantity_of(axis)}_{letter}' for letter in 'xyz']


# Recordings of one sensor at one setting; a driver's clock may be off by that much.
_RATE_TOLERANCE = 1.05


@dataclasses.dataclass(frozen=True, eq=False)
class FittedImu:
    """Terms, the mean over the recordings by axis, and the model made of them, with the rate and
    the resolution of the longest recording; `samples` and `seconds` are those of that one.
    """

    terms: dict[str, NoiseTerms]
    model: ImuChain
    samples: int
    seconds: float


def fit_imu(
    results: Sequence[RecordingResult], weights: str = 'uncertainty', *, shortest: float = 0.0
) -> FittedImu:
    """Combine the analyses of recordings of one sensor; for `weights` see `noise_terms.combined`.

    If the longest has less than `shortest` seconds, no term of long averaging times is taken
    from them. ParameterError when the rates differ by more than 5 %.
    """
    rates = [result.rate for result in results]
    if max(rates) > _RATE_TOLERANCE * min(rates):
        raise ParameterError(
            'recordings',
            '',
            f'have IMU rates of {min(rates):g} to {max(rates):g} Hz; must be alike to 5 %',
        )
    terms = combined_terms(results, weights)
    longest = max(results, key=lambda result: result.samples)
    if longest.seconds < shortest:
        terms = {axis: short_terms(row) for axis, row in terms.items()}
    model = chain_model(
        terms,
        rate=longest.rate,
        steps={result.axis: result.resolution for result in longest.axes},
        biases=_biases(results),
    )
    return FittedImu(terms, model, longest.samples, longest.seconds)


def _biases(results: Sequence[RecordingResult]) -> dict[str, tuple[float, float]]:
    """Return mean and standard deviation, over recordings, of what a gyroscope tells at rest.

    An accelerometer's bias cannot be told from a tilt.
    """
    means: dict[str, list[float]] = {}
    for result in results:
        for axis_result in result.axes:
            if axis_result.axis.startswith('gyroscope'):
                means.setdefault(axis_result.axis, []).append(axis_result.mean)
    return {
        axis: (float(np.mean(row)), float(np.std(row, ddof=1)) if len(row) > 1 else 0.0)
        for axis, row in means.items()
    }
