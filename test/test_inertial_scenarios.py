# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The error-state judge on recordings of the scenarios, with the sensor models as they ship."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from sim2real_eval.judge.inertial.error_state import ErrorStateJudge
from sim2real_eval.metrics.series import velocity_series
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker, synthetic_recording
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.motions import truth_of
from sim_sensors.motion.scenarios import Circle, HalfSine
from sim_sensors.motion.trajectory import Motion

CIRCLE = Circle(duration=20.0, radius=8.0, speed=3.0, rest_time=1.5)
HALF_SINE = HalfSine(duration=20.0, length=40.0, amplitude=6.0, speed=3.0, rest_time=1.5)


def recorded(motion: Motion, imu: str, gps: str) -> Recording:
    twin = Twin('run', load_gps(gps), load_imu(imu))
    return synthetic_recording(motion, twin, seed=1, run='run', scenario='test')


@pytest.mark.parametrize('motion', [CIRCLE, HALF_SINE])
@pytest.mark.parametrize('component', ['horizontal', 'forward'])
def test_the_speed_of_a_drive_is_estimated_to_0_1_m_s(motion: Motion, component: str) -> None:
    """AirSim's IMU and fixes at 10 Hz without a covariance, which count as good to 1 m."""
    recording = recorded(motion, 'airsim', 'ch_gauss')
    run = ErrorStateJudge.load().judge(recording, start_heading=_heading(motion))
    truth = recording.truth
    series = velocity_series(run, truth, origin_ns=truth.stamp_ns[0], component=component)
    estimate = np.interp(series.gt_time, series.se_time, series.se_vel)
    late = series.gt_time > 5.0
    assert np.sqrt(np.mean(np.square(estimate - series.gt_vel)[late])) < 0.1


def _heading(motion: Motion) -> float:
    first = motion.at([motion.start]).orientation[0]
    return float(Rotation.from_quat(first).as_euler('xyz')[2])


def test_the_estimate_does_not_depend_on_the_mounting_of_the_sensors() -> None:
    """Perfect sensors, once in base_link and once turned and away from it."""
    turn = Rotation.from_euler('xyz', [3.0, 0.4, -1.2])
    mountings = (
        StaticTransform('base_link', 'imu_link', (0.4, -0.3, 0.5), tuple(turn.as_quat())),
        StaticTransform('base_link', 'gps_link', (-0.6, 0.2, 1.4)),
    )
    truth = truth_of(CIRCLE)
    twin = Twin('run', load_gps('baseline'), load_imu('ideal'))
    runs = []
    for transforms in ((), mountings):
        bare = Recording('run', 'test', '', {'truth': truth}, {'truth': 'truth'}, transforms)
        recording = TwinMaker(bare, seed=1).make(twin)
        runs.append(ErrorStateJudge.load().judge(recording, start_heading=_heading(CIRCLE)))
    for name in ('linear_velocity', 'angular_velocity'):
        first, second = (getattr(run, name)[175:] for run in runs)
        assert np.abs(first - second).max() < 0.02
