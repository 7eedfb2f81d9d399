# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Systematic errors of wheels: separation, and unequal radii [Borenstein1996]."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from wheel_examples import dance, perfect, pieces, same_bits, straight

from sim_sensors.core import rotations
from sim_sensors.core.errors import ParameterError
from sim_sensors.motion.trajectory import Trajectory
from sim_sensors.wheels.encoders import AckermannWheels, DifferentialWheels, SwerveWheels
from sim_sensors.wheels.wheel_odometry import WheelOdometryModel

RATE, HALF_TRACK = 50.0, 0.2
DRIVE = DifferentialWheels(half_track=HALF_TRACK)


def planar_motion(position, heading):
    """Samples of a motion in the plane; wheels read only its poses."""
    n = len(heading)
    zero = np.zeros((n, 3))
    position = np.column_stack([position, np.zeros(n)])
    turn = rotations.from_heading(np.asarray(heading))
    return Trajectory(np.arange(n) / RATE, position, turn, zero, zero, zero, zero)


def circle(radius=2.0, turns=1.0, n=2001):
    angle = np.linspace(0.0, 2.0 * math.pi * turns, n)
    return planar_motion(radius * np.column_stack([np.sin(angle), 1.0 - np.cos(angle)]), angle)


def square(side=4.0, direction=1.0):
    """UMBmark: four sides and four turns in place, to the left (1) or right (-1)."""
    heading, position = [0.0], [np.zeros(2)]
    for corner in range(4):
        start = direction * corner * math.pi / 2.0
        ahead = np.array([math.cos(start), math.sin(start)])
        steps = np.linspace(0.0, side, 201)[1:, None] * ahead
        position += list(position[-1] + steps)
        heading += [start] * len(steps)
        turns = np.linspace(0.0, direction * math.pi / 2.0, 201)[1:]
        heading += list(start + turns)
        position += [position[-1]] * len(turns)
    return planar_motion(np.array(position), heading)


def measured(truth, drive=DRIVE, **errors):
    return perfect(drive, **errors).start(1, 'run').measure(truth)


@pytest.mark.parametrize('error', [0.05, -0.03])
@pytest.mark.parametrize('turns', [1.0, -2.0])
def test_a_track_error_divides_the_turn_of_a_circle(error, turns) -> None:
    """360 deg with a track that is assumed 5 % too wide are 342.9 deg on any path."""
    odometry = measured(circle(turns=turns), half_track_error=error)
    assert odometry.pose[-1, 2] == pytest.approx(2.0 * math.pi * turns / (1.0 + error), rel=1e-9)
    assert odometry.true_pose[-1, 2] == pytest.approx(2.0 * math.pi * turns, rel=1e-9)
    way = np.linalg.norm(np.diff(odometry.pose[:, :2], axis=0), axis=1).sum()
    assert way == pytest.approx(4.0 * math.pi * abs(turns), rel=1e-5)


@pytest.mark.parametrize(('left', 'right'), [(0.0, 0.01), (-0.004, 0.004), (0.02, 0.02)])
def test_unequal_radii_bend_a_straight_line_by_their_difference_over_the_track(
    left, right
) -> None:
    odometry = measured(
        straight(501, RATE, 0.02), left_radius_error=left, right_radius_error=right
    )
    turn = 10.0 * (right - left) / (2.0 * HALF_TRACK)
    assert odometry.pose[-1, 2] == pytest.approx(turn, abs=1e-12)
    way = 10.0 * (1.0 + 0.5 * (left + right))
    chord = way * np.sinc(turn / 2.0 / math.pi)
    ends = chord * np.array([math.cos(turn / 2.0), math.sin(turn / 2.0)])
    np.testing.assert_allclose(odometry.pose[-1, :2], ends, atol=1e-9)


def closed_square(side, direction, corner, bend, scale=1.0):
    """Return the pose after four sides that bend by `bend` and corners of `corner`, by hand."""
    position, heading = 0.0 + 0.0j, 0.0
    for _ in range(4):
        chord = scale * side * np.sinc(bend / 2.0 / math.pi)
        position += chord * np.exp(1j * (heading + bend / 2.0))
        heading += bend + direction * corner
    return np.array([position.real, position.imag, heading])


@pytest.mark.parametrize('direction', [1.0, -1.0])
@pytest.mark.parametrize(
    ('track', 'left', 'right'), [(0.02, 0.0, 0.0), (0.0, -0.003, 0.003), (-0.01, 0.002, -0.002)]
)
def test_umbmark_squares_end_where_both_errors_take_them(direction, track, left, right) -> None:
    """E_b turns every corner, E_d bends every side; they differ between both directions."""
    odometry = measured(
        square(4.0, direction),
        half_track_error=track,
        left_radius_error=left,
        right_radius_error=right,
    )
    separation = 2.0 * HALF_TRACK * (1.0 + track)
    bend = 4.0 * (right - left) / separation
    # Turns in place: the wheels go opposite ways, so that equal and opposite errors move the
    # centre instead of the heading, by half of their sum along its changing direction.
    corner = math.pi / 2.0 / (1.0 + track)
    expected = closed_square(4.0, direction, corner, bend)
    np.testing.assert_allclose(odometry.pose[-1, 2], expected[2], atol=1e-9)
    slide = HALF_TRACK * abs(right - left) / 2.0 * 4.0 * math.pi / 2.0
    np.testing.assert_allclose(odometry.pose[-1, :2], expected[:2], atol=1.01 * slide + 1e-9)
    assert np.hypot(*odometry.pose[-1, :2]) > 0.05


def test_a_swerve_turns_less_if_its_modules_are_assumed_too_far_apart() -> None:
    """A module at (x, y) moves by turn (-y, x); by hand its least squares with y' = (1 + e) y."""
    drive, error = (
        SwerveWheels(module_x=(0.3, 0.3, -0.3, -0.3), module_y=(0.2, -0.2, 0.2, -0.2)),
        0.1,
    )
    angle = np.linspace(0.0, math.pi, 1001)
    odometry = measured(planar_motion(np.zeros((1001, 2)), angle), drive, half_track_error=error)
    wide = 0.2 * (1.0 + error)
    ratio = (0.3**2 + 0.2 * wide) / (0.3**2 + wide**2)
    assert odometry.pose[-1, 2] == pytest.approx(math.pi * ratio, rel=1e-9)


def test_left_wheels_of_a_swerve_are_its_first_and_third() -> None:
    drive = SwerveWheels()
    odometry = measured(straight(101, RATE, 0.02), drive, left_radius_error=0.04)
    np.testing.assert_allclose(odometry.wheel_angle[-1] * drive.wheel_radius, [2.08, 2.0] * 2)


def test_an_ackermann_drive_refuses_a_track_error_and_scales_its_way_by_the_radii() -> None:
    with pytest.raises(ParameterError, match='half_track_error'):
        perfect(AckermannWheels(), half_track_error=0.01)
    odometry = measured(
        straight(101, RATE, 0.02), AckermannWheels(), left_radius_error=0.1, right_radius_error=0.1
    )
    assert odometry.pose[-1, 0] == pytest.approx(2.2)


def test_the_covariance_states_the_square_of_fixed_errors() -> None:
    """As for other means of the model; without other errors it is exactly that square."""
    odometry = measured(
        circle(), half_track_error=0.05, left_radius_error=0.01, right_radius_error=-0.02
    )
    errors = odometry.pose - odometry.true_pose
    stated = np.diagonal(odometry.pose_covariance, axis1=1, axis2=2)
    np.testing.assert_allclose(stated, errors**2, atol=1e-12)


def test_stepping_with_fixed_errors_gives_the_same_bits() -> None:
    model = dataclasses.replace(
        perfect(SwerveWheels(), left_radius_error=0.01, half_track_error=-0.02), radius_error=0.003
    )
    truth = dance(np.arange(40) / RATE)
    sensor = model.start(3, 'run')
    parts = [sensor.measure(part) for part in pieces(truth, range(1, 40))]
    same_bits(parts, model.start(3, 'run').measure(truth), ('pose', 'pose_covariance'))


def test_a_file_of_a_robot_sets_the_systematic_errors(tmp_path) -> None:
    (tmp_path / 'robot.yaml').write_text(
        'base: differential\nhalf_track_error: 0.08\nleft_radius_error: 0.001\n'
    )
    model = WheelOdometryModel.load(str(tmp_path / 'robot.yaml'))
    assert (model.half_track_error, model.left_radius_error) == (0.08, 0.001)
    (tmp_path / 'robot.yaml').write_text('base: ackermann\nhalf_track_error: 0.08\n')
    with pytest.raises(ParameterError, match=r'robot.yaml: half_track_error'):
        WheelOdometryModel.load(str(tmp_path / 'robot.yaml'))
