# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""An antenna away from base_link must not move the estimated robot."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim_sensors.gps.gps import ConstantCovariance, load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.motions import SCENARIOS, truth_of

ANTENNA = (0.8, 0.3, 0.5)
TOPIC = '/ground_truth/odometry'


def recorded(antenna: tuple[float, float, float], stated_arm: bool) -> Recording:
    """Return a noise-free circle of 5 m; `stated_arm`: the recording states the antenna."""
    parameters = {'radius': 5.0, 'speed': 2.0, 'duration': 20.0}
    motion = SCENARIOS.get('circle').from_mapping(parameters, '')
    mounting = StaticTransform('base_link', 'gps_link', antenna)
    frames = (StaticTransform('base_link', 'imu_link'), mounting)
    bare = Recording('circle_1', 'circle', '', {TOPIC: truth_of(motion)}, {'truth': TOPIC}, frames)
    covariance = ConstantCovariance(std=(0.01, 0.01, 0.02))
    gps = dataclasses.replace(load_gps('baseline'), covariance=covariance)
    measured = TwinMaker(bare, seed=0).make(Twin('ideal', gps, load_imu('ideal')))
    if stated_arm:
        return measured
    centred = (frames[0], StaticTransform('base_link', 'gps_link'))
    return dataclasses.replace(measured, transforms=centred)


def position_error(recording: Recording) -> float:
    """Return the largest horizontal error of the second half, m."""
    judged = JudgeSetup.load('clean').judge(recording)
    truth = recording.truth
    late = (judged.stamp_ns > truth.stamp_ns[0] + 10**10) & (judged.stamp_ns < truth.stamp_ns[-1])
    way = truth.position.T[:2]
    expected = [np.interp(judged.stamp_ns[late], truth.stamp_ns, axis) for axis in way]
    errors = judged.position[late, :2].T - expected
    # The world frame of the filter starts at the robot; the truth starts at the origin.
    return float(np.hypot(*errors).max())


def test_a_stated_lever_arm_does_not_change_the_estimated_track() -> None:
    """Same circle, antenna 0.85 m off: the track is that of base_link, not of the antenna."""
    centred = position_error(recorded((0.0, 0.0, 0.0), stated_arm=True))
    corrected = position_error(recorded(ANTENNA, stated_arm=True))
    ignored = position_error(recorded(ANTENNA, stated_arm=False))
    assert centred < 0.1
    assert corrected < centred + 0.05
    assert ignored > 0.5
