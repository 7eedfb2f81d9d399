# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Estimates that are not numbers are written with a finding; implausible motions are findings."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from cli_examples import call, write_runs

from sim2real_eval.judge.estimate import Corrections, part_counts
from sim2real_eval.judge.robot_localization.advice import datum_advice, motion_advice, twist_advice
from sim2real_eval.judge.robot_localization.configuration import (
    FilterConfig,
    NavsatConfig,
    SourceConfig,
)
from sim2real_eval.judge.robot_localization.parts import PartName
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.consistency import check_consistency
from sim2real_eval.recording.reading import read_recording
from sim_sensors.core.measurements import FixArray, OdometryArray
from sim_sensors.core.shipped import config_path

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope='module')
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (path,) = write_runs(tmp_path_factory.mktemp('runs'), ('drive_line', 1))
    return path


@pytest.fixture(scope='module')
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An unscented filter whose first covariance has no root: no estimate is a number."""
    path = tmp_path_factory.mktemp('config') / 'ukf.yaml'
    rows = np.zeros(15, dtype=bool)
    rows[[5, 11]] = True
    parameters = {
        'imu0': 'imu/data',
        'imu0_config': rows.tolist(),
        'initial_estimate_covariance': [1.0, 1.0, -1.0, *[1.0] * 12],
    }
    path.write_text(yaml.safe_dump({'ukf_filter_node': {'ros__parameters': parameters}}))
    return path


def test_the_command_judge_writes_diverged_estimates_and_fails(
    run: Path, broken: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / 'x.csv'
    options = '--consistency', '--json', '--out', out
    outcome = call(capsys, 'judge', run, '--config', broken, *options)
    assert outcome.status == 1
    assert len(outcome.complaints) == 1
    assert '--correct unscented' in outcome.complaints[0]
    (summary,) = json.loads(outcome.out)
    assert 0 < summary['nan'] <= summary['estimates']
    assert 'rl.unscented_diverged' in [note['code'] for note in summary['notes']]
    assert not any(note['code'] == 'rl.gated' for note in summary['notes'])
    assert out.exists()


def test_vepd_attributes_diverged_estimates_to_the_judge(
    run: Path, broken: Path, tmp_path: Path, capsys: Capture
) -> None:
    outcome = call(
        capsys, 'vepd', run, '--judge-config', broken, '--models', 'ch_rw',
        '--out', tmp_path / 'result',
    )  # fmt: skip
    assert outcome.status == 2
    assert 'judge' in outcome.complaints[0]


def test_only_corrections_rejected_by_the_gate_are_counted_as_rejected() -> None:
    names = [PartName('imu0', 'imu', 'pose'), PartName('imu0', 'imu', 'twist')]
    counts = np.array([[9, 0, 0, 4, 5], [9, 0, 0, 4, 5]])
    threshold = np.array([np.inf, 2.0])
    corrections = Corrections(
        part=np.array([0, 1, 1, 1]),
        stamp_ns=np.arange(4),
        states=np.ones(4, dtype=np.int64),
        nis=np.array([99.0, 4.0, 3.9, 16.0]),
    )
    pose, twist = part_counts(names, counts, threshold, corrections)
    assert (pose.rejected, pose.singular) == (5, 5)
    assert (twist.rejected, twist.singular) == (5, 3)


def test_an_estimate_with_one_non_finite_field_is_counted_as_diverged(run: Path) -> None:
    judged = JudgeSetup.load('clean').judge(read_recording(run))
    assert judged.finite.all()
    assert judged.divergence_findings == ()
    covariance = judged.pose_covariance.copy()
    covariance[3, 5, 5] = np.inf
    assert not dataclasses.replace(judged, pose_covariance=covariance).finite[3]


def test_for_a_judge_without_innovations_the_missing_nis_is_explained(run: Path) -> None:
    """A smoother has none."""
    setup, recording = JudgeSetup.load('clean'), read_recording(run)
    judged = setup.judge(recording)
    silent = dataclasses.replace(judged, corrections=Corrections.none())
    reported = []
    for estimate in (judged, silent):
        codes = {note.code for note in check_consistency(setup, recording, estimate).notes}
        reported.append('consistency.no_innovations' in codes)
    assert reported == [False, True]


CLEAN = FilterConfig.from_file(config_path('judge', 'clean.yaml'))
NAVSAT = NavsatConfig.from_file(config_path('judge', 'clean_navsat.yaml'))
STAMPS = np.arange(4, dtype=np.int64) * 100_000_000


def odometry(frame: str, child: str) -> OdometryArray:
    return OdometryArray(
        STAMPS, STAMPS, frame, child, np.zeros((4, 3)), np.tile([0.0, 0.0, 0.0, 1.0], (4, 1)),
        np.zeros((4, 3)), np.zeros((4, 3)), np.zeros((4, 6, 6)), np.zeros((4, 6, 6)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ('frame', 'child', 'reported'),
    [
        ('odom', 'base_link', False),
        ('odom', 'wheel', False),
        ('odom', '', False),
        ('odom', 'odom', True),
        ('site', '/site', True),
        ('odom', 'map', True),
    ],
)
def test_velocities_in_a_world_frame_cause_a_finding(
    frame: str, child: str, reported: bool
) -> None:
    source: SourceConfig = dataclasses.replace(
        CLEAN.sources[0], name='odom1', topic='wheel', mask=np.arange(15) == 6.0
    )
    config = dataclasses.replace(CLEAN, sources=(source,))
    notes = twist_advice(config, {'odom1': odometry(frame, child)}, turned=False)
    assert len(notes) == int(reported)


@pytest.mark.parametrize(('latitude', 'reported'), [(43.0, False), (43.8, False), (44.0, True)])
def test_a_datum_far_from_the_first_fix_causes_a_finding(latitude: float, reported: bool) -> None:
    """A degree of latitude is 111 km."""
    navsat = dataclasses.replace(NAVSAT, datum=(latitude, -89.0, 0.0))
    ones, zero = np.ones(4), np.zeros(4)
    fixes = FixArray(
        STAMPS, STAMPS, 'gps', 43.0 * ones, -89.0 * ones, zero,
        np.zeros(4, dtype=np.int64), np.zeros((4, 3, 3)), np.zeros(4, dtype=np.int64),
    )  # fmt: skip
    assert len(datum_advice(navsat, fixes)) == int(reported)


def test_impossible_speeds_and_position_jumps_cause_findings() -> None:
    position, velocity = np.zeros((4, 3)), np.zeros((4, 3))
    velocity[:, 0] = 60.0
    position[:, 0] = 60.0 * STAMPS * 1e-9
    assert motion_advice(STAMPS, position, velocity) == []
    velocity[2, 1], position[3, 2] = 120.0, 5000.0
    fast, jump = motion_advice(STAMPS, position, velocity)
    assert fast.numbers['first'] == pytest.approx(0.2)
    assert fast.numbers['speed'] == pytest.approx(np.hypot(60.0, 120.0))
    assert jump.numbers['first'] == pytest.approx(0.3)
    assert jump.numbers['step'] == pytest.approx(5000.0, rel=1e-3)
    nothing = np.full((4, 3), np.nan)
    assert motion_advice(STAMPS, nothing, nothing) == []
    assert motion_advice(STAMPS[:0], nothing[:0], nothing[:0]) == []
