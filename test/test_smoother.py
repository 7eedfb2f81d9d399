# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The smoother against true motion and sensors with known noise."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cli_examples import segments
from scipy.spatial.transform import Rotation
from scipy.stats import chi2
from smoother_examples import SETTINGS, START_NS, drive

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.inertial.error_state import ErrorStateJudge
from sim2real_eval.judge.inertial.settings import InertialSettings, Smoother
from sim2real_eval.judge.protocol import Judge
from sim2real_eval.judge.smoother.smoother import SmootherJudge
from sim2real_eval.metrics.consistency import check_consistency, nees
from sim2real_eval.metrics.series import velocity_series
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.measurements import FixArray, ImuArray
from sim_sensors.motion.scenarios import Circle, HalfSine, Line, Scenario

Record = Callable[[str, object], None]

pytest.importorskip('gtsam')

MOTIONS: tuple[Scenario, ...] = (
    Line(duration=12.0, speed=5.0, heading=0.7),
    Circle(duration=12.0, speed=4.0, radius=8.0),
    HalfSine(duration=12.0, speed=5.0),
)
WAVY = HalfSine(duration=12.0, speed=5.0)


def smooth(
    recording: Recording, settings: InertialSettings, *, start_heading: float | None = None
) -> JudgedRun:
    return SmootherJudge('gtsam', (), settings).judge(recording, start_heading=start_heading)


def position_errors(run: JudgedRun, recording: Recording) -> np.ndarray:
    truth = recording.truth
    at = np.searchsorted(truth.stamp_ns, run.stamp_ns)
    assert (truth.stamp_ns[at] == run.stamp_ns).all()
    return run.position - truth.position[at]


def with_fixes(recording: Recording, change: dict[str, object]) -> Recording:
    fixes = recording.gps
    assert fixes is not None
    return recording.with_messages('gps', dataclasses.replace(fixes, **change))


@pytest.mark.parametrize('motion', MOTIONS, ids=lambda motion: type(motion).__name__)
def test_error_free_sensors_with_lever_arms_give_the_true_motion(motion: Scenario) -> None:
    """Arms of half a metre, a turned IMU; lines between 100 Hz messages leave millimetres."""
    recording, heading = drive(motion, 0, noise=0.0)
    run = smooth(recording, SETTINGS, start_heading=heading)
    truth = recording.truth
    at = np.searchsorted(truth.stamp_ns, run.stamp_ns)
    assert np.abs(position_errors(run, recording)).max() < 5e-3
    assert np.abs(run.linear_velocity - truth.linear_velocity[at]).max() < 5e-3
    assert np.abs(run.angular_velocity - truth.angular_velocity[at]).max() < 1e-3
    turned = Rotation.from_quat(run.orientation).inv() * Rotation.from_quat(truth.orientation[at])
    assert turned.magnitude().max() < 1e-3


@pytest.mark.parametrize('judge', [ErrorStateJudge, SmootherJudge])
def test_fixes_are_positions_of_base_link(
    judge: type[ErrorStateJudge] | type[SmootherJudge],
) -> None:
    """The antenna is 1.35 m away; errors of the positions fit their covariance."""
    recording, heading = drive(MOTIONS[1], 20, noise=0.01)
    truth = recording.truth
    estimator = judge('mine', (), SETTINGS)
    run = estimator.judge(recording, start_heading=heading)
    at = np.searchsorted(truth.stamp_ns, run.gps_stamp_ns)
    # The filter has to find its tilt first.
    apart = run.gps_position - truth.position[at]
    assert np.abs(apart[-10:]).max() < 0.05
    checked = {item.name: item for item in check_consistency(estimator, recording, run).squares}
    assert np.mean(checked['NEES position'].squares) < 6.0


def test_errors_match_the_stated_covariances(record_property: Record) -> None:
    """NEES at one moment of 36 runs: chi-square with 108 degrees of freedom, 4 alarms in 1000."""
    squares: dict[str, float] = {}
    for number in range(36):
        recording, heading = drive(MOTIONS[number % 3], 100 + number)
        run = smooth(recording, SETTINGS, start_heading=heading)
        assert recording.truth is not None
        for ratios in nees(run, recording.truth):
            name, values = ratios.name, ratios.squares
            # Moments at fixes and between them, and those of the ends.
            moment = (0, 50, 117, 122, 203, len(values) - 1)[number // 6]
            squares[name] = squares.get(name, 0.0) + float(values[moment])
    low, high = chi2.ppf([0.0005, 0.9995], 3 * 36)
    for value in squares.values():
        record_property('ratio', value / (3 * 36))
    assert all(low < value < high for value in squares.values()), squares


def test_estimates_between_fixes_do_not_depend_on_extra_nodes() -> None:
    """Fixes at 1 Hz; extra fixes with a deviation of 10 km only add nodes."""
    sparse, heading = drive(WAVY, 5, fix_rate=1.0)
    dense, _ = drive(WAVY, 5, fix_rate=20.0)
    has_fix = np.isin(dense.gps.stamp_ns, sparse.gps.stamp_ns)
    vague = np.where(has_fix[:, None, None], dense.gps.position_covariance, 1e8 * np.eye(3))
    dense = with_fixes(dense, {'position_covariance': vague})
    sparse = sparse.with_messages('gps', dense.gps.take(has_fix) if dense.gps else None)
    coarse, fine = (smooth(run, SETTINGS, start_heading=heading) for run in (sparse, dense))
    assert np.abs(coarse.position - fine.position).max() < 2e-3
    assert np.abs(coarse.linear_velocity - fine.linear_velocity).max() < 2e-3
    for name in ('pose_covariance', 'twist_covariance'):
        variances = (np.einsum('nii->ni', getattr(run, name)) for run in (coarse, fine))
        np.testing.assert_allclose(*variances, rtol=0.02)


def test_a_robust_loss_reduces_the_effect_of_outliers() -> None:
    """One fix in ten is 30 m off, 100 deviations: without loss metres, with it decimetres."""
    recording, heading = drive(WAVY, 3)
    fixes = recording.gps
    wrong = np.arange(4, len(fixes), 10)
    latitude = fixes.latitude.copy()
    latitude[wrong] += 30.0 / 111_000.0
    recording = with_fixes(recording, {'latitude': latitude})
    worst = {}
    for loss in ('none', 'huber', 'cauchy'):
        settings = dataclasses.replace(SETTINGS, smoother=Smoother(loss=loss))
        run = smooth(recording, settings, start_heading=heading)
        worst[loss] = float(np.abs(position_errors(run, recording)).max())
        notes = [note for note in run.notes if note.code == 'smoother.outliers']
        assert len(notes) == (loss != 'none')
        assert all(note.numbers['count'] >= len(wrong) for note in notes)
    assert worst['none'] > 2.0
    assert max(worst['huber'], worst['cauchy']) < 0.8


def test_a_robust_loss_changes_little_without_outliers() -> None:
    recording, heading = drive(WAVY, 4)
    plain = dataclasses.replace(SETTINGS, smoother=Smoother(loss='none'))
    with_loss = smooth(recording, SETTINGS, start_heading=heading)
    without = smooth(recording, plain, start_heading=heading)
    assert np.abs(with_loss.position - without.position).max() < 0.05


def test_the_smoother_is_more_accurate_than_the_filter() -> None:
    """Mean squares of position and velocity over 6 runs."""
    squares = np.zeros((2, 2))
    for seed in range(6):
        recording, heading = drive(MOTIONS[seed % 3], 300 + seed)
        truth = recording.truth
        for row, judge in enumerate(
            (SmootherJudge('gtsam', (), SETTINGS), ErrorStateJudge('error_state', (), SETTINGS))
        ):
            run = judge.judge(recording, start_heading=heading)
            run_at = np.isin(run.stamp_ns, truth.stamp_ns)
            at = np.searchsorted(truth.stamp_ns, run.stamp_ns[run_at])
            position = run.position[run_at] - truth.position[at]
            velocity = run.linear_velocity[run_at] - truth.linear_velocity[at]
            squares[row] += np.mean(position**2), np.mean(velocity**2)
    assert (squares[0] < 0.5 * squares[1]).all(), squares


def test_repeated_runs_are_bit_identical() -> None:
    recording, heading = drive(WAVY, 6)
    first, other = (smooth(recording, SETTINGS, start_heading=heading) for _ in range(2))
    for field in dataclasses.fields(JudgedRun):
        value = getattr(first, field.name)
        if isinstance(value, np.ndarray):
            assert value.tobytes() == getattr(other, field.name).tobytes(), field.name
    assert first.notes == other.notes


def assert_within_five_deviations(run: JudgedRun, recording: Recording) -> None:
    """False alarms: 240 correlated estimates, 3 axes: 4e-4 at most."""
    sigma = np.sqrt(np.einsum('nii->ni', run.pose_covariance[:, :3, :3]))
    assert (np.abs(position_errors(run, recording)) < 5.0 * sigma).all()


def test_an_outage_is_bridged_from_both_ends() -> None:
    """No fix for 5 s: the deviation peaks in the middle; errors stay within 5 deviations."""
    recording, heading = drive(WAVY, 7)
    fixes = recording.gps
    time = (fixes.stamp_ns - START_NS) * 1e-9
    blind = recording.with_messages('gps', fixes.take((time < 3.5) | (time > 8.5)))
    run = smooth(blind, SETTINGS, start_heading=heading)
    assert any('outages of more than 2 s, the longest of 5.2 s' in str(note) for note in run.notes)
    deviation = np.sqrt(run.pose_covariance[:, 0, 0])
    at = (run.stamp_ns - START_NS) * 1e-9
    assert 4.5 < at[np.argmax(np.where((at > 1.0) & (at < 11.0), deviation, 0.0))] < 7.5
    assert_within_five_deviations(run, blind)


def test_a_gap_in_the_imu_increases_the_covariance() -> None:
    """The vehicle turns during a second without IMU."""
    recording, heading = drive(WAVY, 8)
    imu = recording.imu
    time = (imu.stamp_ns - START_NS) * 1e-9
    torn = recording.with_messages('imu', imu.take((time < 5.0) | (time > 6.0)))
    run = smooth(torn, SETTINGS, start_heading=heading)
    assert any('between IMU messages' in str(note) for note in run.notes)
    at = (run.stamp_ns - START_NS) * 1e-9
    speed = np.sqrt(run.twist_covariance[:, 0, 0])
    gap = (at > 5.05) & (at < 5.95)
    assert speed[gap].min() > 1.5 * np.median(speed[~gap])
    assert_within_five_deviations(run, torn)


def test_covariances_are_symmetric_and_positive_definite() -> None:
    recording, heading = drive(MOTIONS[1], 9, fix_rate=3.3)
    run = smooth(recording, SETTINGS, start_heading=heading)
    for P in (run.pose_covariance, run.twist_covariance):
        assert (P.transpose(0, 2, 1) == P).all()
        assert np.linalg.eigvalsh(P).min() > 0.0


def test_the_truth_is_not_used_and_a_late_start_is_preserved() -> None:
    recording, heading = drive(WAVY, 10)
    start_ns = START_NS + 2_050_000_000
    judge = SmootherJudge('gtsam', (), SETTINGS)
    whole = judge.judge(recording, start_heading=heading)
    blind = judge.judge(recording.with_messages('truth', None), start_heading=heading)
    assert whole.position.tobytes() == blind.position.tobytes()
    late = judge.judge(recording, start_ns=start_ns)
    assert late.stamp_ns[0] == START_NS + 2_200_000_000
    assert any(note.code == 'smoother.sees_future' for note in late.notes)


def test_the_smoother_reads_the_files_and_settings_of_the_inertial_judge(tmp_path: Path) -> None:
    file = tmp_path / 'mine.yaml'
    file.write_text('smoother: {loss: cauchy, loss_width: 2}\n', encoding='utf-8')
    judge: Judge = SmootherJudge.load(file)
    assert judge.files == (file,)
    assert judge.base_link_frame == 'base_link'
    assert judge.settings()['inertial']['smoother']['loss'] == 'cauchy'
    assert judge.settings()['gtsam'] == importlib.metadata.version('gtsam')
    assert InertialSettings.load()[0] == InertialSettings()


def test_a_missing_gtsam_is_an_error_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, 'gtsam', None)
    with pytest.raises(JudgeError, match='pip install gtsam'):
        SmootherJudge.load()


def test_one_fix_is_sufficient_and_a_recording_without_gps_is_refused() -> None:
    recording, _ = drive(WAVY, 11)
    fixes, imu = recording.gps, recording.imu
    assert isinstance(fixes, FixArray)
    assert isinstance(imu, ImuArray)
    with pytest.raises(Exception, match='no gps topic'):
        smooth(recording.with_messages('gps', None), SETTINGS)
    alone = smooth(recording.with_messages('gps', fixes.take([20])), SETTINGS)
    assert np.isfinite(alone.position).all()


def test_fixes_at_the_end_of_the_imu_messages_are_used() -> None:
    """A fix with the last IMU message is refused; an earlier one leaves an estimate behind it."""
    recording, _ = drive(WAVY, 11)
    fixes, imu = recording.gps, recording.imu
    last = int(imu.stamp_ns[-1])
    often = dataclasses.replace(SETTINGS, output_frequency=1e4)
    late = dataclasses.replace(fixes.take([20]), stamp_ns=np.array([last]))
    for judge in (ErrorStateJudge('', (), often), SmootherJudge('', (), often)):
        with pytest.raises(JudgeError, match='no valid fix during the IMU messages'):
            judge.judge(recording.with_messages('gps', late))
        for before in (50_000, 1):
            stamps = np.array([last - 200_000, last - before])
            end = dataclasses.replace(fixes.take([20, 21]), stamp_ns=stamps)
            run = judge.judge(recording.with_messages('gps', end))
            assert run.stamp_ns.tolist() == [last - 200_000, last - 100_000, last]
            assert np.isfinite(run.pose_covariance).all()


def test_the_velocity_of_a_real_drive_is_estimated(
    real_dir: Path, record_property: Record
) -> None:
    """45 s of a car against the carrier-phase velocity of its receiver, which is not used."""
    (path,) = segments(real_dir, [3])
    recording = read_recording(path)
    assert recording.truth is not None
    run = SmootherJudge.load().judge(recording)
    series = velocity_series(run, recording.truth, origin_ns=int(run.stamp_ns[0]))
    errors = series.se_vel - np.interp(series.se_time, series.gt_time, series.gt_vel)
    record_property('speed', np.sqrt(np.mean(errors**2)))
    assert np.sqrt(np.mean(errors**2)) < 0.05
