# SPDX-License-Identifier: Apache-2.0
"""What a metric is, and all metrics by name: ours and those of other packages.

The least that a metric can be is a class with a name, a unit, a meaning and `of_run`, a number per
run; docs/howto/extend.md walks through one.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.metrics.distances import EnergyDistance
from sim2real_eval.metrics.error_curves import CurveDistance, error_autocorrelations, error_spectra
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.metrics.uncertainty.interval import MeanWasserstein
from sim2real_eval.metrics.uncertainty.permutation_test import Divisible
from sim2real_eval.signals.agreement import SpectrumDistance
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.registry import Registry
from .outcome import StudyOutcome, speed_error
from .run import EstimateSignals, RunKey

_LEAST_RATIO = 1e-6


@dataclasses.dataclass(frozen=True, eq=False)
class MetricRun:
    """What a metric sees of a judged run.

    Attributes
    ----------
    key : RunKey
        Judge, recording, model and repetition.
    values : mapping
        Numbers by name, such as `position_rmse`; see `sim2real_eval.study.run_plan.observe`.
        What a run has not is not in it.
    options : MetricOptions
        With which it was scored.
    """

    key: RunKey
    scenario: str
    values: Mapping[str, float]
    options: MetricOptions
    _outcome: StudyOutcome

    @property
    def signals(self) -> EstimateSignals:
        """Estimate and truth over time, read from the run's file each time."""
        return self._outcome.signals(self.key)

    @functools.cached_property
    def speed_error(self) -> FloatArray:
        """Estimated less true speed, `(n,)` m/s, at `options.rate` Hz, warm-up left out."""
        return speed_error(self.signals, str(self._outcome.record['component']), self.options)


@dataclasses.dataclass(frozen=True, eq=False)
class MetricRuns:
    """The runs that a metric divides into two sets in many ways.

    Attributes
    ----------
    runs : sequence of MetricRun
        Real ones, then those of one model.
    table : sequence of MetricRun
        All that the same table compares, for scales that its rows share.
    everyone : sequence of MetricRun
        All of the judge and group, whatever the scenario.
    """

    runs: Sequence[MetricRun]
    table: Sequence[MetricRun]
    everyone: Sequence[MetricRun]
    _cache: dict[str, FloatArray] = dataclasses.field(default_factory=dict)

    def curves(self, of: Callable[[Sequence[FloatArray], float], FloatArray]) -> FloatArray:
        """Return curves of the speed errors, (runs, points), worked out once for everyone."""
        if of.__name__ not in self._cache:
            errors = [run.speed_error for run in self.everyone]
            self._cache[of.__name__] = of(errors, self.everyone[0].options.rate)
        row = {run.key: number for number, run in enumerate(self.everyone)}
        return self._cache[of.__name__][[row[run.key] for run in self.runs]]


class Metric:
    """A distance between two sets of runs; subclasses say which.

    A subclass has one of three methods: `of_run`, `between`, or, to be quick, `prepare`.

    Attributes
    ----------
    name, unit, meaning : str
        In tables; the unit of a pure number is empty.
    logarithmic : bool
        Whether the decimal logarithm of `of_run` is compared.
    is_secondary : bool
        Whether it stands beside VEPD, and is not VEPD or one of its halves.
    """

    name: str = ''
    unit: str = ''
    meaning: str = ''
    logarithmic: bool = False
    is_secondary: bool = True

    def of_run(self, run: MetricRun) -> float | Sequence[float]:
        """Return a number of a run, or several; NaN for what it has not.

        The distance is then the first Wasserstein distance between the numbers of the two sets,
        averaged where there are several.
        """
        raise NotImplementedError

    def between(self, real: Sequence[MetricRun], simulated: Sequence[MetricRun]) -> float:
        """Return the distance between two sets; called up to a thousand times per model."""
        raise NotImplementedError

    def prepare(self, runs: MetricRuns) -> Divisible | None:
        """Return the distance for many ways to divide the runs; None when one lacks something."""
        if type(self).between is not Metric.between:
            return _EachDivision(self, runs.runs)
        values = self.values(runs.runs)
        return MeanWasserstein.of(values) if np.isfinite(values).all() else None

    def values(self, runs: Sequence[MetricRun]) -> FloatArray:
        """Return `of_run` of all runs, (runs, k), without columns that no run has."""
        found = np.array([np.atleast_1d(self.of_run(run)) for run in runs], dtype=np.float64)
        missing = np.isnan(found).all(axis=0)
        if missing.any() and not missing.all():
            found = found[:, ~missing]
        return np.log10(np.maximum(found, _LEAST_RATIO)) if self.logarithmic else found


@dataclasses.dataclass(frozen=True, eq=False)
class _EachDivision:
    """Calls `Metric.between` for each way to divide the runs."""

    metric: Metric
    runs: Sequence[MetricRun]

    def between(self, first: NDArray[np.bool_]) -> FloatArray:
        def side(chosen: NDArray[np.bool_]) -> list[MetricRun]:
            return list(itertools.compress(self.runs, chosen))

        return np.array([float(self.metric.between(side(one), side(~one))) for one in first])


_METHODS = ('of_run', 'between', 'prepare')


def _is_metric(thing: object) -> bool:
    return (
        isinstance(thing, type)
        and issubclass(thing, Metric)
        and any(getattr(thing, name) is not getattr(Metric, name) for name in _METHODS)
    )


METRICS: Registry[type[Metric]] = Registry(
    'sim2real_sensors.metrics',
    'a metric',
    _is_metric,
    {
        name: f'{__name__}:{kind}'
        for name, kind in {
            'vepd': 'Vepd',
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
    needs='the base class sim2real_eval.study.Metric and of_run, between or prepare of its own',
)
"""VEPD, its two halves, and the metrics beside it; see docs/explanation/metric.md."""


def all_metrics(more: Sequence[str] = ()) -> list[Metric]:
    """Return every metric that there is, VEPD first, and `more`, by name or path.

    One of others that cannot be imported, or has the name of one of ours, is left out with a
    warning.
    """
    found: list[Metric] = []
    for name in [*METRICS.names(), *more]:
        try:
            metric = METRICS.get(name)()
            metric.name = metric.name or name.rpartition(':')[2]
            ours = {one.name for one in found if type(one).__module__ == __name__}
            if metric.name in ours:
                raise ParameterError(
                    'a metric', name, f'{metric.name!r} is the name of one of ours'
                )
        except Sim2RealError as error:
            logging.getLogger(__name__).warning('%s', error)
            continue
        found.append(metric)
    return found


class _OfValues(Metric):
    """W1 of numbers that every run of a study has, or may have."""

    keys: tuple[str, ...] = ()

    def of_run(self, run: MetricRun) -> Sequence[float]:
        return [run.values.get(key, np.nan) for key in self.keys]


class Vepd(_OfValues):
    """Mean of the W1 distances of RMSE and entropy difference."""

    name, keys, is_secondary = 'VEPD', ('rmse', 'entropy_difference'), False
    meaning = 'the metric of the paper: mean of its two halves'


class W1Rmse(_OfValues):
    """Half of VEPD."""

    name, unit, keys, is_secondary = 'W1 RMSE', 'm/s', ('rmse',), False
    meaning = 'half of VEPD: RMSE of speed'


class W2Entropy(_OfValues):
    """The other half of VEPD."""

    name, keys, is_secondary = 'W2 entropy', ('entropy_difference',), False
    meaning = 'half of VEPD: difference of Wiener entropy'


class Energy(Metric):
    """Energy distance of RMSE and entropy difference together [Szekely2013]."""

    name = 'energy'
    meaning = 'energy distance of (RMSE, entropy difference): both at once'

    def prepare(self, runs: MetricRuns) -> Divisible | None:
        """Return the distance, each coordinate in units of its deviation over the table."""
        both, scale = Vepd().values(runs.runs), Vepd().values(runs.table).std(axis=0)
        return EnergyDistance.of(both, scale) if np.isfinite(both).all() else None


class Bias(_OfValues):
    """Mean of the speed error."""

    name, unit, keys = 'bias', 'm/s', ('speed_bias',)
    meaning = 'mean of the speed error'


class Forward(_OfValues):
    """RMSE of forward speed."""

    name, unit, keys = 'forward', 'm/s', ('forward_rmse',)
    meaning = 'RMSE of forward speed, which unlike horizontal speed sees the heading'


class Position(_OfValues):
    """RMSE of position."""

    name, unit, keys = 'position', 'm', ('position_rmse',)
    meaning = 'RMSE of horizontal position'


class Yaw(_OfValues):
    """RMSE of yaw."""

    name, unit, keys = 'yaw', 'rad', ('yaw_rmse',)
    meaning = 'RMSE of yaw'


class Autocorrelation(Metric):
    """Difference of the mean autocorrelation functions of the speed error."""

    name = 'autocorrelation'
    meaning = 'how long the speed error remembers: difference of mean autocorrelations'

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


class Nis(_OfValues):
    """Normalised innovation squares of GPS and IMU."""

    name, unit, keys, logarithmic = 'NIS', 'decades', ('nis_gps', 'nis_imu'), True
    meaning = 'normalised innovations of GPS and IMU, over their degrees of freedom'


class Nees(_OfValues):
    """Normalised estimation error squares of position and velocity."""

    name, unit, logarithmic = 'NEES', 'decades', True
    keys = ('nees_position', 'nees_velocity')
    meaning = 'normalised errors of position and velocity, over their degrees of freedom'
