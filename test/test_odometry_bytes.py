# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Odometry from its bytes is what its message says, and what is no odometry is an error."""

from __future__ import annotations

import dataclasses
import struct

import pytest

pytest.importorskip('rclpy', reason='no ROS')

import numpy as np
from rclpy.serialization import serialize_message
from recording_examples import arrays_equal

from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import OdometryArray
from sim_sensors.motion.motions import motion_of, truth_of
from sim_sensors.ros.messages import array_of, messages_of
from sim_sensors.ros.truth_topics import odometry_of_bytes

TRUTH = truth_of(motion_of('drive_half_sine', seed=3, run='run_1', duration=1.0, parameters={}))


def test_messages_and_arrays_are_converted_without_loss() -> None:
    assert arrays_equal(array_of(list(messages_of(TRUTH))), TRUTH)


def big_endian(row: OdometryArray) -> bytes:
    """CDR of one row of odometry, as a machine of the other byte order sends it."""
    out = bytearray(struct.pack('>iI', *divmod(int(row.stamp_ns[0]), 10**9)))
    for name in (row.frame, row.child_frame):
        text = name.encode() + b'\0'
        out += bytes(-len(out) % 4) + struct.pack('>I', len(text)) + text
    fields = (row.position, row.orientation, row.pose_covariance, row.linear_velocity)
    fields += (row.angular_velocity, row.twist_covariance)
    numbers = np.concatenate([field.ravel() for field in fields])
    return bytes(4) + bytes(out) + bytes(-len(out) % 8) + numbers.astype('>f8').tobytes()


@pytest.mark.parametrize('frame', ['', 'map', 'world', 'a_longer_name', 'Straße'])
@pytest.mark.parametrize('child', ['', 'base_link', 'foot', 'truth'])
def test_odometry_bytes_are_read_like_the_ros_message(frame: str, child: str) -> None:
    """Names of several lengths, because the fields after them are aligned."""
    rng = np.random.default_rng(0)
    covariance = {name: rng.random((1, 6, 6)) for name in ('pose_covariance', 'twist_covariance')}
    row = dataclasses.replace(TRUTH.take([7]), frame=frame, child_frame=child, **covariance)
    (message,) = messages_of(row)
    little, big = serialize_message(message), big_endian(row)
    assert little[:2] == b'\x00\x01'
    assert len(little) == len(big)
    for read in (odometry_of_bytes(little), odometry_of_bytes(big), array_of([message])):
        assert arrays_equal(read, row)


def test_truncated_odometry_is_an_error() -> None:
    row = TRUTH.take([7])
    (message,) = messages_of(row)
    for data in (serialize_message(message), big_endian(row)):
        for end in range(len(data)):
            with pytest.raises(MotionError, match=f'{end} bytes are no nav_msgs/Odometry'):
                odometry_of_bytes(data[:end])
