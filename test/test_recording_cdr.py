# SPDX-License-Identifier: Apache-2.0
"""Messages as bytes: the codec agrees with an independent decoder, and is faster."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recording_examples import TYPESTORE, arrays_equal, drive

from sim2real_eval.common.findings import RecordingError
from sim2real_eval.recording.cdr import decode, decode_transforms, encode, encode_transforms
from sim2real_eval.recording.message_types import MESSAGE_TYPES, TF_TYPE
from sim2real_eval.recording.recording import StaticTransform


def fields_of(message: object, kind) -> dict[str, object]:
    """Read one message of the rosbags decoder by the field paths of the .msg files."""
    at = {
        'ImuArray': lambda m: {
            'orientation': quaternion(m.orientation),
            'orientation_covariance': m.orientation_covariance,
            'angular_velocity': vector(m.angular_velocity),
            'angular_velocity_covariance': m.angular_velocity_covariance,
            'linear_acceleration': vector(m.linear_acceleration),
            'linear_acceleration_covariance': m.linear_acceleration_covariance,
        },
        'FixArray': lambda m: {
            'latitude': m.latitude,
            'longitude': m.longitude,
            'altitude': m.altitude,
            'status': m.status.status,
            'position_covariance': m.position_covariance,
            'position_covariance_type': m.position_covariance_type,
        },
        'MagneticFieldArray': lambda m: {
            'magnetic_field': vector(m.magnetic_field),
            'magnetic_field_covariance': m.magnetic_field_covariance,
        },
        'OdometryArray': lambda m: {
            'child_frame': m.child_frame_id,
            **pose(m.pose),
            **twist(m.twist.twist, m.twist.covariance),
        },
        'PoseArray': lambda m: pose(m.pose),
        'TwistArray': lambda m: (
            twist(m.twist.twist, m.twist.covariance)
            if 'Covariance' in kind.name
            else twist(m.twist if kind.has_header else m, np.zeros(36))
        ),
    }[kind.array.__name__](message)
    if not kind.has_header:
        return at
    header = message.header
    stamp = header.stamp.sec * 10**9 + header.stamp.nanosec
    return {'stamp_ns': stamp, 'frame': header.frame_id, **at}


def vector(v) -> list[float]:
    return [v.x, v.y, v.z]


def quaternion(q) -> list[float]:
    return [q.x, q.y, q.z, q.w]


def pose(p) -> dict[str, object]:
    return {
        'position': vector(p.pose.position),
        'orientation': quaternion(p.pose.orientation),
        'pose_covariance': p.covariance,
    }


def twist(t, covariance) -> dict[str, object]:
    return {
        'linear_velocity': vector(t.linear),
        'angular_velocity': vector(t.angular),
        'twist_covariance': covariance,
    }


@settings(max_examples=25)
@given(
    frame=st.text(st.characters(exclude_categories=['Cs', 'Cc']), max_size=17),
    child=st.text(st.characters(exclude_categories=['Cs', 'Cc']), max_size=17),
    stamp=st.integers(-(2**31) * 10**9, 2**31 * 10**9 - 1),
    type_name=st.sampled_from(list(MESSAGE_TYPES)),
)
def test_the_codec_agrees_with_the_decoder_of_rosbags(
    frame: str, child: str, stamp: int, type_name: str
) -> None:
    kind = MESSAGE_TYPES[type_name]
    array = next(a for a in drive(20).messages.values() if type(a) is kind.array).take(slice(0, 2))
    if kind.array.__name__ == 'TwistArray' and 'Covariance' not in type_name:
        array = dataclasses.replace(array, twist_covariance=np.zeros((2, 6, 6)))
    array = dataclasses.replace(array, frame=frame, stamp_ns=np.array([stamp, 5]))
    if kind.has_child:
        array = dataclasses.replace(array, child_frame=child)
    if not kind.has_header:
        array = dataclasses.replace(array, frame='', stamp_ns=array.arrival_ns)
    rows = encode(kind, array, 'here')
    for index, row in enumerate(rows):
        message = TYPESTORE.deserialize_cdr(row, type_name)
        # The other way round as well: rosbags serialises to the very same bytes.
        assert bytes(TYPESTORE.serialize_cdr(message, type_name)) == row
        for name, value in fields_of(message, kind).items():
            decoded_field = getattr(array, name)
            decoded_field = (
                decoded_field
                if isinstance(decoded_field, str)
                else np.ravel(decoded_field[index]).tolist()
            )
            assert decoded_field == (
                value if isinstance(value, str) else np.ravel(value).tolist()
            ), name
    again = decode(kind, rows, array.arrival_ns, 'here').array
    assert arrays_equal(again, array)
    big = [
        bytes(TYPESTORE.serialize_cdr(TYPESTORE.deserialize_cdr(r, type_name), type_name,
                                      little_endian=False))
        for r in rows
    ]  # fmt: skip
    assert arrays_equal(decode(kind, big, array.arrival_ns, 'here').array, array)


@settings(max_examples=30)
@given(names=st.lists(st.text('abc_/', min_size=1, max_size=9), min_size=0, max_size=6))
def test_static_transforms_agree_with_the_decoder_of_rosbags(names: list[str]) -> None:
    transforms = [
        StaticTransform('base_link', name, (0.1 * i, -1.0, 2.0), (0.0, 0.6, 0.0, 0.8))
        for i, name in enumerate(names)
    ]
    row = encode_transforms(transforms, 12_345_678_901)
    message = TYPESTORE.deserialize_cdr(row, TF_TYPE)
    assert [t.child_frame_id for t in message.transforms] == names
    assert all(t.header.stamp.nanosec == 345_678_901 for t in message.transforms)
    assert bytes(TYPESTORE.serialize_cdr(message, TF_TYPE)) == row
    assert [transform for _, transform in decode_transforms(row, 'here')] == transforms
    for size in range(len(row)):
        with pytest.raises(RecordingError):
            decode_transforms(row[:size], 'here')
