# SPDX-License-Identifier: Apache-2.0
"""One IMU from the analyses of its recordings: terms, and the model made of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from sim2real_eval.characterization.analysis import RecordingResult, combined_terms
from sim2real_eval.characterization.imu_file import chain_model
from sim2real_eval.characterization.noise_terms import NoiseTerms
from sim_sensors.errors import ParameterError
from sim_sensors.imu_chain import ImuChain

__all__ = ['FittedImu', 'fit_imu']

# Recordings of one sensor at one setting; a driver's clock may be off by that much.
_RATE_TOLERANCE = 1.05


@dataclasses.dataclass(frozen=True, eq=False)
class FittedImu:
    """Terms and model.

    Attributes
    ----------
    terms : dict of str to NoiseTerms
        By axis: the mean over the recordings.
    model : ImuChain
    samples, seconds : int, float
        Of the longest recording, whose rate and resolution the model has.
    """

    terms: dict[str, NoiseTerms]
    model: ImuChain
    samples: int
    seconds: float


def fit_imu(results: Sequence[RecordingResult], weights: str = 'uncertainty') -> FittedImu:
    """Combine the analyses of recordings.

    Parameters
    ----------
    results : sequence of RecordingResult
        Of one sensor.
    weights : str
        `uncertainty` or `length`; see `noise_terms.combined`.

    Raises
    ------
    ParameterError
        When the rates differ by more than 5 %.
    """
    rates = [one.rate for one in results]
    if max(rates) > _RATE_TOLERANCE * min(rates):
        raise ParameterError(
            'recordings',
            '',
            f'have IMU rates of {min(rates):g} to {max(rates):g} Hz; must be alike to 5 %',
        )
    terms = combined_terms(results, weights)
    longest = max(results, key=lambda one: one.samples)
    model = chain_model(
        terms,
        rate=longest.rate,
        steps={one.axis: one.resolution for one in longest.axes},
        biases=_biases(results),
    )
    return FittedImu(terms, model, longest.samples, longest.seconds)


def _biases(results: Sequence[RecordingResult]) -> dict[str, tuple[float, float]]:
    """Return mean and standard deviation, over recordings, of what a gyroscope tells at rest.

    An accelerometer's bias cannot be told from a tilt.
    """
    means: dict[str, list[float]] = {}
    for result in results:
        for one in result.axes:
            if one.axis.startswith('gyroscope'):
                means.setdefault(one.axis, []).append(one.mean)
    return {
        axis: (float(np.mean(found)), float(np.std(found, ddof=1)) if len(found) > 1 else 0.0)
        for axis, found in means.items()
    }
