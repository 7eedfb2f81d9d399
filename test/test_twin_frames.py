# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A twin measures where the robot carries its sensors, whatever frame the truth is given for."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.recording.truth import check_truth_axes, locate_truth
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim_sensors.core.measurements import OdometryArray
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.magnetometer.magnetometer import load_mag
from sim_sensors.motion.motions import SCENARIOS, truth_of

TOPIC = '/ground_truth/odometry'
IDEAL = Twin('ideal', load_gps('baseline'), load_imu('ideal'))
QUARTER = tuple(Rotation.from_euler('z', 90, degrees=True).as_quat().tolist())
GPS = StaticTransform('base_link', 'gps_link')


def circle() -> OdometryArray:
    parameters = {'radius': 5.0, 'speed': 2.0, 'duration': 8.0}
    return truth_of(SCENARIOS.get('circle').from_mapping(parameters, 'circle'))


def maker(truth: OdometryArray, *transforms: StaticTransform) -> TwinMaker:
    recording = Recording('circle_1', 'circle', '', {TOPIC: truth}, {'truth': TOPIC}, transforms)
    return TwinMaker(recording, seed=0)


def test_a_chain_of_transforms_equals_their_product() -> None:
    arm = (0.4, 0.1, 0.2)
    chain = maker(
        circle(),
        StaticTransform('base_link', 'plate', arm),
        StaticTransform('plate', 'imu_link', (0.0, 0.0, 0.0), QUARTER),
        GPS,
    ).make(IDEAL)
    mounting = StaticTransform('base_link', 'imu_link', arm, QUARTER)
    direct = maker(circle(), mounting, GPS).make(IDEAL)
    level = maker(circle()).make(IDEAL)
    force = chain.imu.linear_acceleration
    np.testing.assert_allclose(force, direct.imu.linear_acceleration, atol=1e-12)
    # A quarter turn to the left: the centripetal force is no longer on y but on x.
    assert abs(force[-1, 0] - level.imu.linear_acceleration[-1, 1]) < 0.1
    assert abs(force[-1, 1]) < 0.1


def test_transforms_that_do_not_reach_a_sensor_of_the_recording_are_refused() -> None:
    real = maker(circle()).make(IDEAL)
    with pytest.raises(JudgeError, match=r"'imu_link' to 'base_link'"):
        TwinMaker(dataclasses.replace(real, transforms=(GPS,)), seed=0).make(IDEAL)


@pytest.mark.parametrize('transforms', [(), (GPS,)])
def test_a_new_sensor_has_the_mounting_of_its_model(
    transforms: tuple[StaticTransform, ...],
) -> None:
    arm, turn = (0.4, 0.1, 0.2), (0.0, 0.0, 0.5 * np.pi)
    mounted = dataclasses.replace(load_imu('ideal'), lever_arm=arm, mounting_rpy=turn)
    mag = dataclasses.replace(load_mag('ideal'), lever_arm=(9.0, 0.0, 0.0))
    twin = Twin('own', load_gps('baseline'), mounted, {'mag': mag})
    twin_maker = maker(circle(), *transforms)
    twin_recording = twin_maker.make(twin)
    (place,) = (
        transform for transform in twin_recording.transforms if transform.child == 'imu_link'
    )
    assert (place.parent, place.translation) == ('base_link', arm)
    np.testing.assert_allclose(place.rotation, QUARTER, atol=1e-15)
    # The magnetometer in the same frame is there, too.
    mag_models = {'mag': load_mag('ideal')}
    again = maker(circle(), place, GPS).make(Twin('own', twin.gps, load_imu('ideal'), mag_models))
    for topic in ('/imu/data', '/gps/fix', '/imu/mag'):
        for name, values in vars(again.messages[topic]).items():
            assert np.array_equal(getattr(twin_recording.messages[topic], name), values), name
    note_subjects = [(note.code, note.subject) for note in twin_maker.model_notes(twin)]
    assert note_subjects == [('twin.placed_by_model', 'imu_link')] * len(transforms)
    assert set(note_subjects) <= {(note.code, note.subject) for note in twin_recording.notes}


def test_a_truth_of_another_frame_is_moved_to_the_base() -> None:
    """An INS 1 m ahead and turned by 90 degrees, moved back to base_link."""
    truth = circle()
    arm = np.array([1.0, -0.5, 0.3])
    body = Rotation.from_quat(truth.orientation)
    turn = Rotation.from_quat(QUARTER)
    at_ins = dataclasses.replace(
        truth,
        child_frame='ins',
        position=truth.position + body.apply(arm),
        orientation=(body * turn).as_quat(),
        linear_velocity=turn.inv().apply(
            truth.linear_velocity + np.cross(truth.angular_velocity, arm)
        ),
        angular_velocity=turn.inv().apply(truth.angular_velocity),
    )
    moved = maker(at_ins, StaticTransform('base_link', 'ins', tuple(arm.tolist()), QUARTER))
    for name in ('position', 'linear_velocity', 'angular_velocity'):
        np.testing.assert_allclose(getattr(moved.truth, name), getattr(truth, name), atol=1e-12)
    difference = Rotation.from_quat(moved.truth.orientation) * body.inv()
    assert difference.magnitude().max() < 1e-12
    assert moved.real.truth.child_frame == 'base_link'


def test_a_truth_without_frame_is_assumed_to_be_the_base_with_a_finding() -> None:
    nameless = maker(dataclasses.replace(circle(), child_frame=''))
    assert nameless.truth.child_frame == ''
    assert any(remark.code == 'truth.frame_assumed' for remark in nameless.remarks)
    assert not maker(circle()).remarks


def line_with_fixes(turn_deg: float) -> tuple[OdometryArray, Recording]:
    """Return a truth whose axes are turned from east-north, and a recording with right fixes."""
    parameters = {'length': 30.0, 'speed': 2.0, 'duration': 15.0}
    truth = truth_of(SCENARIOS.get('half_sine').from_mapping(parameters, 'half_sine'))
    measured = maker(truth).make(IDEAL)
    turn = Rotation.from_euler('z', turn_deg, degrees=True)
    orientation = (turn * Rotation.from_quat(truth.orientation)).as_quat()
    position = turn.apply(truth.position)
    rotated = dataclasses.replace(truth, position=position, orientation=orientation)
    return rotated, measured


@pytest.mark.parametrize('turn', [-90.0, 10.0, 180.0])
def test_a_truth_not_in_east_north_causes_a_finding_with_its_angle(turn: float) -> None:
    truth, measured = line_with_fixes(turn)
    (remark,) = check_truth_axes(truth, measured.gps, locate_truth(truth, measured.gps))
    assert remark.code == 'truth.not_enu'
    assert abs(remark.numbers['turn']) == pytest.approx(abs(turn), abs=0.5)


def test_a_truth_in_east_north_causes_no_finding() -> None:
    truth, measured = line_with_fixes(0.0)
    assert check_truth_axes(truth, measured.gps, locate_truth(truth, measured.gps)) == ()
    assert check_truth_axes(truth, None, locate_truth(truth, None)) == ()
