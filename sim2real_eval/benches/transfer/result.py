# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Result of a transfer: the loss of each model, and what explains it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

from sim2real_eval.benches.tuning.parameters import Tunable
from sim2real_eval.common.findings import Finding
from sim2real_eval.judge.protocol import Judge
from sim2real_eval.study.options import RMS_UNITS
from sim2real_eval.study.search.engine import Values
from sim_sensors.core.measurements import FloatArray


class ParameterDifference(NamedTuple):
    """A parameter that is tuned otherwise in simulation than on the real recordings.

    `share` is the part of the transfer loss that the real value alone would save.
    """

    parameter: Tunable
    simulated: float
    real: float
    share: float


@dataclasses.dataclass(frozen=True)
class ModelTransfer:
    """Transfer loss of one model.

    Attributes
    ----------
    model : str
    values : tuple of float
        Values of the parameters that were tuned in simulation.
    loss, low, high : float
        Transfer loss with its interval: a share of the error, 0.05 is 5 % more; for a score the
        difference in natural logarithms. The interval is infinite with too few blocks.
    p_value, adjusted : float
        Sign-flip test over blocks that the loss is zero, and the same for the largest of all
        models (maxT, [Westfall1993]).
    group : str
        Letters; models that share one are not significantly different.
    promised, achieved : float
        Mean error of the filter in the simulation that it was tuned in, and on the robot.
    landscape : float
        Distance of the loss landscapes: deviation over the tried tunings of the logarithm of the
        simulated error over the real one. Deviation of the difference, for a score.
    correlation : float
        Correlation of simulated with real error over the tried tunings [Kadian2020].
    differences : tuple of ParameterDifference
        Parameters that explain the loss, the most important first.
    other_losses : mapping of str to float
        Transfer losses of the other errors and scores of the same two filters.
    error_ratios : mapping of str to float
        Sizes of simulated sensor errors over the real ones; see `sensor_error_sizes`. Empty
        without a truth.
    """

    model: str
    values: Values
    loss: float
    low: float
    high: float
    p_value: float
    adjusted: float
    group: str
    promised: float
    achieved: float
    landscape: float
    correlation: float
    differences: tuple[ParameterDifference, ...]
    other_losses: Mapping[str, float]
    error_ratios: Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class Transfer:
    """Transfer losses of the models of a simulation.

    Attributes
    ----------
    judge : Judge
        As given.
    quantity : str
        Error or score that is minimised and compared.
    parameters : tuple of Tunable
    values : tuple of float
        Values that were tuned on all real recordings.
    untuned, reference : float
        Mean error on the real recordings as given, and tuned on the other blocks.
    models : tuple of ModelTransfer
        The smallest loss first.
    failures : mapping of str to str
        Models that have no loss, and why.
    blocks, drives : int
        Number of blocks, and of drives that the real recordings come from.
    tunings : tuple of tuple of float
        Values of the tunings that all recordings met, the given ones first.
    landscapes : mapping of str to (t,) array
        Mean error of each of these tunings on the `real` recordings and on those of each model.
    notes : tuple of Finding
    """

    judge: Judge
    quantity: str
    parameters: tuple[Tunable, ...]
    values: Values
    untuned: float
    reference: float
    models: tuple[ModelTransfer, ...]
    failures: Mapping[str, str]
    blocks: int
    drives: int
    tunings: tuple[Values, ...]
    landscapes: Mapping[str, FloatArray]
    notes: tuple[Finding, ...]

    @property
    def is_error(self) -> bool:
        """Whether losses are shares of an error, and not differences of a score."""
        return self.quantity in RMS_UNITS
