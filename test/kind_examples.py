# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Vehicles and faults for the tests of the newer kinds of findings of `check`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from preflight_examples import AHRS, Change, altered, selected_messages
from scipy.signal import lfilter
from scipy.spatial.transform import Rotation

from sim2real_eval.preflight.checks import check
from sim2real_eval.recording.corrections import NED_TO_ENU
from sim2real_eval.recording.poses import derive_velocities
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import synthetic_recording
from sim_sensors.core import rotations
from sim_sensors.core.measurements import MagneticFieldArray, TwistArray
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.trajectory import Trajectory
from sim_sensors.world.geodesy import LocalFrame


@dataclasses.dataclass(frozen=True)
class Vehicle:
    """A closed track of a vehicle that starts at rest, with slopes and swaying.

    Attributes
    ----------
    length, width, climb : float
        Half extents of the track, m.
    roll, pitch : float
        Amplitudes of swaying, deg.
    period : float
        Time of one lap, s.
    lap : int
        Turns of the second axis in one lap: 1 is an ellipse, 2 is a figure of eight.
    end : float
        Duration, s.
    rests : bool
        Whether it stops between 20 and 32 s.
    """

    length: float = 40.0
    width: float = 20.0
    climb: float = 0.0
    roll: float = 0.0
    pitch: float = 0.0
    period: float = 30.0
    lap: int = 2
    end: float = 40.0
    start: float = 0.0
    rests: bool = False

    def _pose(self, time: np.ndarray) -> tuple[np.ndarray, Rotation]:
        if self.rests:
            time = time - sum(
                sign
                * (
                    np.clip(time - at, 0.0, 2.0) ** 3 / 4.0
                    - np.clip(time - at, 0.0, 2.0) ** 4 / 16.0
                    + np.maximum(time - at - 2.0, 0.0)
                )
                for sign, at in ((1.0, 18.0), (-1.0, 32.0))
            )
        phase = 2.0 * np.pi / self.period * (time + 2.0 * np.expm1(-time / 2.0))
        x, y = self.length * np.sin(phase), self.width * np.sin(self.lap * phase + 0.4)
        ahead = self.length * np.cos(phase), self.lap * self.width * np.cos(self.lap * phase + 0.4)
        swaying = [np.sin(1.3 * phase + 0.2), np.sin(2.1 * phase)] * np.array(
            [[self.pitch], [self.roll]]
        )
        angles = [np.arctan2(ahead[1], ahead[0]), *np.radians(swaying)]
        place = np.stack([x, y, self.climb * np.sin(0.7 * phase)], axis=1)
        return place, Rotation.from_euler('ZYX', np.stack(angles, axis=1))

    def _turning(self, time: np.ndarray, step: float) -> np.ndarray:
        (_, before), (_, after) = self._pose(time - step), self._pose(time + step)
        return np.asarray((before.inv() * after).as_rotvec() / (2.0 * step))

    def at(self, times: ArrayLike) -> Trajectory:
        """Return the motion; its derivatives are differences over 2 ms."""
        time, step = np.atleast_1d(np.asarray(times, float)), 1e-3
        place, turn = self._pose(time)
        (before, _), (after, _) = self._pose(time - step), self._pose(time + step)
        rate = [self._turning(time + shift, step) for shift in (-step, step)]
        return Trajectory(
            time,
            place,
            turn.as_quat(),
            (after - before) / (2.0 * step),
            self._turning(time, step),
            (after - 2.0 * place + before) / step**2,
            (rate[1] - rate[0]) / (2.0 * step),
        )


CAR = Vehicle()
CART = Vehicle(length=25.0, width=18.0, period=38.0, lap=1, end=46.0)
HILL = Vehicle(climb=4.0, roll=3.0, pitch=5.0)
BOAT = Vehicle(length=50.0, width=15.0, roll=14.0, pitch=9.0, period=25.0)
STREET = Vehicle(length=200.0, width=0.0, climb=12.0, period=200.0)
SLOPE = Vehicle(length=0.0, width=150.0, climb=8.0, period=260.0, lap=1)
TUMBLING = Vehicle(length=0.5, width=0.5, roll=70.0, pitch=40.0, period=9.0)


@functools.cache
def driven(vehicle: Vehicle = CAR, gps: str = 'zed_f9p_rtk', seed: int = 1) -> Recording:
    """Return a recording of a vehicle with a receiver and an IMU as they should be."""
    sensors = Twin(
        'own', load_gps(gps), dataclasses.replace(load_imu('xsens_mtx'), orientation=AHRS)
    )
    return synthetic_recording(vehicle, sensors, seed=seed, run=f'run_{seed}', scenario='track')


def lost(role: str, share: float) -> Change:
    """Leave out a share of the messages at random."""
    return selected_messages(
        role, lambda time: np.random.default_rng(3).random(len(time)) >= share
    )


def jittered(role: str, deviation: float) -> Change:
    """Add noise to the stamps, in s."""

    def shift(stamp: np.ndarray) -> np.ndarray:
        noise = np.random.default_rng(4).normal(0.0, deviation, len(stamp))
        return np.sort(stamp + (noise * 1e9).astype(np.int64))

    return altered(role, stamp_ns=shift)


def of_axes(world: str, *body: float) -> Change:
    """Publish the orientation in a world frame, and in axes turned by roll, pitch, yaw, deg."""

    def publish(orientation: np.ndarray) -> np.ndarray:
        turn = Rotation.from_quat(orientation) * Rotation.from_euler('xyz', body, degrees=True)
        return (NED_TO_ENU.inv() * turn if world == 'ned' else turn).as_quat()

    return altered('imu', orientation=publish)


def turned_heading(of_time: Callable[[np.ndarray], np.ndarray]) -> Change:
    """Add angles, deg, as a function of the time as a share of the duration to the heading."""

    def publish(orientation: np.ndarray) -> np.ndarray:
        angle = np.radians(of_time(np.linspace(0.0, 1.0, len(orientation))))
        return (
            Rotation.from_euler('z', angle[:, None]) * Rotation.from_quat(orientation)
        ).as_quat()

    return altered('imu', orientation=publish)


def w_first(quaternion: np.ndarray) -> np.ndarray:
    """Return quaternions with w in the place of x."""
    return np.roll(quaternion, 1, axis=1)


def level(orientation: np.ndarray) -> np.ndarray:
    """Return orientations without roll and pitch."""
    return rotations.from_heading(rotations.heading(orientation))


def stretched(role: str, seconds: float) -> Change:
    """Let the clock of a role gain some time over the recording."""

    def stretch(stamp: np.ndarray) -> np.ndarray:
        share = (stamp - stamp[0]) / (stamp[-1] - stamp[0])
        return stamp + np.rint(share * seconds * 1e9).astype(np.int64)

    return altered(role, stamp_ns=stretch, arrival_ns=stretch)


def moved_fixes(shift: Callable[[Recording], np.ndarray]) -> Change:
    """Move the fixes by east, north, up, m, as a function of the recording."""

    def change(recording: Recording) -> Recording:
        fixes = recording.gps
        frame = LocalFrame(fixes.latitude[0], fixes.longitude[0], fixes.altitude[0])
        place = frame.to_enu(fixes.latitude, fixes.longitude, fixes.altitude)
        moved = frame.to_geodetic(place + shift(recording))
        names = ('latitude', 'longitude', 'altitude')
        return recording.with_messages(
            'gps', dataclasses.replace(fixes, **dict(zip(names, moved, strict=True)))
        )

    return change


def pose_at_fixes(recording: Recording) -> tuple[np.ndarray, np.ndarray]:
    """Return position and orientation of the truth at the stamps of the fixes."""
    truth = recording.truth
    nearest = np.searchsorted(truth.stamp_ns, recording.gps.stamp_ns).clip(0, len(truth) - 1)
    return truth.position[nearest], truth.orientation[nearest]


def with_antenna(forward: float, left: float) -> Change:
    """Move the antenna, without a transform that states it."""
    arm = np.array([forward, left, 0.0])
    return moved_fixes(lambda run: rotations.rotate(
        pose_at_fixes(run)[1], np.tile(arm, (len(run.gps), 1))
    ))  # fmt: skip


def scattered(metres: float) -> Change:
    """Add white noise to the fixes, m."""
    return moved_fixes(lambda run: np.random.default_rng(5).normal(0.0, metres, (len(run.gps), 3)))


def wandering(metres: float) -> Change:
    """Add errors that wander within 20 s to the fixes, whose covariances state 0.1 m."""

    def errors(recording: Recording) -> np.ndarray:
        random, count = np.random.default_rng(9), len(recording.gps)
        kept = np.exp(-0.1 / 20.0)
        steps = random.normal(0.0, metres * np.sqrt(1.0 - kept**2), (count, 3))
        steps[0] = random.normal(0.0, metres, 3)
        return lfilter([1.0], [1.0, -kept], steps, axis=0)

    stated = altered('gps', position_covariance=lambda c: c * 0.0 + 0.01 * np.eye(3))
    return then(moved_fixes(errors), stated)


def with_input(
    *, twist: bool = False, frame: str = 'base_link', world: bool = False, delay: float = 0.0,
    factor: float = 1.0, rate_factor: float = 1.0, noise: float = 0.02, stated: float = 0.02,
    topic: str = '/input',
) -> Change:  # fmt: skip
    """Add wheel odometry or a twist at 25 Hz with a fault."""

    def change(recording: Recording) -> Recording:
        random, part = np.random.default_rng(6), recording.truth
        part = part.take(np.arange(0, len(part), 4))
        velocity = part.linear_velocity
        if world:
            velocity = rotations.rotate(part.orientation, velocity)
        stamps = part.stamp_ns + round(delay * 1e9)
        fields = {
            'stamp_ns': stamps,
            'arrival_ns': stamps,
            'linear_velocity': factor * velocity + random.normal(0.0, noise, velocity.shape),
            'angular_velocity': rate_factor * part.angular_velocity,
            'twist_covariance': np.tile(np.diag([stated**2] * 6), (len(part), 1, 1)),
        }
        array = (
            TwistArray(frame=frame, **fields)
            if twist
            else dataclasses.replace(part, frame='odom', child_frame=frame, **fields)
        )
        return dataclasses.replace(recording, messages={**recording.messages, topic: array})

    return change


def with_down(recording: Recording) -> Recording:
    """Give the truth a height that grows downwards."""
    down = np.array([1.0, 1.0, -1.0])
    return altered('truth', position=lambda p: p * down, linear_velocity=lambda v: v * down)(
        recording
    )


def with_exact_orientation(recording: Recording) -> Recording:
    """Publish the true orientation with a covariance of zero, as simulators do."""
    truth, imu = recording.truth, recording.imu
    rows = np.searchsorted(truth.stamp_ns, imu.stamp_ns).clip(0, len(truth) - 1)
    exact = dataclasses.replace(
        imu,
        orientation=truth.orientation[rows],
        orientation_covariance=np.zeros_like(imu.orientation_covariance),
    )
    return recording.with_messages('imu', exact)


def of_capture(rate: float, place: float, angle: float) -> Change:
    """Take a truth of poses at a lower rate, with white noise in m and rad."""

    def change(recording: Recording) -> Recording:
        random, part = np.random.default_rng(8), recording.truth
        part = part.take(np.arange(0, len(part), round(100.0 / rate)))
        noise = Rotation.from_rotvec(random.normal(0.0, angle, (len(part), 3)))
        poses = dataclasses.replace(
            part,
            position=part.position + random.normal(0.0, place, part.position.shape),
            orientation=(Rotation.from_quat(part.orientation) * noise).as_quat(),
        )
        derived, _ = derive_velocities('', 'truth', poses)
        return recording.with_messages('truth', derived)

    return change


def with_magnetometer(recording: Recording) -> Recording:
    """Add the field of the Earth as the sensor in the axes of the base feels it."""
    truth = recording.truth
    part = truth.take(np.arange(0, len(truth), 5))
    field = np.tile([2e-6, 20e-6, -45e-6], (len(part), 1))
    felt = rotations.rotate_back(part.orientation, field)
    zero = np.zeros((len(part), 3, 3))
    return recording.with_messages(
        'mag', MagneticFieldArray(part.stamp_ns, part.arrival_ns, 'imu_link', felt, zero)
    )


def without(role: str) -> Change:
    return lambda recording: recording.with_messages(role, None)


def within(role: str, begin: float, end: float) -> Change:
    """Keep the messages of a time, s since the first."""
    return selected_messages(role, lambda time: (time >= begin) & (time <= end))


def codes_of(recording: Recording) -> set[str]:
    """Return the codes of findings without their prefix."""
    return {finding.code.partition('.')[2] for finding in check(recording).findings}


def then(*changes: Change) -> Change:
    """Return a change that makes several, one after the other."""
    return lambda recording: functools.reduce(lambda run, change: change(run), changes, recording)
