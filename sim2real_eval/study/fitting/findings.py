# SPDX-License-Identifier: Apache-2.0
"""What fitting the parameters of a model may find."""

from __future__ import annotations

from sim2real_eval.common.findings import assumed, decisive, routine

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
