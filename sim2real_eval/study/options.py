# SPDX-License-Identifier: Apache-2.0
"""Options of studies, fits and gates, declared once for files, commands and nodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from sim2real_eval.metrics.options import SPEED_COMPONENTS, MetricOptions
from sim2real_eval.metrics.uncertainty.result import UncertaintyOptions
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameters, parameter

PROFILE = 'clean'
"""Default judge."""

MOST_RUNS = 10_000
"""Largest number of runs of one motion or scenario."""

PAPER_PROFILE = 'paper_released'
"""Judge of the numbers in the paper; it has known faults and is kept to reproduce them."""

ADAPTED = ('start_heading', 'off_ticks', 'match_rates', 'warmup', 'rate')
"""Options that are derived from the real recordings of a study unless they are given."""

UNSAID = {'off_ticks': False}
"""Values of options that records of older studies do not have."""


@dataclasses.dataclass(frozen=True)
class ComparedSensors(Parameters):
    """Sensors that are simulated on the true motion of real recordings.

    They are options of `sim2real vepd`, parameters of evaluation_node and arguments of its launch
    file.
    """

    models: str = parameter(
        'paper',
        '',
        'GPS models, separated by commas: presets (see sim2real models), YAML files, paper, all, '
        'or real to keep the recorded GPS.',
    )
    imu: str = parameter('chrono', '', 'IMU models likewise, or real.')


@dataclasses.dataclass(frozen=True)
class StudyOptions(Parameters):
    """Options of simulation, judging and comparison.

    They are keys of a study file, options of `sim2real vepd` and `sim2real study`, and parameters
    of evaluation_node, all of the same name.
    """

    seed: int = parameter(
        0, '1', 'Seed of all random draws; equal seeds give equal bytes.', minimum=0
    )
    repetitions: int = parameter(
        1, '1', 'Simulated runs per recording and model.', minimum=1, maximum=MOST_RUNS
    )
    match_rates: bool = parameter(False, '', 'Simulate at the rates of the real sensors.')
    start_heading: bool = parameter(
        False,
        '',
        'Start the judges with the true heading, for recordings whose IMU has no orientation.',
    )
    off_ticks: bool = parameter(
        False,
        '',
        'Start all judges 10 us late, for recordings whose fixes are stamped on their ticks, so '
        'that rounding does not decide which of them wait for the next tick.',
    )
    adapt: str = parameter(
        'all',
        '',
        'Options that are derived from the real recordings unless they are given: all, none, or '
        'some of start_heading, off_ticks, match_rates, warmup and rate, separated by commas.',
    )
    component: str = parameter(
        'horizontal', '', 'Speed that is compared.', choices=SPEED_COMPONENTS
    )
    metric: MetricOptions = dataclasses.field(default_factory=MetricOptions)
    uncertainty: UncertaintyOptions = dataclasses.field(default_factory=UncertaintyOptions)

    @property
    def adapts(self) -> tuple[str, ...]:
        """Options that are derived from the real recordings."""
        if self.adapt in ('all', 'none', ''):
            return ADAPTED if self.adapt == 'all' else ()
        return tuple(name.strip() for name in self.adapt.split(','))

    def given(self, names: Collection[str]) -> StudyOptions:
        """Return the options without deriving those named, which the user has given."""
        derived = [name for name in self.adapts if name not in names]
        if len(derived) == len(self.adapts):
            return self
        return dataclasses.replace(self, adapt=','.join(derived) or 'none')

    def _check(self) -> None:
        if wrong := [name for name in self.adapts if name not in ADAPTED]:
            problem = f'{wrong[0]!r} is not allowed; must be all, none, or of {", ".join(ADAPTED)}'
            raise ParameterError('', 'adapt', problem)


@dataclasses.dataclass(frozen=True)
class FitOptions(Parameters):
    """Options of a fit."""

    metric: str = parameter(
        'vepd',
        '',
        'Distance to minimize: VEPD, one of its parts, or the energy distance.',
        choices=('vepd', 'rmse', 'entropy', 'energy'),
    )
    folds: int = parameter(
        5,
        '1',
        'Number of folds of the cross-validation over recordings: 2 or more; 0: none.',
        minimum=0,
    )
    candidates: int | None = parameter(
        None,
        '1',
        'Largest number of judged parameter values (default: 15, and 20 more per parameter).',
        optional=int,
        minimum=1,
    )
    uncertainty: UncertaintyOptions = dataclasses.field(default_factory=UncertaintyOptions)

    def _check(self) -> None:
        if self.folds == 1:
            # Nothing would be left to fit to.
            raise ParameterError('', 'folds', '1 is not allowed; must be 0 or an integer >= 2')


@dataclasses.dataclass(frozen=True)
class GateOptions(Parameters):
    """Limits for a result.

    Attributes
    ----------
    models, scenarios, judges : tuple of str
        Parts of the result that are compared; empty: everything.
    """

    max_vepd: float | None = parameter(
        None, '', 'Largest VEPD allowed.', optional=float, minimum=0.0
    )
    max_increase: float | None = parameter(
        None,
        '',
        'Largest increase over the baseline (default 0); below 0, VEPD must shrink.',
        optional=float,
    )
    by: str = parameter(
        'estimate',
        '',
        'Number that is compared with a limit: estimate, VEPD itself; low, the lower bound of its '
        'interval, so that only a significant excess breaks it; high, the upper bound, so that '
        'VEPD must be shown to be below it.',
        choices=('estimate', 'low', 'high'),
    )
    confidence: float = parameter(0.95, '1', 'Level of the intervals.', minimum=0.5, maximum=0.999)
    resamples: int = parameter(
        10_000, '1', 'Resamples behind intervals and p-values.', minimum=100, maximum=10_000_000
    )
    seed: int = parameter(
        0, '1', 'Seed of all random draws; equal seeds give equal bytes.', minimum=0
    )
    models: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
