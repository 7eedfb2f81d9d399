# SPDX-License-Identifier: Apache-2.0
"""Right by construction: the fitted model is simulated, and analysed as the recording was.

If the parameters that went in do not come back, the model file would not give the sensor that was
recorded, whatever the reason.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping

import numpy as np

from sim2real_eval.characterization.allan import AllanCurve, allan_curve
from sim2real_eval.characterization.allan_fit import fit_terms, fitted_factors
from sim2real_eval.characterization.noise_terms import COEFFICIENTS, NoiseTerms
from sim2real_eval.characterization.signals import AXES
from sim_sensors.imu import ImuModel
from sim_sensors.measurements import FloatArray
from sim_sensors.sampling import SampleGrid, seconds
from sim_sensors.scenarios import Standstill

__all__ = ['RecoveredParameter', 'Reidentified', 'blocks', 'reidentify', 'simulated_standstill']

_BLOCK = 1 << 16


@dataclasses.dataclass(frozen=True)
class RecoveredParameter:
    """What became of one coefficient of one axis.

    Attributes
    ----------
    axis, coefficient : str
    given : float
        In the model, SI; 0 where it has none.
    found : float
        Re-identified; 0 where not observable.
    std : float
        Uncertainty of `found`.
    observable : bool
        In the simulated record.
    is_recovered : bool
        As `Coefficient.agrees_with` says: within three standard uncertainties.
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
    """A simulated record at rest, analysed.

    Attributes
    ----------
    recovered_parameters : tuple of RecoveredParameter
        Of every axis and coefficient.
    curves : dict of str to AllanCurve
        Of the simulated record, by axis.
    """

    recovered_parameters: tuple[RecoveredParameter, ...]
    curves: dict[str, AllanCurve]

    @property
    def lost(self) -> tuple[RecoveredParameter, ...]:
        """What did not come back."""
        return tuple(one for one in self.recovered_parameters if not one.is_recovered)


def simulated_standstill(
    model: ImuModel,
    samples: int,
    *,
    seed: int,
    run: str = 'allan',
    progress: Callable[[], None] | None = None,
) -> FloatArray:
    """Return what a model measures at rest, `(samples, 6)` in the order of `AXES`.

    Block by block, so that memory holds little besides the result; the bits are those of one call.
    """
    grid = SampleGrid(0, model.rate)
    motion = Standstill(duration=(samples + 1) / model.rate)
    sensor = model.start(seed, run)
    found = np.empty((samples, len(AXES)))
    for first in range(0, samples, _BLOCK):
        last = min(first + _BLOCK, samples)
        measured = sensor.measure(motion.at(seconds(grid.stamps(first, last), 0)))
        found[first:last, :3] = measured.angular_velocity
        found[first:last, 3:] = measured.linear_acceleration
        if progress is not None:
            progress()
    return found


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

    Parameters
    ----------
    model : ImuModel
        Made from `terms`.
    terms : mapping
        By axis.
    samples : int
        As many as the recording had.
    seed : int
        Of the simulated sensor.
    progress : callable, optional
        Called after each of `blocks(samples)` blocks.
    """
    values = simulated_standstill(model, samples, seed=seed, progress=progress)
    found, curves = [], {}
    for axis, given in terms.items():
        column = np.ascontiguousarray(values[:, AXES.index(axis)])
        curves[axis] = allan_curve(column, model.rate, fitted_factors(samples))
        fit = fit_terms(curves[axis])
        for name in COEFFICIENTS:
            truth = getattr(given, name).value
            again = getattr(fit.terms, name)
            found.append(
                RecoveredParameter(
                    axis=axis,
                    coefficient=name,
                    given=truth,
                    found=again.value,
                    std=again.std,
                    observable=again.observable,
                    is_recovered=again.agrees_with(truth),
                )
            )
    return Reidentified(tuple(found), curves)
