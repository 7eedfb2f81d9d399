# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Numbers that README and documentation claim, what measures each, and what it is held against."""

from __future__ import annotations

import claims_evidence as evidence
import claims_laws as laws
from claim import Claim

_CORE = 'test_judge_core.py::test_the_{}_filter_equals_the_original_core_after_every_event'
_NODE = 'test_judge_node.py::test_the_judge_reproduces_the_output_of_the_original_node'
_TRACES = 'test_judge_traces.py::test_the_judge_reproduces_the_output_of_the_original_node'
_BACK = 'test_navsat_transform_reproduces_the_filtered_gps_of_the_original_node'
_RUN = 'test_a_whole_run_agrees_with_filterpy'
_RATIO = 'chi-square bounds'
_RL = 'robot_localization 3.8.3'
_JUDGE, _INERTIAL = 'docs/explanation/judge.md', 'docs/explanation/inertial.md'
_EXPERIMENTS = 'docs/explanation/experiments.md'


def _study(judge: str, model: str, printed: str) -> Claim:
    """One seed of the study, which must lie in the printed range of five."""
    low, high = printed.partition('[')[2].strip(']').split(', ')
    half = 0.5 * 10.0 ** -len(high.partition('.')[2])
    return Claim(
        f'experiment B on stand-ins, seed 0, `{judge}`: VEPD of {model}',
        'seeds 0 to 4 as printed', 'study', f'{judge} {model}', float(high) + half,
        float(low) - half, stated=((_EXPERIMENTS, printed),),
    )  # fmt: skip


def _manoeuvres(model: str, low: float, high: float, *printed: str) -> Claim:
    return Claim(
        f'experiment C on stand-ins, seed 0, three manoeuvres: VEPD of {model}',
        'means of seeds as printed', 'study', f'{model} by manoeuvre', high, low,
        stated=tuple((_EXPERIMENTS, one) for one in printed),
    )  # fmt: skip


def _drive(name: str, judge: str, low: float, high: float, printed: str) -> Claim:
    return Claim(
        f'{name}, `{judge}`: RMSE of speed', 'the truth of the recording', 'drives',
        f'{name} {judge}', high, low, 'm/s', ((_INERTIAL, printed),),
    )  # fmt: skip


def _predicts(estimator: str, measure: str, column: str, low: float, high: float) -> Claim:
    meaning = {
        'tau': 'tau with the cost on unseen drives',
        'transfer loss more': 'by how much the transfer loss has a larger tau',
        'first choice': 'extra error of its first choice',
    }
    return Claim(
        f'{estimator}: {measure}, {meaning[column]}', 'known errors', 'predicts',
        f'{estimator}: {measure}: {column}', high, low,
    )  # fmt: skip


CLAIMS: dict[str, tuple[Claim, ...]] = {
    'Estimators': (
        Claim('EKF core, 5 traces: state', _RL, _CORE.format('extended'), 'state', 1e-12),
        Claim('UKF core, 5 traces: state', _RL, _CORE.format('unscented'), 'state', 1e-8),
        Claim('nodes, 10 traces: position', _RL, _NODE, 'position', 4e-9, unit='m'),
        Claim(
            'nodes, 10 traces: velocity', _RL, _NODE, 'velocity', 4e-8, unit='m/s',
            stated=(('README.md', '4e-8 m/s'),),
        ),
        Claim('nodes, 10 traces: covariance, relative', _RL, _NODE, 'covariance', 1e-6),
        Claim('nodes, 10 more traces: position', _RL, _TRACES, 'position', 1e-11, unit='m'),
        Claim('nodes, 10 more traces: velocity', _RL, _TRACES, 'velocity', 2e-11, unit='m/s'),
        Claim(
            '`gps/filtered`, 11 traces: latitude', _RL, f'test_judge_navsat_traces.py::{_BACK}',
            'latitude', 1e-9, unit='deg',
        ),
        Claim(
            'EKF, a run of 20 s: state', 'filterpy', f'test_judge_filter.py::{_RUN}', 'state',
            1e-10,
        ),
        Claim(
            'textbook UKF, a run of 10 s: state', 'filterpy',
            f'test_judge_textbook_unscented.py::{_RUN}', 'state', 1e-9,
        ),
        Claim(
            'error-state integration', 'scipy, matrix exponential',
            'test_strapdown.py::test_an_interval_of_constant_rate_and_force_is_integrated_exactly',
            'motion', 1e-12,
        ),
        Claim(
            'error-state integration', 'GTSAM, preintegration',
            'test_strapdown.py::test_integration_agrees_with_the_preintegration_of_gtsam',
            'motion', 1e-9,
        ),
        Claim(
            'attitude filter: quaternion', 'filterpy with scipy rotations',
            'test_attitude.py::test_the_filter_equals_filterpy_with_finite_difference_jacobians',
            'quaternion', 1e-9,
        ),
        Claim(
            'preintegration: covariance, relative', 'GTSAM 4.3',
            'test_preintegration.py::test_deltas_covariance_and_prediction_equal_those_of_gtsam',
            'covariance', 1e-12,
        ),
    ),
    'Consistency of our filters': (
        Claim(
            '`error_state`, 40 drives: NEES over 15 states', _RATIO,
            'test_error_state.py::test_errors_match_the_stated_covariance', 'state', 1.2, 0.82,
        ),
        Claim(
            '`error_state`, 40 drives: NIS ratio', _RATIO,
            'test_error_state.py::test_errors_match_the_stated_covariance', 'NIS', 1.04, 0.96,
        ),
        Claim(
            '`gtsam` smoother, 36 drives: NEES ratios', _RATIO,
            'test_smoother.py::test_errors_match_the_stated_covariances', 'ratio', 1.5, 0.61,
        ),
        Claim(
            'attitude: NEES ratio at three times', _RATIO,
            'test_attitude.py::test_nees_of_a_correct_model_is_inside_its_band', 'ratio', 1.6, 0.5,
        ),
        Claim(
            '`correct: [differential]`: mean NIS ratio', 'expected value 1',
            'test_judge_corrections.py::test_innovations_of_increments_match_their_covariance',
            'corrected', 1.1, 0.9,
        ),
    ),
    'Statistics': (
        Claim(
            'VEPD on the published file layout', 'the published procedure in numpy and scipy',
            'test_metrics_vepd.py::test_files_in_the_published_layout_give_tables_1_and_2_to_the_last_digit',
            'relative', 1e-13,
        ),
        Claim(
            'Wiener entropy', 'a DFT by definition',
            'test_metrics_scores.py::test_the_score_agrees_with_an_independent_computation',
            'entropy', 1e-10,
        ),
        Claim(
            'identical sensors called different, nominal 5 %', 'known distribution',
            'test_uncertainty.py::test_identical_sensors_are_called_different_at_the_stated_rate',
            'share', 0.06, 0.04,
        ),
        Claim(
            'the same, 12 settings, two coordinates', 'known distribution', 'same', 'rejects',
            0.06, 0.035,
        ),
        Claim(
            'coverage of 95 % intervals, 36 settings', 'known distance', 'different', 'covers',
            0.985, 0.95,
        ),
        Claim(
            'coverage of the 95 % interval of a fitted parameter', 'known parameter',
            'test_fit_truths.py::test_intervals_contain_the_true_value', 'share', 1.0, 0.75,
        ),
        Claim(
            '`tune` from correct parameters changes one', 'known filter', 'tuning', 'changed',
            0.05,
        ),
        Claim(
            'coverage of the 95 % interval of a tuned parameter', 'known filter', 'tuning',
            'inside', 1.0, 0.8,
        ),
        Claim(
            'GPS at rest, nine kinds: scatter of errors over uncertainty', 'known model', 'gps',
            'scatter', 1.25, 0.8,
        ),
        Claim(
            'the same: errors beyond three uncertainties', 'known model', 'gps', 'beyond three',
            0.012,
        ),
        Claim(
            '`gps.yaml` of the correct model fails its check, nominal 1 %', 'known model', 'gps',
            'false alarms', 0.05,
        ),
        Claim(
            '`gps.yaml` of a GPS that jumps fails its check', 'known model', 'gps', 'steps found',
            1.0, 0.9,
        ),
        Claim(
            'coverage of the 95 % interval of error² over stated²', 'known model', 'gps',
            'covered', 1.0, 0.9,
        ),
        Claim(
            'halves of real standstills of a GPS: difference over uncertainty', 'the other half',
            'gps', 'halves', 3.0,
        ),
        *laws.COVERAGE,
        *evidence.BLOCKS,
    ),
    'Does VEPD predict?': (
        _predicts('clean', 'transfer loss', 'tau', 0.6, 0.9),
        _predicts('clean', 'transfer loss', 'first choice', -0.03, 0.03),
        _predicts('clean', 'VEPD, tuned filter', 'tau', 0.25, 0.6),
        _predicts('clean', 'VEPD, tuned filter', 'transfer loss more', 0.1, 0.6),
        _predicts('clean', 'VEPD, filter as given', 'tau', -0.1, 0.35),
        _predicts('clean', 'Allan deviations', 'tau', 0.2, 0.6),
    ),
    'Sensors, noise and world': (
        Claim(
            'Allan deviation, relative', 'allantools',
            'test_allan.py::test_deviations_agree_with_allantools_to_1e_12', 'relative', 1e-12,
        ),
        Claim(
            'Allan deviation of the ADIS16405 record, relative', 'the published deviations',
            'test_allan.py::test_variances_of_a_real_sensor_equal_the_published_ones',
            'relative', 5e-6,
        ),
        Claim(
            'N, B and K within 3 sigma', 'known noise',
            'test_allan_fit.py::test_terms_are_recovered_within_three_sigma_in_100_of_102_seeds',
            'share', 1.0, 0.98,
        ),
        *laws.NOISE,
        *laws.EARTH,
        Claim(
            'WMM 2020, 100 places', "NOAA's test values",
            'test_world.py::test_the_field_equals_the_published_test_values_of_the_wmm',
            '0.05 nT', 0.051, unit='nT',
        ),
        Claim(
            'WMM 2025, 100 places', "NOAA's test values",
            'test_world.py::test_the_field_equals_the_published_test_values_of_the_wmm',
            '0.0015 nT', 0.0015, unit='nT',
        ),
        Claim(
            'normal gravity at height 0', 'gradient of the WGS84 potential',
            'test_world.py::test_normal_gravity_is_the_gradient_of_the_normal_potential',
            'difference', 2e-8, unit='m/s²',
        ),
        Claim(
            'field of a dipole: divergence over slopes', "Maxwell's equations",
            'test_dipoles.py::test_the_field_has_neither_divergence_nor_curl_away_from_the_source',
            'divergence', 1e-7,
        ),
        Claim(
            'scenarios: pose', "GTSAM's scenarios",
            'test_rigid_scenarios.py::test_the_motion_equals_that_of_gtsam', 'pose', 2e-13,
        ),
        Claim(
            'car on springs, class C, 1 to 8 Hz: power over that of the road', 'chi-square bounds',
            'test_rough_ground.py::test_the_body_spectrum_is_the_road_spectrum_times_the_transfer_function',
            'power', 1.25, 0.8, stated=(('docs/explanation/motion.md', 'power is 0.96'),),
        ),
        Claim(
            'the same over known heights, class A: acceleration, relative', 'a linear car',
            'test_rough_ground.py::test_the_car_on_rough_ground_equals_the_linear_quarter_car',
            'difference', 0.06,
        ),
        Claim(
            'camera with lens distortion', 'OpenCV',
            'test_pinhole.py::test_projected_pixels_equal_those_of_opencv',
            'pixels', 1e-9, unit='px',
        ),
        Claim(
            'fisheye lens', "OpenCV's module fisheye",
            'test_fisheye.py::test_projected_pixels_equal_those_of_the_fisheye_module_of_opencv',
            'pixels', 1e-9, unit='px',
        ),
        *evidence.CAMERA,
    ),
    'Recordings and experiments': (
        *evidence.RECORDINGS,
        _drive('drive0708', 'error_state', 0.025, 0.035, '0.03 (0.03)'),
        _drive('drive0708', 'gtsam', 0.0185, 0.0195, '0.019'),
        _drive('drive0708', 'clean', 0.075, 0.085, '0.79 (0.08)'),
        _drive('drive0708', 'paper_released', 0.155, 0.165, '0.79 (0.16)'),
        _drive('comma2k19', 'error_state', 0.265, 0.275, '0.27 (0.12)'),
        _drive('comma2k19', 'clean', 0.325, 0.335, '1.40 (0.33)'),
        _drive('comma2k19', 'paper_released', 0.615, 0.625, '3.19 (0.62)'),
        _drive('comma2k19', 'gtsam', 0.0845, 0.0855, '0.085'),
        _study('clean', 'ch_gauss', '0.354 [0.348, 0.360]'),
        _study('clean', 'ch_rw', '0.045 [0.042, 0.052]'),
        _study('clean', 'airsim', '0.270 [0.241, 0.314]'),
        _study('clean', 'ch_gauss_airsim', '0.268 [0.239, 0.312]'),
        _study('clean', 'ch_rw_airsim', '0.270 [0.241, 0.314]'),
        _study('paper_released', 'ch_gauss', '0.255 [0.252, 0.261]'),
        _study('paper_released', 'ch_rw', '0.0029 [0.0025, 0.0032]'),
        _study('paper_released', 'airsim', '0.074 [0.071, 0.076]'),
        _study('paper_released', 'ch_gauss_airsim', '0.063 [0.062, 0.066]'),
        _study('paper_released', 'ch_rw_airsim', '0.074 [0.071, 0.076]'),
        _manoeuvres('ch_gauss', 0.245, 0.265, '0.256 (5)', '0.254 (5)'),
        _manoeuvres('ch_rw', 0.002, 0.0045, '0.0032 (1)', '0.0030 (1)', '0.0035 (1)'),
        Claim(
            'the same on springs, either judge: change of VEPD', 'the car in the plane', 'study',
            'change on springs', 0.0085, stated=((_EXPERIMENTS, 'than 0.0085'),),
        ),
        Claim(
            "the same on springs, either judge: Kendall's tau", 'the car in the plane', 'study',
            'order on springs', 1.0, 0.8,
        ),
    ),
}  # fmt: skip
