# SPDX-License-Identifier: Apache-2.0
"""Findings about options that follow from recordings, and about fitted models."""

from __future__ import annotations

from sim2real_eval.common.findings import assumed, decisive, routine

TRUTH_RATE = assumed(
    'study.truth_rate',
    'speeds are compared at the rate of the ground truth, {rate:.3g Hz} instead of {usual:g Hz}',
    'Between the samples of a slow ground truth there is nothing to compare with. In a study file '
    '`metric: {rate: 15}` refuses it.',
    'to refuse: --rate 15',
)
WARMUP = assumed(
    'study.warmup',
    'the first {warmup:g s} are left out: recordings start at up to {most:.1f m/s} ({count:d}x)',
    'A judge that starts at rest has to find the speed first. In a study file '
    '`metric: {warmup: 0}` refuses it.',
    'to refuse: --warmup 0',
)
MATCHED_RATES = assumed(
    'study.matched_rates',
    'sensors are simulated at the rates of the real ones, such as {real:.3g Hz} instead of '
    '{own:.3g Hz}',
    'The rate alone can change VEPD severalfold. In a study file `match_rates: false` refuses it.',
    'to refuse: --no-match-rates',
)
START_HEADING = assumed(
    'study.start_heading',
    'judge {judges} starts with the true heading, because the real IMU has no orientation',
    'With an arbitrary heading, forward speed is meaningless. In a study file '
    '`start_heading: false` refuses it.',
    'to refuse: --no-start-heading',
)
OFF_TICKS = assumed(
    'study.off_ticks',
    'judge {judges} starts 10 us late: in {count:d} of {total:d} recordings, fixes are stamped on '
    'its ticks, where rounding decides which of them wait for the next tick',
    'Stamps that were doubles are rounded to 0.1 us. Simulated fixes are rounded differently, '
    'which alone would make a difference. In a study file `off_ticks: false` refuses it.',
    'to refuse: --no-off-ticks',
)
SHARED_IMU = decisive(
    'study.shared_imu',
    'every GPS model is simulated with the IMU model {imu}: its errors count in all distances, '
    'and without them another model may be nearest',
    'The judge fuses both sensors, so another IMU model can bring another GPS model nearest. With '
    '`--imu real`, in a study file `imu: real`, only the GPS is simulated.',
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
    '{names} are equal to the last digit: they are one drive but count as independent ones',
    'P-values and intervals are too small.',
    'leave copies out, or give recordings that belong together one `block` in a study file',
)
COVARIANCE_ONE_SIDED = assumed(
    'study.covariance_one_sided',
    'the {has} {sensor} states covariances of {quantities}, the {lacks} one zeros: they alone can '
    'change VEPD severalfold',
    'Zeros mean unknown, but robot_localization replaces them by 1e-9 and trusts the sensor '
    'completely. Leave it where the covariance is part of the model that you study.',
    'state them on both sides: {remedy}',
    per_model=True,
)
ONE_DRAW = routine(
    'study.one_draw',
    'each recording has one draw of the simulated noise: another --seed, or other names of the '
    'recordings, change VEPD',
    'Names are part of the seeds, so that an additional recording changes no other.',
    '--repetitions 10 takes the mean of ten draws',
)

_GAIN = '{before:.4g} became {after:.4g} on the recordings of the fit'
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
    f'over-fits: {_GAIN}, but the fitted model predicts held-out recordings no better ({_SCORES})',
    'The fit follows the noise of its recordings.',
    'keep the given model, or tune fewer parameters',
)
UNPROVEN = decisive(
    'fit.unproven',
    f'not proven: {_GAIN}, and the fitted model predicts held-out recordings better ({_SCORES}), '
    'but not significantly (p = {p:.2g})',
    'The improvement may be chance.',
    'use more recordings; fewer than 5 prove nothing',
)
NOT_VALIDATED = decisive(
    'fit.not_validated',
    'no recording was held out, so over-fitting cannot be detected',
    'The score on the recordings of the fit is always optimistic.',
    'fit with two recordings or more',
)
NOT_IDENTIFIED = decisive(
    'fit.not_identified',
    '{verdict}',
    'The recordings do not determine this parameter.',
    'fix it, or use recordings that excite it',
)
FEW_RECORDINGS = assumed(
    'fit.few_recordings',
    '{count:d} recordings: intervals of parameters hold for these recordings only, from draws of '
    'the simulated noise',
    'The spread between recordings cannot be estimated.',
    'use 5 recordings or more',
)
CANDIDATES_LEFT_OUT = routine(
    'fit.candidates_left_out',
    '{count:d} candidates could not be judged on every recording and were left out',
    'The judge failed with these parameters.',
)
