# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The base class of metrics, and all metrics by name, including those of other packages.

The smallest metric is a class with name, unit, meaning and `of_run`, which returns a number per
run; see docs/howto/extend.md.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.metrics.error_curves import CurveDistance, error_autocorrelations, error_spectra
from sim2real_eval.metrics.mean_wasserstein import MeanWasserstein
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.metrics.permutation_test import Divisible
from sim2real_eval.metrics.scores import EnergyDistance
from sim2real_eval.signals.agreement import SpectrumDistance
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.registry import Registry
from .outcome import StudyOutcome, speed_error
from .run import EstimateSignals, RunKey

VEPD, NIS = 'VEPD', 'NIS'
"""Names of the two metrics of the ranking."""

_MIN_RATIO = 1e-6


@dataclasses.dataclass(frozen=True, eq=False)
class MetricRun:
    """The view of a judged run that a metric gets.

    Attributes
    ----------
    key : RunKey
        Judge, recording, model and repetition.
    values : mapping
        Numbers by name, such as `position_rmse`; see `sim2real_eval.study.run_plan.observe`.
        Values that could not be computed are missing.
    options : MetricOptions
        Options of its score.
    """

    key: RunKey
    scenario: str
    values: Mapping[str, float]
    options: MetricOptions
    _outcome: StudyOutcome

    @property
    def signals(self) -> EstimateSignals:
        """Estimate and ground truth over time, read from the file of the run at each access."""
        return self._outcome.signals(self.key)

    @functools.cached_property
    def speed_error(self) -> FloatArray:
        """Error of the estimated speed, `(n,)` m/s, at `options.rate` Hz, without the warm-up."""
        return speed_error(self.signals, str(self._outcome.record['component']), self.options)


@dataclasses.dataclass(frozen=True, eq=False)
class MetricRuns:
    """Runs that a metric divides into two sets in many ways.

    Attributes
    ----------
    runs : sequence of MetricRun
        Real runs, then those of one model.
    table : sequence of MetricRun
        All runs of the same table, for scales that its rows share.
    everyone : sequence of MetricRun
        All runs of the judge and group, in all scenarios.
    """

    runs: Sequence[MetricRun]
    table: Sequence[MetricRun]
    everyone: Sequence[MetricRun]
    _cache: dict[str, FloatArray] = dataclasses.field(default_factory=dict)

    def curves(
        self, curve_function: Callable[[Sequence[FloatArray], float], FloatArray]
    ) -> FloatArray:
        """Return curves of the speed errors, (runs, points), computed once for all runs."""
        name = curve_function.__name__
        if name not in self._cache:
            errors = [run.speed_error for run in self.everyone]
            self._cache[name] = curve_function(errors, self.everyone[0].options.rate)
        row = {run.key: number for number, run in enumerate(self.everyone)}
        return self._cache[name][[row[run.key] for run in self.runs]]


class Metric:
    """Base class of distances between two sets of runs.

    A subclass defines one of three methods: `of_run`, `between` or, for speed, `prepare`.

    Attributes
    ----------
    name, unit, meaning : str
        Texts of tables; the unit of a pure number is empty.
    logarithmic : bool
        Whether the decimal logarithm of `of_run` is compared.
    is_secondary : bool
        Whether it is neither VEPD nor one of its halves.
    """

    name: str = ''
    unit: str = ''
    meaning: str = ''
    logarithmic: bool = False
    is_secondary: bool = True

    @property
    def is_tested(self) -> bool:
        """Whether the joint test of a study includes it: all but the halves of VEPD."""
        return self.is_secondary or self.name == VEPD

    def of_run(self, run: MetricRun) -> float | Sequence[float]:
        """Return one or several numbers of a run; NaN for a number that it does not have.

        The distance is then the first Wasserstein distance between the numbers of the two sets,
        averaged over several numbers.
        """
        raise NotImplementedError

    def between(self, real: Sequence[MetricRun], simulated: Sequence[MetricRun]) -> float:
        """Return the distance between two sets; called up to a thousand times per model."""
        raise NotImplementedError

    def prepare(self, runs: MetricRuns) -> Divisible | None:
        """Return a function of many divisions of the runs, or None if a run lacks a value."""
        if type(self).between is not Metric.between:
            return _DividedRuns(self, runs.runs)
        values = self.values(runs.runs)
        return MeanWasserstein.from_values(values) if np.isfinite(values).all() else None

    def values(self, runs: Sequence[MetricRun]) -> FloatArray:
        """Return `of_run` of all runs, (runs, k), without columns that no run has."""
        values = np.array([np.atleast_1d(self.of_run(run)) for run in runs], dtype=np.float64)
        missing = np.isnan(values).all(axis=0)
        if missing.any() and not missing.all():
            values = values[:, ~missing]
        return np.log10(np.maximum(values, _MIN_RATIO)) if self.logarithmic else values


@dataclasses.dataclass(frozen=True, eq=False)
class _DividedRuns:
    """Calls `Metric.between` for each way to divide the runs."""

    metric: Metric
    runs: Sequence[MetricRun]

    def between(self, first: NDArray[np.bool_]) -> FloatArray:
        """Return the distance for each row of a mask of the first set, (divisions, runs)."""

        def select(mask: NDArray[np.bool_]) -> list[MetricRun]:
            return list(itertools.compress(self.runs, mask))

        return np.array(
            [float(self.metric.between(select(mask), select(~mask))) for mask in first]
        )


_METHODS = ('of_run', 'between', 'prepare')


def _is_metric(candidate: object) -> bool:
    return (
        isinstance(candidate, type)
        and issubclass(candidate, Metric)
        and any(getattr(candidate, name) is not getattr(Metric, name) for name in _METHODS)
    )


METRICS: Registry[type[Metric]] = Registry(
    'sim2real_sensors.metrics',
    'a metric',
    _is_metric,
    {
        name: f'{__name__}:{kind}'
        for name, kind in {
            'vepd': 'VepdMetric',
            'w1_rmse': 'W1Rmse',
            'w2_entropy': 'W2Entropy',
            'energy': 'Energy',
            'bias': 'Bias',
            'forward': 'Forward',
            'position': 'Position',
            'yaw': 'Yaw',
            'autocorrelation': 'Autocorrelation',
            'spectrum': 'Spectrum',
            'nis': 'Nis',
            'nees': 'Nees',
        }.items()
    },
    needs='the base class sim2real_eval.study.Metric and a method of_run, between or prepare',
)
"""VEPD, its two halves, and the other metrics; see docs/explanation/metric.md."""


def all_metrics(more: Sequence[str] = ()) -> list[Metric]:
    """Return all registered metrics, VEPD first, and those in `more`, by name or path.

    A metric of another package that cannot be imported, or has the name of one of this package, is
    left out with a warning.
    """
    metrics: list[Metric] = []
    for name in [*METRICS.names(), *more]:
        try:
            metric = METRICS.get(name)()
            metric.name = metric.name or name.rpartition(':')[2]
            registered_names = {
                registered.name
                for registered in metrics
                if type(registered).__module__ == __name__
            }
            if metric.name in registered_names:
                problem = f'{metric.name!r} is the name of a metric of sim2real_sensors'
                raise ParameterError('a metric', name, problem)
        except Sim2RealError as error:
            logging.getLogger(__name__).warning('%s', error)
            continue
        metrics.append(metric)
    return metrics


class _ValueMetric(Metric):
    """W1 distance of values of the runs."""

    keys: tuple[str, ...] = ()

    def of_run(self, run: MetricRun) -> Sequence[float]:
        return [run.values.get(key, np.nan) for key in self.keys]


class VepdMetric(_ValueMetric):
    """Mean of the W1 distances of RMSE and entropy difference."""

    name, keys, is_secondary = VEPD, ('rmse', 'entropy_difference'), False
    meaning = 'the metric of the paper: mean of its two halves'


class W1Rmse(_ValueMetric):
    """W1 distance between the RMSE of the runs."""

    name, unit, keys, is_secondary = 'W1 RMSE', 'm/s', ('rmse',), False
    meaning = 'half of VEPD: RMSE of speed'


class W2Entropy(_ValueMetric):
    """W1 distance between their entropy differences."""

    name, keys, is_secondary = 'W2 entropy', ('entropy_difference',), False
    meaning = 'half of VEPD: difference of Wiener entropy'


class Energy(Metric):
    """Energy distance of RMSE and entropy difference together [Szekely2013]."""

    name = 'energy'
    meaning = 'energy distance of (RMSE, entropy difference): both at once'

    def prepare(self, runs: MetricRuns) -> Divisible | None:
        """Return the distance, each coordinate in units of its deviation over the table."""
        values, scale = VepdMetric().values(runs.runs), VepdMetric().values(runs.table).std(axis=0)
        return EnergyDistance.from_values(values, scale) if np.isfinite(values).all() else None


class Bias(_ValueMetric):
    """Mean of the speed error."""

    name, unit, keys = 'bias', 'm/s', ('speed_bias',)
    meaning = 'mean of the speed error'


class Forward(_ValueMetric):
    """RMSE of forward speed."""

    name, unit, keys = 'forward', 'm/s', ('forward_rmse',)
    meaning = 'RMSE of forward speed, which unlike horizontal speed depends on the heading'


class Position(_ValueMetric):
    """RMSE of position."""

    name, unit, keys = 'position', 'm', ('position_rmse',)
    meaning = 'RMSE of horizontal position'


class Yaw(_ValueMetric):
    """RMSE of yaw."""

    name, unit, keys = 'yaw', 'rad', ('yaw_rmse',)
    meaning = 'RMSE of yaw'


class Autocorrelation(Metric):
    """Difference of the mean autocorrelation functions of the speed error."""

    name = 'autocorrelation'
    meaning = 'correlation time of the speed error: difference of mean autocorrelations'

    def prepare(self, runs: MetricRuns) -> Divisible:
        """Return the distance."""
        return CurveDistance(runs.curves(error_autocorrelations))


class Spectrum(Metric):
    """Log spectral distance of the speed error [Gray1976]."""

    name, unit = 'spectrum', 'dB'
    meaning = 'log spectral distance of the speed error'

    def prepare(self, runs: MetricRuns) -> Divisible:
        """Return the distance."""
        return SpectrumDistance(runs.curves(error_spectra))


class Nis(_ValueMetric):
    """Normalised innovation squares of GPS and IMU."""

    name, unit, keys, logarithmic = NIS, 'decades', ('nis_gps', 'nis_imu'), True
    meaning = 'normalised innovations of GPS and IMU, over their degrees of freedom'


class Nees(_ValueMetric):
    """Normalised estimation error squares of position and velocity."""

    name, unit, logarithmic = 'NEES', 'decades', True
    keys = ('nees_position', 'nees_velocity')
    meaning = 'normalised errors of position and velocity, over their degrees of freedom'
