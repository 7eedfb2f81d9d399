# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Wheels with a camera, fused by the judge: drift, consistency, VEPD; `sim2real wheels`."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call

from sim2real_eval.benches.wheels import (
    JUDGES,
    RecordedMotion,
    WheelSetup,
    WheelStudy,
    drive_variants,
    single_errors,
    study_of,
)
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.simulation.twin import VISION_TOPIC, WHEEL_TOPIC
from sim_sensors.motion.scenarios import FigureEight
from sim_sensors.vision.vision_pose import load_vision
from sim_sensors.wheels.encoders import NoWheelNoise
from sim_sensors.wheels.wheel_odometry import load_wheels
from sim_sensors.world.world import load_world

Capture = pytest.CaptureFixture[str]
VARIANTS = {
    'swerve': load_wheels('swerve'),
    'frc': load_wheels('frc_swerve'),
    'coarse': dataclasses.replace(
        load_wheels('swerve'), noise=dataclasses.replace(load_wheels('swerve').noise, density=0.2)
    ),
}


def driven(wheel_setup: WheelSetup, duration: float) -> WheelStudy:
    """Return the study of a figure eight."""
    motion = FigureEight(speed=1.0, duration=duration)
    drive = RecordedMotion.of_motion(motion, 'figure_eight')
    return study_of(wheel_setup, [drive_variants(wheel_setup, drive)])


def setup(runs: int, **changes) -> WheelSetup:
    settings = WheelSetup(
        variants=VARIANTS, vision=load_vision('tags'), world=load_world('tag_ring'), runs=runs,
        seed=1,
    )  # fmt: skip
    return dataclasses.replace(settings, **changes)


@pytest.fixture(scope='module')
def study() -> WheelStudy:
    return driven(setup(4), 60.0)


def test_wheel_odometry_drifts_and_a_camera_bounds_the_drift(study: WheelStudy) -> None:

    def squares(drifts, first, last):
        return np.mean([np.mean(d.error[(d.time > first) & (d.time < last)] ** 2) for d in drifts])

    for variant in study.variants:
        for alone, fused in zip(variant.odometry, variant.fused, strict=True):
            assert fused.rms < 0.35 * alone.rms
            settled = fused.error[fused.time > 5.0]
            # Five times the error of one picture of two tags 5 m away, 0.18 m.
            assert settled.max() < 0.9
            assert fused.heading_rms < 0.3 * alone.heading_rms
        early, late = squares(variant.odometry, 5.0, 25.0), squares(variant.odometry, 35.0, 60.0)
        assert late > 2.0 * early
        early, late = squares(variant.fused, 5.0, 25.0), squares(variant.fused, 35.0, 60.0)
        assert late < 2.0 * early


def test_the_nees_of_the_judge_is_2_for_white_errors_of_the_stated_size() -> None:
    """Estimates of a run are correlated over about a second, so 4 runs are some 200 independent
    ones of variance 4: 4.5 standard errors are 0.64. Process noise on top makes it less than 2; a
    constant error that is stated as white makes it more.
    """
    white = dataclasses.replace(
        VARIANTS['swerve'],
        slip=dataclasses.replace(VARIANTS['swerve'].slip, distance=0.0),
        radius_error=0.0,
        steering_offset=dataclasses.replace(VARIANTS['swerve'].steering_offset, bound=0.0),
    )
    clear = dataclasses.replace(load_vision('tags'), ambiguity=0.0)
    study_setup = setup(4, variants={'white': white}, vision=clear)
    assert 1.0 < np.mean(driven(study_setup, 60.0).variants[0].nees) < 2.64
    hidden = dataclasses.replace(
        load_wheels('frc_swerve'), noise=NoWheelNoise(), speed_floor=0.001, yaw_rate_floor=0.001
    )
    study = driven(setup(4, variants={'hidden': hidden}, vision=clear), 60.0)
    assert np.mean(study.variants[0].nees) > 2.64


def test_vepd_is_smallest_for_the_true_model_and_grows_with_the_noise(study: WheelStudy) -> None:
    for name in JUDGES:
        same, frc, coarse = (variant.vepd[name] for variant in study.variants)
        assert same < frc
        assert same < 0.3 * coarse


def test_steering_offsets_drift_most_and_smooth_errors_have_the_largest_vepd() -> None:
    """One error at a time against all of them."""
    models = single_errors()
    real = load_wheels('swerve')
    assert all(model.drive == real.drive and model.rate == real.rate for model in models.values())
    study = driven(setup(3, variants={'swerve': real, **models}), 30.0)
    drift = {
        variant.label: np.sqrt(np.mean([drift.rms**2 for drift in variant.odometry]))
        for variant in study.variants
    }
    vepd = {variant.label: variant.vepd['wheels'] for variant in study.variants}
    steering = [drift.pop(name) for name in ('steering_text', 'steering_code')]
    assert min(steering) > max(drift.values())
    smooth = [vepd[name] for name in ('slip', 'radius', 'steering_text', 'steering_code')]
    assert min(smooth) > 3.0 * max(vepd[name] for name in ('swerve', 'per_distance'))
    assert min(smooth) > 2.0 * vepd['squared']
    assert vepd['steering_text'] == pytest.approx(vepd['steering_code'], rel=0.02)


def test_lost_tags_and_a_hill_cause_findings(capsys: Capture) -> None:
    """A robot that drives off uphill sees the ring of tags for some seconds only."""
    words = ['wheels', '--models', 'swerve', '--runs', 2]
    away = ('--motion', 'constant_twist', '--set', 'velocity=[3,0,0.3]', '--duration', 20)
    refusal = call(capsys, *words, *away)
    assert refusal.status == 0
    blind = float(refusal.err.partition('no pose for up to ')[2].partition(' s of 20 s')[0])
    # The farthest tag, 6 m ahead, is behind after 2 s.
    assert 17.0 < blind < 20.0
    assert 'rises and falls by 6 m' in call(capsys, *words, *away, '--json').out
    assert 'note' not in call(capsys, *words, '--duration', 12).err


def test_wheels_with_vision_are_estimated_to_0_2_m(capsys: Capture, tmp_path: Path) -> None:
    outcome = call(
        capsys, 'simulate', '--motion', 'figure_eight', '--duration', 20, '--wheels', 'swerve',
        '--vision', 'tags', '--world', 'tag_ring', '--out', tmp_path / 'bags',
    )  # fmt: skip
    assert outcome.status == 0
    recording = read_recording(tmp_path / 'bags' / 'figure_eight_1')
    assert len(recording.messages[WHEEL_TOPIC]) == 1001
    assert 200 < len(recording.messages[VISION_TOPIC]) <= 600
    judged = JudgeSetup.load('wheels_vision').judge(recording)
    truth = recording.truth
    axes = [np.interp(judged.stamp_ns, truth.stamp_ns, axis) for axis in truth.position.T[:2]]
    place = np.column_stack(axes)
    inside = (judged.stamp_ns > truth.stamp_ns[200]) & (judged.stamp_ns < truth.stamp_ns[-1])
    error = np.linalg.norm(judged.position[inside, :2] - place[inside], axis=1)
    assert np.sqrt(np.mean(error**2)) < 0.2


@pytest.mark.usefixtures('blank_pictures')
def test_the_command_wheels_writes_every_run(capsys: Capture, tmp_path: Path) -> None:
    words = ['wheels', '--models', 'swerve,frc_swerve@100', '--runs', 2, '--duration', 10]
    printed = call(capsys, *words, '--json', '--out', tmp_path / 'out')
    record = json.loads(printed.out)
    assert record == json.loads((tmp_path / 'out' / 'wheels.json').read_text(encoding='utf-8'))
    assert {path.name for path in (tmp_path / 'out').iterdir()} == {
        '.wheels.json.files', 'wheels.json', 'wheels.png', 'runs.csv',
    }  # fmt: skip
    with (tmp_path / 'out' / 'runs.csv').open(encoding='utf-8') as file:
        runs = [(row['variant'], row['run']) for row in csv.DictReader(file)]
    assert runs == [(name, run) for name in ('swerve', 'frc_swerve@100') for run in '12']


@pytest.mark.parametrize(
    ('line', 'named'),
    [
        ('--models swerv', 'swerve'),
        ('--models swerve@fast', 'swerve@fast'),
        ('--models swerve,swerve', 'swerve'),
        ('--motion standstill', 'standstill'),
        ('--motion constant_twist --set velocity=[0,0,1]', 'drive'),
        ('--world default', 'tags'),
        ('--vision swerve', 'swerve'),
        ('--set duration=3', '--duration'),
        ('--runs 1', '--runs'),
        ('bag --motion circle', '--motion'),
        ('bag --set radius=2', '--set'),
        ('gone', 'gone'),
        ('--topic truth=/odom', '--topic'),
    ],
)
def test_a_wrong_command_line_is_refused_in_one_line(
    capsys: Capture, line: str, named: str
) -> None:
    outcome = call(capsys, 'wheels', *line.split())
    assert outcome.status == 2
    (complaint,) = outcome.err.strip().splitlines()
    assert named in complaint
