# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Claims about known distributions: coverage of intervals, fitted noise, the turning Earth."""

from __future__ import annotations

from claim import Claim


# Of 720 trials at 95 %, the share is within 92 and 98 % but with a chance of 0.02 %.
def _covers(
    law: str, step: str = 'coverage', of: str = '', low: float = 0.92, high: float = 0.985
) -> Claim:
    return Claim(
        f'coverage of 95 % intervals, {law}{of}, 18 settings', 'known distance', step,
        f'{law}: covers', high, low,
    )  # fmt: skip


COVERAGE = (
    *(_covers(law) for law in ('normal', 't3', 'bimodal')),
    *(_covers(law) for law in ('log-normal 0.5', 'log-normal 0.9', 'contaminated')),
    _covers('log-normal 0.9', 'together', ', coordinates with correlated errors', 0.88, 0.97),
    Claim(
        'finding `uncertainty.skewed`, log-normal 0.9, 10 and 30 runs', 'known distribution',
        'coverage', 'log-normal 0.9: warns', 1.0, 0.95,
    ),
    Claim(
        'the same of normal runs', 'known distribution', 'coverage', 'normal: warns', 0.12,
    ),
)  # fmt: skip

_FIT = 'test_allan_fit.py::'
_KINDS = f'{_FIT}test_flicker_and_a_gauss_markov_bias_are_separated'

NOISE = (
    Claim(
        'white noise N, 320 records: deviation of errors over stated ones', 'known noise',
        f'{_FIT}test_fitted_white_noise_scatters_by_its_stated_uncertainty',
        'deviation, alone', 1.1, 0.9,
    ),
    Claim(
        'flicker of a fifth of the white noise averaged over 30 samples, if detected: mean error '
        'over stated ones', 'known noise',
        f'{_FIT}test_detected_weak_flicker_is_not_overestimated', 'bias', 0.2,
    ),
    Claim(
        'flicker or Gauss-Markov bias, six hours: identified', 'known noise', _KINDS, 'named', 1.0,
        0.8,
    ),
    Claim(
        'the same: fitted over true Allan deviation at an hour', 'known noise', _KINDS, 'hour',
        1.35, 0.65,
    ),
)  # fmt: skip

_TURNS = 'test_turning_earth.py::'
_SIDE = f'{_TURNS}test_earth_rotation_only_in_the_simulation_causes_heading_and_velocity_errors'

EARTH = (
    Claim(
        'gyroscope at rest, four latitudes, relative', '15.041 deg/h',
        f'{_TURNS}test_a_gyroscope_at_rest_measures_true_north', 'rate', 1e-4,
    ),
    Claim(
        'Eötvös and Coriolis, relative', '2 W v cos and sin of the latitude',
        f'{_TURNS}test_the_specific_force_of_eastward_and_northward_drives_includes_coriolis',
        'pull', 1e-9,
    ),
    Claim(
        'unaided navigation: period', 'Schuler, 84.4 min',
        f'{_TURNS}test_an_unaided_navigator_oscillates_with_the_schuler_period', 'period', 84.8,
        84.0, 'min',
    ),
    Claim(
        'Earth in twin or judge only, 11 min: heading error over expected', 'W sin(latitude) t',
        _SIDE, 'heading', 1.001, 0.999,
    ),
    Claim(
        'the same: velocity error over expected', 'W cos(latitude), g and Schuler',
        _SIDE, 'velocity', 1.02, 0.98,
    ),
)  # fmt: skip
