# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Options of studies, fits and gates, declared once, and findings about them."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from sim2real_eval.common.findings import assumed, decisive, routine
from sim2real_eval.metrics.options import SPEED_COMPONENTS, MetricOptions, UncertaintyOptions
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameters, non_negative, parameter

PROFILE = 'clean'
"""Default judge."""

MAX_RUNS = 10_000
"""Largest number of runs of one motion or scenario."""

PAPER_PROFILE = 'paper_released'
"""Judge of the numbers in the paper; it has known faults and is kept to reproduce them."""

ADAPTED = ('start_heading', 'off_ticks', 'match_rates', 'warmup', 'rate')
"""Options that are derived from the real recordings of a study unless they are given."""

UNSAID = {'off_ticks': False}
"""Values of options that are missing in records of older studies."""


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
    imu: str = parameter(
        'chrono', '', 'IMU models, given in the same way, or real to keep the recorded IMU.'
    )


@dataclasses.dataclass(frozen=True)
class StudyOptions(Parameters):
    """Options of simulation, judging and comparison.

    They are keys of a study file, options of `sim2real vepd` and `sim2real study`, and parameters
    of evaluation_node, all of the same name.
    """

    seed: int = parameter(
        0, '1', 'Seed of all random draws; equal seeds give identical files.', minimum=0
    )
    repetitions: int = parameter(
        1, '1', 'Simulated runs per recording and model.', minimum=1, maximum=MAX_RUNS
    )
    match_rates: bool = parameter(False, '', 'Simulate at the rates of the real sensors.')
    start_heading: bool = parameter(
        False,
        '',
        'Start the judges with the true heading; for recordings whose IMU has no orientation.',
    )
    off_ticks: bool = parameter(
        False,
        '',
        'Start all judges 10 us late. For recordings whose fixes are stamped at the ticks of a '
        'judge, where rounding would decide which fixes wait for the next tick.',
    )
    adapt: str = parameter(
        'all',
        '',
        'Options derived from the real recordings unless given explicitly: all, none, or a '
        'comma-separated list of start_heading, off_ticks, match_rates, warmup and rate.',
    )
    block: str = parameter(
        'auto',
        '',
        'Recordings that are not independent and are resampled together. auto: segments of one '
        'drive, which follow each other within a minute; none: all recordings are independent; or '
        'a YAML or CSV file of recording and block.',
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

    def without_deriving(self, names: Collection[str]) -> StudyOptions:
        """Return the options without `names` in `adapt`, because the user has set these."""
        derived = [name for name in self.adapts if name not in names]
        if len(derived) == len(self.adapts):
            return self
        return dataclasses.replace(self, adapt=','.join(derived) or 'none')

    def _check(self) -> None:
        if wrong := [name for name in self.adapts if name not in ADAPTED]:
            names = ', '.join(ADAPTED)
            problem = f'{wrong[0]!r} is not allowed; must be all, none, or a list of {names}'
            raise ParameterError('', 'adapt', problem)


@dataclasses.dataclass(frozen=True)
class FitOptions(Parameters):
    """Options of a fit."""

    metric: str = parameter(
        'vepd',
        '',
        'Distance to minimise: VEPD, one of its parts, or the energy distance.',
        choices=('vepd', 'rmse', 'entropy', 'energy'),
    )
    folds: int = parameter(
        5,
        '1',
        'Number of folds of the cross-validation over recordings, at least 2; 0: no validation.',
        minimum=0,
    )
    candidates: int | None = parameter(
        None,
        '1',
        'Largest number of judged candidates (default: 15 plus 20 per parameter).',
        optional=int,
        minimum=1,
    )
    uncertainty: UncertaintyOptions = dataclasses.field(default_factory=UncertaintyOptions)

    def _check(self) -> None:
        if self.folds == 1:
            # One fold would hold out all recordings.
            raise ParameterError('', 'folds', '1 is not allowed; must be 0 or an integer >= 2')


RMS_UNITS = {'speed': 'm/s', 'position': 'm', 'heading': 'rad'}
"""Units of the losses that are RMS errors; their gains are relative to the initial error."""

SCORES = ('nees', 'likelihood')
"""Losses that include the stated covariance: negative log-likelihoods, up to a constant.

`nees` is that of the true position, heading and velocity, `likelihood` that of the innovations.
"""

LOSSES = (*RMS_UNITS, *SCORES)

MIN_BLOCKS = 6
"""With fewer blocks, the ends of a 95 % interval are infinite."""


@dataclasses.dataclass(frozen=True)
class TuneOptions(Parameters):
    """Options of `sim2real tune`."""

    objective: str | None = parameter(
        None,
        '',
        'Loss to minimise: the error of speed, position or heading; nees, which includes '
        'the stated covariance; or likelihood, the negative log-likelihood of the '
        'innovations, which needs no truth (default: speed with truth, otherwise '
        'likelihood).',
        optional=str,
        choices=LOSSES,
    )
    parameters: str | None = parameter(
        None,
        '',
        'Comma-separated parameters to tune: noise (process noise by block), gates, inputs '
        '(which inputs and components), heading (yaw_offset), covariance (a factor per '
        'topic), all, or single names such as process_noise_covariance.velocity (default: '
        'noise; for another --judge, all parameters that it declares).',
        optional=str,
    )
    blocks: int = parameter(
        10,
        '1',
        'Number of blocks of recordings, each held out once. A block consists of complete '
        'drives if there are enough of them.',
        minimum=MIN_BLOCKS,
        maximum=1000,
    )
    warmup: float = non_negative(
        5.0,
        's',
        'Time at the beginning of each recording that is excluded from the loss.',
        maximum=1e6,
    )
    level: float = parameter(0.95, '1', 'Level of the intervals.', minimum=0.5, maximum=0.999)

    @property
    def names(self) -> list[str] | None:
        """Names of the parameters to tune; None for the default."""
        names = [name.strip() for name in (self.parameters or '').split(',')]
        return [name for name in names if name] or None


@dataclasses.dataclass(frozen=True)
class TransferOptions(TuneOptions):
    """Options of `sim2real transfer`, and of the key `transfer` of a study file."""

    tunings: int = parameter(
        64,
        '1',
        'Tunings of the judge that are tried on all recordings, real and simulated. The best one '
        'is then improved by up to twice as many.',
        minimum=8,
        maximum=100_000,
    )


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
    max_ratio_to_null: float | None = parameter(
        None,
        '1',
        'Largest VEPD allowed, as a multiple of the VEPD that identical sensors do not exceed at '
        'the level --confidence. With 1 and the default confidence, identical sensors pass in '
        '95 % of studies.',
        optional=float,
        minimum=0.0,
    )
    max_increase: float | None = parameter(
        None,
        '',
        'Largest increase over the baseline (default 0); if negative, VEPD must decrease.',
        optional=float,
    )
    max_transfer_loss: float | None = parameter(
        None,
        '',
        'Largest transfer loss allowed, such as 10% or 0.1.',
        optional=float,
        minimum=-1.0,
    )
    by: str = parameter(
        'estimate',
        '',
        'Number compared with a limit: estimate: VEPD or loss itself; low: the lower bound of its '
        'interval, which fails only for a significant excess; high: the upper bound, which passes '
        'only if VEPD or loss is significantly below the limit.',
        choices=('estimate', 'low', 'high'),
    )
    confidence: float = parameter(0.95, '1', 'Level of the intervals.', minimum=0.5, maximum=0.999)
    resamples: int = parameter(
        10_000,
        '1',
        'Number of resamples for intervals and p-values.',
        minimum=100,
        maximum=10_000_000,
    )
    seed: int = parameter(
        0, '1', 'Seed of all random draws; equal seeds give identical files.', minimum=0
    )
    strict: bool = parameter(
        False, '', 'Fail also if the result has a decisive finding, such as a truth that is late.'
    )
    models: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()


TRUTH_RATE = assumed(
    'study.truth_rate',
    'speeds are compared at the rate of the ground truth, {rate:.3g Hz} instead of {usual:g Hz}',
    'Between the samples of a slow ground truth, errors are unknown. To disable it in a study '
    'file: `metric: {rate: 15}`.',
    'to disable: --rate 15',
)
WARMUP = assumed(
    'study.warmup',
    'the first {warmup:g s} are left out; recordings that start in motion: {count:d}, at up to '
    '{most:.1f m/s}',
    'A judge that starts at rest needs time to reach the speed. To disable it in a study file: '
    '`metric: {warmup: 0}`.',
    'to disable: --warmup 0',
)
MATCHED_RATES = assumed(
    'study.matched_rates',
    'sensors are simulated at the rates of the real ones, such as {real:.5g Hz} instead of '
    '{own:.5g Hz}',
    'The rate alone can change VEPD severalfold. To disable it in a study file: '
    '`match_rates: false`.',
    'to disable: --no-match-rates',
)
START_HEADING = assumed(
    'study.start_heading',
    'judge {judges} starts with the true heading, because the real IMU has no orientation',
    'With an arbitrary heading, forward speed is meaningless. To disable it in a study file: '
    '`start_heading: false`.',
    'to disable: --no-start-heading',
)
OFF_TICKS = assumed(
    'study.off_ticks',
    'judge {judges} starts 10 us late, because in {count:d} of {total:d} recordings fixes are '
    'stamped at its ticks, where rounding would decide which fixes wait for the next tick',
    'Stamps converted from doubles are rounded to 0.1 us. Simulated ones are rounded differently, '
    'which would change VEPD. To disable it in a study file: `off_ticks: false`.',
    'to disable: --no-off-ticks',
)
SHARED_IMU = decisive(
    'study.shared_imu',
    'every GPS model is simulated with the IMU model {imu}: its errors are part of all distances, '
    'and another GPS model may be nearest without them',
    'The judge fuses both sensors, so the nearest GPS model can depend on the IMU model. With '
    '`--imu real`, or `imu: real` in a study file, only the GPS is simulated.',
    'to compare the GPS alone: --imu real',
)
TRUTH_OF_FIXES = decisive(
    'study.truth_of_fixes',
    'the ground truth was probably made from the fixes, which differ from it by {error:.1f mm}: '
    'the real GPS seems better than it is',
    'The ground truth contains the slow errors of the fixes. The distance between simulated and '
    'real GPS then says little about the receiver.',
    'trust the order of the models more than their distance, or use another source of truth',
)
COPIES = decisive(
    'study.copies',
    '{names} are identical: copies of one drive count as independent recordings',
    'P-values are too small and intervals too narrow.',
    'leave the copies out, or give recordings of one drive the same `block: NAME` in '
    'recording.yaml',
)
DRIVES = assumed(
    'study.drives',
    '{count:d} recordings follow each other within a minute and count as {drives}: {names}',
    'Recordings of one drive share the receiver, the sky and the road, so they are resampled '
    'together. In a study file: `block: none`.',
    'if the recordings are independent: --block none',
)
SPLIT_DRIVES = decisive(
    'study.split_drives',
    '{count:d} recordings that follow each other within a minute ({drives}) count as '
    'independent: {names}',
    'If they share the receiver, the sky and the road, p-values are too small and intervals too '
    'narrow.',
    'if they are segments of a drive, leave out `--block none`',
)
ONE_BLOCK = decisive(
    'study.one_block',
    'all {count:d} recordings are one {block}: the ranking has no intervals or p-values '
    'and holds only for it',
    'The spread between drives is unknown. Segments of a drive share the receiver, the sky and '
    'the road, so they do not represent other drives.',
    'record at least 6 drives, with more than a minute between them, better on other days; if '
    'the recordings are independent: --block none',
)
COVARIANCE_ONE_SIDED = assumed(
    'study.covariance_one_sided',
    'the {has} {sensor} states covariances of {quantities}, but the {lacks} one states zeros: '
    'with a judge that reads covariances, as robot_localization does, this alone can change '
    'VEPD severalfold',
    'Zeros mean unknown, but robot_localization replaces them by 1e-9 and trusts the sensor '
    'completely. Ignore this if you study the covariance as part of the model.',
    'state them on both sides: {remedy}',
    per_model=True,
)
ONE_DRAW = routine(
    'study.one_draw',
    'each recording has one draw of the simulated noise, so VEPD depends on --seed and on the '
    'names of the recordings',
    'Seeds depend on the names, so adding a recording does not change the others.',
    '--repetitions 10 takes the mean of ten draws',
)

_GAIN = 'the objective went from {before:.4g} to {after:.4g} on the recordings of the fit'
_SCORES = 'score {given:.4g} of the given model, {fitted:.4g} of the fitted one'

UNCHANGED = decisive(
    'fit.unchanged',
    'no model within the bounds is better than the given one',
    'The given model is returned.',
    'widen the bounds, or tune other parameters',
)
BETTER = decisive(
    'fit.better',
    f'better: {_GAIN}, and the fitted model predicts held-out recordings better ({_SCORES}; '
    'p = {p:.2g})',
    'The sign-flip test over recordings confirms the fit.',
)
OVER_FITS = decisive(
    'fit.over_fits',
    f'over-fits: {_GAIN}, but the fitted model does not predict held-out recordings better '
    f'({_SCORES})',
    'The fit follows the noise of its recordings.',
    'keep the given model, or tune fewer parameters',
)
UNPROVEN = decisive(
    'fit.unproven',
    f'not proven: {_GAIN}, and the fitted model predicts held-out recordings better ({_SCORES}), '
    'but not significantly (p = {p:.2g})',
    'The improvement may be chance.',
    'use at least 5 recordings, better more',
)
NOT_VALIDATED = decisive(
    'fit.not_validated',
    'no recording was held out, so over-fitting cannot be detected',
    'The score on the recordings of the fit is always optimistic.',
    'use two or more recordings, and --folds of two or more',
)
NOT_IDENTIFIED = decisive(
    'fit.not_identified',
    '{verdict}',
    'The recordings do not determine this parameter.',
    'fix it, or use recordings that excite it',
)
ONE_DRIVE = decisive(
    'fit.one_drive',
    'all {count:d} recordings are one drive, which was held out in segments: verdict, p-value and '
    'intervals hold for this drive only',
    'Segments of a drive share the receiver, the sky and the road, which are never held out.',
    'fit to recordings of 5 drives or more, with more than a minute between them; if the '
    'recordings are independent: --block none',
)
FEW_RECORDINGS = assumed(
    'fit.few_recordings',
    '{count:d} independent recordings: intervals of parameters are valid only for these and '
    'include only the spread of the simulated noise',
    'The spread between recordings cannot be estimated.',
    'use 5 recordings or more',
)
CANDIDATES_LEFT_OUT = routine(
    'fit.candidates_left_out',
    '{count:d} candidates could not be judged on every recording and were left out',
    'The judge failed with these parameters.',
)
