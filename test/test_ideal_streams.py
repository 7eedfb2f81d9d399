# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sensors on noise-free streams of a simulator instead of differentiated odometry."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from ideal_examples import BAND, DENSITY, EXACT, Shaken, noise_free_imu, recorded, simulated
from recording_examples import arrays_equal
from scipy.signal import welch

from sim2real_eval.common.findings import RecordingError
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import DEFAULT_TOPICS, StaticTransform
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray
from sim_sensors.gps import gps
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu import imu
from sim_sensors.imu.imu import load_imu
from sim_sensors.magnetometer import magnetometer
from sim_sensors.magnetometer.magnetometer import load_mag
from sim_sensors.motion.motions import motion_of
from sim_sensors.world.geodesy import LocalFrame
from sim_sensors.world.world import load_world

SECONDS = 12.0
GOOD = load_gps('baseline')
EAST = np.array([3.0, 0.0, 0.0])  # m


def test_odometry_and_noise_free_streams_agree_on_smooth_motion() -> None:
    """The motion missed by odometry at 100 Hz is a small part of the noise of good sensors."""
    motion, room = motion_of('figure_eight', duration=SECONDS), load_world('dipole_room')
    streams = {
        'ideal_imu': noise_free_imu(motion),
        'ideal_gps': gps.simulate(GOOD, motion, frame=room.frame, **EXACT),
        'ideal_mag': magnetometer.simulate(load_mag('ideal'), motion, world=room, **EXACT),
    }
    models = {'imu': load_imu('xsens_mtx'), 'gps': load_gps('zed_f9p_rtk')}
    models |= {'mag': load_mag('xsens_mtx')}
    improved = simulated(recorded(motion, streams), **models)
    plain = simulated(recorded(motion, {}), **models)
    for role, fields in {
        'imu': ('angular_velocity', 'linear_acceleration'),
        'gps': ('latitude', 'longitude', 'altitude'),
        'mag': ('magnetic_field',),
    }.items():
        silent = streams[f'ideal_{role}']
        silent = silent.take(np.isin(silent.stamp_ns, improved.require(role).stamp_ns))
        for name in ('stamp_ns', *fields):
            a, b = (getattr(run.require(role), name) for run in (improved, plain))
            noise = (b - getattr(silent, name)).std(axis=0)
            # The very same noise is added to both, so all that differs is the motion.
            assert (np.abs(a - b).max(axis=0) <= 0.2 * noise).all(), name


def test_vibration_is_taken_from_the_noise_free_imu() -> None:
    """Welch's density over 60 bins within a tenth (1e-3); odometry at 50 Hz sees only an alias."""
    motion = Shaken(motion_of('circle', duration=SECONDS))
    ideal = {'ideal_imu': noise_free_imu(motion)}
    model = dataclasses.replace(load_imu('ideal'), rate=200.0)

    def density(measured: FloatArray, low: float, high: float) -> float:
        frequency, power = welch(measured - measured.mean(), fs=200.0, nperseg=400)
        return float(power[(frequency > low) & (frequency < high)].mean())

    felt = simulated(recorded(motion, ideal, 50.0), imu=model).imu.linear_acceleration[:, 2]
    missed = simulated(recorded(motion, {}, 50.0), imu=model).imu.linear_acceleration[:, 2]
    inside = BAND[0] + 2.0, BAND[1] - 2.0
    assert density(felt, *inside) == pytest.approx(DENSITY, rel=0.1)
    assert density(missed, *inside) < 0.02 * DENSITY
    exact = imu.simulate(model, motion, **EXACT).linear_acceleration[:, 2]
    assert np.abs(felt - exact).max() < 1e-9


def test_the_mounting_of_the_noise_free_sensor_is_corrected() -> None:
    """An IMU at another place measures the forces there, to the derivative of the rates."""
    motion = motion_of('swaying', duration=SECONDS)
    arm, rpy = (0.3, -0.2, 0.5), (0.1, -0.4, 2.0)
    ideal_imu = noise_free_imu(motion, lever_arm=arm, mounting_rpy=rpy, frame_id='there')
    turn = tuple(rotations.quaternion_from_euler(*rpy))
    recording = dataclasses.replace(
        recorded(motion, {'ideal_imu': ideal_imu}),
        transforms=(
            StaticTransform('base_link', 'there', arm, turn),
            StaticTransform('base_link', 'imu_link', (-0.4, 0.1, 0.0)),
        ),
    )
    measured = simulated(recording, imu=load_imu('ideal')).imu
    exact = imu.simulate(
        dataclasses.replace(load_imu('ideal'), lever_arm=(-0.4, 0.1, 0.0)), motion, **EXACT
    )
    assert np.abs(measured.angular_velocity - exact.angular_velocity).max() < 1e-6
    assert np.abs(measured.linear_acceleration - exact.linear_acceleration).max() < 1e-4
    moved = imu.simulate(load_imu('ideal'), motion, **EXACT)
    assert np.abs(moved.linear_acceleration - exact.linear_acceleration).max() > 0.05


def test_positions_and_fields_are_taken_from_the_simulator() -> None:
    """The odometry is 3 m beside the antenna, and no world has this field."""
    motion = motion_of('circle', duration=SECONDS)
    room = load_world('dipole_room')
    beside = recorded(motion, {})
    fixes = gps.simulate(load_gps('baseline'), motion, frame=room.frame, **EXACT)
    shifted = room.frame.to_geodetic(
        room.frame.to_enu(fixes.latitude, fixes.longitude, fixes.altitude) + EAST
    )
    fixes = dataclasses.replace(
        fixes, latitude=shifted[0], longitude=shifted[1], altitude=shifted[2]
    )
    field = magnetometer.simulate(load_mag('ideal'), motion, world=room, **EXACT)
    field = dataclasses.replace(field, magnetic_field=2.0 * field.magnetic_field)
    recording = beside.with_messages('ideal_gps', fixes).with_messages('ideal_mag', field)
    twin = simulated(recording, gps=load_gps('baseline'), mag=load_mag('ideal'))
    got = room.frame.to_enu(twin.gps.latitude, twin.gps.longitude, twin.gps.altitude)
    true = motion.at(twin.gps.stamp_ns * 1e-9).position
    assert np.abs(got - true - EAST).max() < 1e-6
    at = np.isin(field.stamp_ns, twin.mag.stamp_ns)
    np.testing.assert_allclose(twin.mag.magnetic_field, field.magnetic_field[at], rtol=1e-12)


def test_noise_free_streams_are_identified_by_their_topics(tmp_path: Path) -> None:
    """No stream in a bag or in a folder of tables is taken for a real IMU."""
    motion = motion_of('circle', duration=2.0)
    recording = recorded(motion, {'ideal_imu': noise_free_imu(motion)})
    for storage in ('mcap', 'csv'):
        write_recording(recording, tmp_path / storage, storage=storage)
        again = read_recording(tmp_path / storage)
        assert again.roles == recording.roles
        assert again.imu is None
        topic = DEFAULT_TOPICS['ideal_imu']
        # A clock of a simulator starts at zero.
        assert arrays_equal(again.messages[topic], recording.messages[topic])
        twin = simulated(again, imu=load_imu('airsim'), gps=load_gps('ch_rw'))
        assert len(twin.imu) == 201
    # A covariance of zero is right of what is noise-free.
    expected = ['twin.noise_free']
    assert sorted({note.code for note in twin.notes}) == expected
    assert 'twin.noise_free' not in {note.code for note in simulated(again, gps=GOOD).notes}


def test_lever_arms_of_noise_free_sensors_do_not_move_the_models(tmp_path: Path) -> None:
    """Sensors without a lever arm are at the base; simulated ones are where their models say."""
    motion = motion_of('swaying', duration=2.0)
    arm = (0.3, -0.2, 0.5)
    streams = {
        'ideal_imu': noise_free_imu(motion, lever_arm=arm, frame_id='car::imu'),
        'ideal_gps': dataclasses.replace(gps.simulate(GOOD, motion, **EXACT), frame='car::gps'),
    }
    write_recording(recorded(motion, streams), tmp_path / 'drive')
    with (tmp_path / 'drive/recording.yaml').open('a') as file:
        file.write(f'lever_arms: {{ideal_imu: {list(arm)}}}\n')
    again = read_recording(tmp_path / 'drive')
    ideal_imu = dataclasses.replace(load_imu('ideal'), lever_arm=(-0.4, 0.1, 0.0))
    twin = simulated(again, imu=ideal_imu, gps=GOOD)
    exact = imu.simulate(ideal_imu, motion, **EXACT)
    same = np.isin(exact.stamp_ns, twin.imu.stamp_ns)
    difference = twin.imu.linear_acceleration - exact.linear_acceleration[same]
    # At the ends of the stream the derivative of its rates is worse.
    assert np.abs(difference[1:-1]).max() < 1e-4
    places = {transform.child: transform.translation for transform in twin.transforms}
    assert places == {
        'car::imu': arm, 'car::gps': (0.0, 0.0, 0.0), 'imu_link': (-0.4, 0.1, 0.0),
        'gps_link': (0.0, 0.0, 0.0),
    }  # fmt: skip


def test_the_twin_covers_the_time_common_to_all_streams() -> None:
    motion = motion_of('circle', duration=4.0)
    ideal = noise_free_imu(motion)
    inside = (ideal.stamp_ns >= 1_005_000_000) & (ideal.stamp_ns <= 2_996_000_000)
    recording = recorded(motion, {'ideal_imu': ideal.take(inside)})
    twin = simulated(recording, imu=load_imu('ideal'), gps=load_gps('ch_rw'))
    truth, measured = twin.truth, twin.imu
    assert (truth.stamp_ns[0], truth.stamp_ns[-1]) == (1_010_000_000, 2_990_000_000)
    assert (measured.stamp_ns[0], measured.stamp_ns[-1]) == (1_010_000_000, 2_990_000_000)
    fixes = twin.gps
    assert (fixes.stamp_ns[0], fixes.stamp_ns[-1]) == (1_010_000_000, 2_910_000_000)
    late = dataclasses.replace(ideal, stamp_ns=ideal.stamp_ns + 3_985_000_000)
    with pytest.raises(RecordingError, match='/ground_truth/imu'):
        simulated(recorded(motion, {'ideal_imu': late}), imu=load_imu('ideal'))
    broken = dataclasses.replace(ideal, linear_acceleration=np.full((len(ideal), 3), np.nan))
    with pytest.raises(Exception, match='noise-free IMU: message 0'):
        simulated(recorded(motion, {'ideal_imu': broken}), imu=load_imu('ideal'))


def test_a_gap_in_the_stream_is_filled_from_odometry() -> None:
    """A cubic through a vibration would be wrong for two seconds."""
    motion = Shaken(motion_of('circle', duration=6.0))
    ideal = noise_free_imu(motion)
    outside_gap = (ideal.stamp_ns < 2_000_000_000) | (ideal.stamp_ns > 4_000_000_000)
    whole = simulated(recorded(motion, {}), imu=load_imu('ideal')).imu
    torn = simulated(
        recorded(motion, {'ideal_imu': ideal.take(outside_gap)}), imu=load_imu('ideal')
    ).imu
    inside = (torn.stamp_ns > 2_100_000_000) & (torn.stamp_ns < 3_900_000_000)
    a, b = torn.linear_acceleration[inside], whole.linear_acceleration[inside]
    np.testing.assert_allclose(a, b, atol=1e-9)


def test_noise_free_fixes_determine_the_origin_on_the_earth() -> None:
    motion = motion_of('circle', duration=4.0)
    munich = LocalFrame(48.137, 11.575, 520.0)
    fixes = gps.simulate(load_gps('baseline'), motion, frame=munich, **EXACT)
    maker = TwinMaker(recorded(motion, {'ideal_gps': fixes}), seed=1)
    assert maker.world.frame.latitude_deg == pytest.approx(48.137, abs=1e-6)
    assert maker.world.frame.longitude_deg == pytest.approx(11.575, abs=1e-6)


def test_the_user_selects_the_noise_free_streams(tmp_path: Path) -> None:
    """A noise-free IMU can be judged, and a topic may lack its slash."""
    motion = motion_of('circle', duration=2.0)
    recording = recorded(motion, {'ideal_imu': noise_free_imu(motion)})
    write_recording(recording, tmp_path / 'bag')
    topic = DEFAULT_TOPICS['ideal_imu']
    chosen = {'imu': topic, 'ideal_imu': None}
    assert read_recording(tmp_path / 'bag', topics=chosen).roles['imu'] == topic
    again = read_recording(tmp_path / 'bag', topics={'ideal_imu': topic.strip('/')})
    assert again.imu is None
    assert again.roles['ideal_imu'] == topic
