# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Options of scores and uncertainty, declared once, and findings about scored runs."""

from __future__ import annotations

import dataclasses

from sim2real_eval.common.findings import decisive, routine
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.parameters import Parameters, parameter, rare

REAL = 'real'
"""Name of the recorded sensors among the sources of a study."""
SPEED_COMPONENTS = ('horizontal', 'forward', 'x', 'y')


class MetricError(Sim2RealError):
    """A score or distance cannot be computed from what was given."""


@dataclasses.dataclass(frozen=True)
class MetricOptions(Parameters):
    """Options of the pipeline of [Mahajan2024], as its scripts [SBEL] have it.

    See docs/explanation/metric.md for what each does to the number. `MetricOptions()` is the
    pipeline of the paper's Tables I and II for files without zero padding.

    Examples
    --------
    >>> MetricOptions(warmup=3.0).rate
    15.0
    """

    rate: float = rare(15.0, 'Hz', 'Rate of the common time grid.', above=0.0, maximum=1e4)
    moving_average: int = rare(
        2,
        '1',
        'Samples in the moving average over the estimate and its times; 1 means none.',
        minimum=1,
    )
    rezero: str = rare(
        'none',
        '',
        'none: times as given, the grid starts at 0 (Tables I and II); each: estimate and truth '
        'each start at their own first sample (experiment D); common: both start at the earlier '
        'first sample.',
        choices=('none', 'each', 'common'),
    )
    warmup: float = parameter(0.0, 's', 'Time left out at the start of every run.', minimum=0.0)
    spectrum: str = rare(
        'magnitude',
        '',
        'Spectrum whose flatness is the entropy: magnitude (paper) or power (textbook).',
        choices=('magnitude', 'power'),
    )
    detrend: str = rare(
        'none',
        '',
        'mean: subtract the mean from each signal before the spectrum; none: keep it (paper).',
        choices=('none', 'mean'),
    )
    spectrum_floor: float = rare(
        1e-10,
        '1',
        'Added to the spectrum before the logarithm, in the unit of the spectrum.',
        above=0.0,
    )
    drop_zeros: bool = parameter(
        False,
        '',
        'Read files whose truth is padded with zeros, like the published files: zeros are dropped '
        'from gt_time and from gt_vel separately.',
    )


@dataclasses.dataclass(frozen=True)
class UncertaintyOptions(Parameters):
    """Options of `uncertainty`; explained in docs/explanation/uncertainty.md.

    Examples
    --------
    >>> UncertaintyOptions(resamples=1000).level
    0.95
    """

    resamples: int = rare(
        10_000,
        '1',
        'Permutations and resamples of the motions. If there are fewer permutations, each is '
        'used once and the p-value is exact.',
        minimum=100,
        maximum=10_000_000,
    )
    level: float = rare(
        0.95,
        '1',
        'Confidence level of the intervals; differences are significant if their adjusted p-value '
        'is at most 1 - level.',
        minimum=0.5,
        maximum=0.999,
    )
    power: float = rare(
        0.8,
        '1',
        'Power for which the number of further motions is computed: probability of detecting the '
        'difference of two models.',
        minimum=0.5,
        maximum=0.999,
    )
    most_motions: int = rare(
        1000,
        '1',
        'Largest reported number of further motions; above it, the text is "more than".',
        minimum=1,
    )


SLOW_TRUTH = routine(
    'truth.slow',
    'the truth has {rate:.3g Hz}, the grid {grid:g Hz}: motion above {half:.3g Hz} counts as an '
    'error of the estimate, and the truth above it is interpolated',
    'The truth is interpolated linearly between its samples.',
    'compare at the rate of the truth with --rate (in a study file `metric: {{rate: HZ}}`, in '
    'Python `metric=MetricOptions(rate=HZ)`)',
)
MOVING_START = decisive(
    'truth.moving_start',
    'the truth starts at {speed:.1f m/s}: for a judge that starts at rest, the score measures how '
    'it reaches this speed rather than its sensors',
    'The first seconds dominate the error.',
    'leave the start out with --warmup SECONDS (in a study file `metric: {{warmup: SECONDS}}`, in '
    'Python `metric=MetricOptions(warmup=SECONDS)`)',
)
SHORT_RUN = routine(
    'run.short',
    'the run lasts {duration:.1f s} (paper: 20 s): the start has a large influence, and the '
    'entropy is computed from only {samples:d} samples',
    'Metrics of short runs vary more from run to run.',
    'record longer runs',
)
LATE_START = decisive(
    'run.late_start',
    'starts {gap:.1f s} late, {share:.0%} of the run: its first value is used for this time',
    'The error at the start is that of a constant, not of the estimator.',
    'start the judge or the truth earlier, leave out the recording, or leave out the start with '
    '--warmup SECONDS',
)
SERIES_GAP = routine(
    'run.gap',
    'has no samples for {gap:.1f s} {filling}',
    'Messages are missing, or the judge or the truth starts late. Errors are interpolated there.',
)
ENDS_EARLY = routine(
    'run.ends_early',
    'ends {time:.1f s} before the {other}: the rest of the run is ignored',
    'Only the common time is compared.',
)
PLANAR = routine(
    'consistency.planar',
    'two_d_mode measures z, roll, pitch and their rates as 0 with every input: they do not count '
    'as degrees of freedom of the NIS, and errors are those of x, y and yaw',
    'The consistency test uses the part of the state that moves.',
)
NO_INNOVATIONS = routine(
    'consistency.no_innovations',
    'the judge is a smoother without innovations, so there is no NIS',
    'A smoother does not predict its measurements.',
)
NO_TRUTH = routine(
    'consistency.no_truth',
    'the recording has no truth, so there is no NEES',
    'NEES is computed from errors.',
)
NO_NUMBERS = decisive(
    'consistency.no_numbers',
    'no estimate is finite, so there is no NEES',
    'The filter has diverged.',
)
WORLD_FROM_START = routine(
    'consistency.world_from_start',
    "no input determines the judge's world frame in {axes}, so the truth is aligned with the "
    'first estimate: errors start at zero, and the covariance of that estimate is subtracted',
    'Only errors since the start are visible.',
)
TRUTH_ALIGNED = routine(
    'consistency.truth_aligned',
    'the truth is rotated by {turn:.1f degrees} and aligned with {inputs!s} of the judge',
    'A constant error of these inputs is not visible.',
)
INCOMPLETE = routine(
    'series.incomplete',
    '{columns}: {count:d} samples without time or velocity are dropped',
    'A series needs pairs of time and velocity.',
)
ZEROS_DIFFER = routine(
    'series.zeros_differ',
    'zeros of gt_time and gt_vel are in different rows: dropping them separately, as the paper '
    'does, pairs velocities with the times of other samples',
    'The published files are padded with zeros.',
)
NOT_A_SERIES = routine(
    'series.not_a_series',
    'is not named <scenario>_<number>.csv; left out',
    'The file name does not say scenario and run.',
)
NO_SERIES = decisive(
    'series.none',
    'no series of {source}; left out',
    'The folder holds no file <scenario>_<number>.csv, so this model is not compared.',
)
SCENARIO_SKIPPED = routine(
    'series.scenario_skipped',
    '{count:d} runs of scenario {scenario} left out, as in the paper',
    'The paper leaves the scenario `rest` out.',
)
MIXTURES_DIFFER = routine(
    'vepd.mixtures_differ',
    '{runs}: the pooled row compares different mixtures of scenarios',
    'Ranks of the pooled row compare models with different motions.',
    'use as many runs of each scenario for real and simulated sensors',
)
TOO_FEW_MOTIONS = routine(
    'uncertainty.too_few_motions',
    'too few real motions for a significant gap at level {level:g}: {motions:d}; the smallest '
    'possible p-value is {least:.2g}',
    'A permutation test of n pairs has 2^n labellings.',
    'use at least 6 pairs, or 4 unpaired runs of each (at level 0.95)',
)
FEW_MOTIONS = routine(
    'uncertainty.few_motions',
    'independent motions: {motions:d}; {consequence!s}',
    'The spread between few motions is poorly known. A block counts as one motion.',
    'record more motions',
)
REPEATED = routine(
    'uncertainty.repeat',
    'two judgements of the real runs have the distance {repeat:.2g}',
    'The judge is not repeatable. Every distance contains this variation, and the null distance '
    'is at least as large.',
)
WITHIN_REPEAT = decisive(
    'uncertainty.within_repeat',
    'the distance is not larger than that between two judgements of the real runs, {repeat:.2g}',
    'The distance is the variation of the judge; it says nothing about the sensors.',
    'replay more slowly with `clock: {{rate: 0.5}}` in case.yaml, or use `clock: {{mode: '
    'lockstep}}`',
)
SKEWED = routine(
    'uncertainty.skewed',
    'the runs have a long tail (skewness {skewness:.1f}, excess kurtosis {kurtosis:.1f}): in '
    'simulated studies of such runs, the 95 % interval contained the true distance in {least:d} '
    'to {most:d} %, least often where sensors differ in spread',
    'The largest runs decide the distance and are seldom recorded. The p-value is exact for any '
    'distribution.',
    'record more motions; look at the runs with the largest errors',
)
NOT_SIGNIFICANT = routine(
    'uncertainty.not_significant',
    'not significantly different: {pairs}',
    'The order of these models in the ranking may be chance.',
    'record more motions',
)
