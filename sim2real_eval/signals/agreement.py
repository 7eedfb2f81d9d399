# SPDX-License-Identifier: Apache-2.0
"""How well one series follows another: RMSE and the correlation coefficient."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from sim_sensors.measurements import FloatArray

__all__ = ['SeriesAgreement', 'agreement', 'mean_agreement']


@dataclasses.dataclass(frozen=True)
class SeriesAgreement:
    """Agreement of one series with another, as in table 2 of [Ligorio2015].

    Attributes
    ----------
    rmse : float
        Root of the mean squared difference.
    mean : float
        Mean difference.
    correlation : float or None
        Pearson's R; None when one of them never changes.
    samples : int
    """

    rmse: float
    mean: float
    correlation: float | None
    samples: int


def agreement(values: FloatArray, reference: FloatArray, error: FloatArray) -> SeriesAgreement:
    """Return the agreement of two series `(n,)`; `error` is their difference, angles wrapped."""
    spread = float(np.std(values) * np.std(reference))
    scale = float(np.max(np.abs(values)) * np.max(np.abs(reference)))
    correlation = None
    # A constant's standard deviation is rounding, not 0.
    if spread > 1e-15 * scale:
        correlation = float(np.clip(np.corrcoef(values, reference)[0, 1], -1.0, 1.0))
    return SeriesAgreement(
        rmse=float(np.sqrt(np.mean(error**2))),
        mean=float(np.mean(error)),
        correlation=correlation,
        samples=len(error),
    )


def mean_agreement(runs: Sequence[SeriesAgreement]) -> SeriesAgreement:
    """Return that of several runs, each counting alike: root mean square of RMSE, mean of R."""
    known = [run.correlation for run in runs if run.correlation is not None]
    return SeriesAgreement(
        rmse=float(np.sqrt(np.mean([run.rmse**2 for run in runs]))),
        mean=float(np.mean([run.mean for run in runs])),
        correlation=float(np.mean(known)) if known else None,
        samples=sum(run.samples for run in runs),
    )
