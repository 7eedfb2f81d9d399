# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Messages of IMU, receiver, truth, wheels and magnetometer on a motion, with honest errors."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.signal import lfilter
from scipy.spatial.transform import Rotation

from . import earth
from .setups import GPS_KINDS, IMU_GRADES, TRUTHS, Setup
from .vehicles import Array, Motion, State, make_motion

IMU, GPS, TRUTH = '/imu/data', '/gps/fix', '/ground_truth/odometry'
ODOMETRY, MAG = '/odom', '/imu/mag'


@dataclasses.dataclass
class Stream:
    """Messages of a topic.

    Attributes
    ----------
    kind : str
        `imu`, `fix`, `odometry`, `pose` or `mag`.
    frame, child : str
    time, received : (n,) float
        Stamps and times of arrival, in seconds since the start.
    values : dict of str to array
        Fields of the messages; covariances as rows of 9 or 36.
    clock : float
        Seconds by which a fault has put the stamps off.
    """

    kind: str
    frame: str
    child: str
    time: Array
    received: Array
    values: dict[str, Array]
    clock: float = 0.0

    def __len__(self) -> int:
        return len(self.time)

    def keep(self, rows: Array) -> None:
        """Leave out messages: `rows` is a mask or indices."""
        self.time, self.received = self.time[rows], self.received[rows]
        self.values = {name: value[rows] for name, value in self.values.items()}


@dataclasses.dataclass
class Log:
    """A recording before it is written.

    Attributes
    ----------
    setup : Setup
    motion : Motion
    streams : dict of str to Stream
        By topic.
    transforms : dict of str to (translation, Rotation)
        Declared static transforms from base_link, by child frame.
    rng : Generator
        For faults.
    """

    setup: Setup
    motion: Motion
    streams: dict[str, Stream]
    transforms: dict[str, tuple[Array, Rotation]]
    rng: np.random.Generator

    def gravity(self) -> Array:
        """Return the specific force at rest in world axes, m/s^2."""
        return np.array([0.0, 0.0, earth.gravity(self.setup.place)])


def make_log(setup: Setup) -> Log:
    """Return a clean recording."""
    rng = np.random.default_rng(setup.seed)
    motion = make_motion(
        setup.vehicle, rng, setup.duration,
        hills=setup.hills, rest=setup.rest, small=setup.truth == 'mocap',
    )  # fmt: skip
    streams = {
        IMU: _imu(setup, motion, rng),
        GPS: _fixes(setup, motion, rng),
        TRUTH: _truth(setup, motion, rng),
    }
    if setup.odometry:
        streams[ODOMETRY] = _odometry(setup, motion, rng)
    if setup.magnetometer:
        streams[MAG] = _field(setup, motion, rng)
    none = Rotation.identity()
    transforms = {}
    if setup.declares:
        transforms = {
            'imu_link': (np.array(setup.lever_imu), setup.mounted),
            'gps_link': (np.array(setup.lever_gps), none),
        }
    log = Log(setup, motion, streams, transforms, rng)
    _peculiar(log)
    return log


def _peculiar(log: Log) -> None:
    """Give a clean recording what only its messages show."""
    imu, truth = log.streams[IMU], log.streams[TRUTH]
    name = log.setup.peculiarity
    if name.startswith('poses'):
        truth.kind = 'pose'
    elif 'bursts' in name:
        for stream in log.streams.values():
            stream.received = np.ceil(stream.received / 0.1) * 0.1
    elif name.startswith('receiver'):
        log.streams[GPS].keep(log.streams[GPS].time > 12.0)
    elif name.startswith('lost'):
        imu.keep(log.rng.random(len(imu)) > 0.003)
    elif '0.1 m/s^2' in name:
        imu.values['force'] += [0.06, -0.05, 0.06]
        imu.values['force_covariance'] = _diagonal(len(imu), 0.08)
    elif 'walks' in name:
        walk = np.cumsum(log.rng.normal(0.0, 1.0, (len(imu), 3)), axis=0)
        imu.values['rate'] += 6e-4 * walk / np.sqrt(len(imu))


def markov(
    rng: np.random.Generator, count: int, step: float, time_constant: float, sigma: float,
    axes: int = 3,
) -> Array:  # fmt: skip
    """Return stationary first-order Gauss-Markov noise (count, axes)."""
    keep = np.exp(-step / time_constant)
    shocks = rng.normal(0.0, sigma * np.sqrt(1.0 - keep**2), (count, axes))
    shocks[0] = rng.normal(0.0, sigma, axes)
    return np.asarray(lfilter([1.0], [1.0, -keep], shocks, axis=0))


def _latency(rng: np.random.Generator, time: Array, least: float, mean: float) -> Array:
    """Return times of arrival in order."""
    return np.maximum.accumulate(time + least + rng.exponential(mean, len(time)))


def _diagonal(count: int, *deviations: float) -> Array:
    """Return rows of a constant covariance; the last deviation stands for all that follow."""
    size = 3 if len(deviations) <= 3 else 6
    full = [*deviations, *[deviations[-1]] * (size - len(deviations))]
    return np.tile(np.diag(np.square(full)).ravel(), (count, 1))


def _honest(rng: np.random.Generator, errors: Array) -> float:
    """Return what a data sheet would state about errors: true to within a factor of 1.5."""
    size = float(np.sqrt(np.mean(np.square(errors))))
    return size * float(np.exp(rng.uniform(-0.4, 0.4)))


def _quantised(values: Array, step: float) -> Array:
    return np.asarray(np.round(values / step) * step)


def _askew(rng: np.random.Generator, degrees: float) -> Rotation:
    axis = rng.normal(size=3)
    return Rotation.from_rotvec(np.radians(degrees) * axis / np.linalg.norm(axis))


def _activity(motion: Motion, state: State) -> Array:
    """Return how much the vehicle shakes, from 0 to 1."""
    speed = np.linalg.norm(state.velocity, axis=1)
    if motion.vehicle == 'drone':
        return np.asarray(np.clip(state.position[:, 2] / 0.3, 0.0, 1.0))
    return 0.2 + 0.8 * speed / max(float(speed.max()), 1.0)


def _imu(setup: Setup, motion: Motion, rng: np.random.Generator) -> Stream:
    step = 1.0 / setup.imu_rate
    time = np.arange(rng.uniform(0.0, step), motion.duration, step)
    time = time + np.clip(rng.normal(0.0, setup.jitter * step, len(time)), -0.4 * step, 0.4 * step)
    time = np.clip(time, 0.0, motion.duration)
    n = len(time)
    state = motion.at(time)
    noise, bias, f_noise, f_bias, bit, f_bit, scale = IMU_GRADES[setup.imu]
    mounted = setup.mounted * _askew(rng, setup.misalignment)
    force = state.attitude.inv().apply(
        state.point(np.array(setup.lever_imu))[2] + [0.0, 0.0, earth.gravity(setup.place)]
    )
    shaking = setup.vibration * _activity(motion, state)[:, None]
    # A resonance near a fifth of the rate colours the vibration.
    tremble = lfilter([1.0], [1.0, -0.5, 0.5], rng.normal(0.0, 0.75, (n, 3)), axis=0)
    gains = 1.0 + scale * rng.uniform(-1.5, 1.5, (2, 3))
    rate_error = rng.uniform(-1.5, 1.5, 3) * bias + markov(rng, n, step, 200.0, 0.3 * bias)
    rate_error += rng.normal(0.0, noise, (n, 3)) + 0.01 * shaking * rng.normal(0.0, 1.0, (n, 3))
    force_error = rng.uniform(-1.5, 1.5, 3) * f_bias + markov(rng, n, step, 150.0, 0.3 * f_bias)
    force_error += rng.normal(0.0, f_noise, (n, 3)) + shaking * tremble
    rate = _quantised(gains[0] * mounted.inv().apply(state.rate) + rate_error, bit)
    sensed = _quantised(gains[1] * mounted.inv().apply(force) + force_error, f_bit)
    if setup.orientation:
        tilt = markov(rng, n, step, 20.0, np.radians(rng.uniform(0.2, 0.7)), 2)
        yaw = markov(rng, n, step, 60.0, np.radians(rng.uniform(0.5, 2.0)), 1)
        yaw = yaw + np.radians(rng.uniform(-1.5, 1.5))
        errors = Rotation.from_rotvec(np.column_stack([tilt, yaw]))
        orientation = (errors * state.attitude * mounted).as_quat()
        levels = _honest(rng, tilt)
        orientation_covariance = _diagonal(n, levels, levels, _honest(rng, yaw))
    else:
        orientation = np.tile([0.0, 0.0, 0.0, 1.0], (n, 1))
        orientation_covariance = np.tile([-1.0, *[0.0] * 8], (n, 1))
    declared = setup.mounted
    values = {
        'orientation': orientation,
        'orientation_covariance': orientation_covariance,
        'rate': rate,
        'rate_covariance': _diagonal(n, _honest(rng, rate - declared.inv().apply(state.rate))),
        'force': sensed,
        'force_covariance': _diagonal(n, _honest(rng, sensed - declared.inv().apply(force))),
    }
    frame = 'imu_link' if setup.declares else 'base_link'
    return Stream('imu', frame, '', time, _latency(rng, time, 0.002, 0.003), values)


def _fixes(setup: Setup, motion: Motion, rng: np.random.Generator) -> Stream:
    step = 1.0 / setup.gps_rate
    time = np.arange(np.ceil(rng.uniform(0.0, 1.0) / step) * step, motion.duration, step)
    n = len(time)
    position = motion.at(time).point(np.array(setup.lever_gps))[0]
    wander, noise, constant, kind = GPS_KINDS[setup.gps]
    # Geometry of the satellites changes over minutes.
    dilution = np.exp(markov(rng, n, step, 120.0, 0.12, 1))
    vertical = np.array([1.0, 1.0, 1.8])
    errors = markov(rng, n, step, constant, wander) + rng.normal(0.0, noise, (n, 3))
    errors = errors * dilution * vertical
    latitude, longitude, height = earth.to_geodetic(position + errors, setup.place)
    honest = _honest(rng, errors / vertical) / float(np.sqrt(np.mean(dilution**2)))
    variance = np.square(honest * dilution * vertical)
    covariance = np.zeros((n, 9))
    covariance[:, [0, 4, 8]] = variance
    status = np.full(n, kind)
    if setup.tunnel:
        begin = rng.uniform(0.35, 0.6) * motion.duration
        inside = (time >= begin) & (time < begin + setup.tunnel)
        status[inside] = -1
        covariance[inside] = 0.0
    known = 1 if 'type 1' in setup.peculiarity else 2
    values = {
        'latitude': latitude,
        'longitude': longitude,
        'altitude': height,
        'covariance': covariance,
        'status': status,
        'covariance_type': np.where(status < 0, 0, known),
    }
    frame = 'gps_link' if setup.declares else 'base_link'
    return Stream('fix', frame, '', time, _latency(rng, time, 0.06, 0.02), values)


def _truth(setup: Setup, motion: Motion, rng: np.random.Generator) -> Stream:
    step = 1.0 / setup.truth_rate
    time = np.arange(rng.uniform(0.0, step), motion.duration, step)
    n = len(time)
    state = motion.at(time)
    noise, wander, a_noise, a_wander, v_noise, w_noise = TRUTHS[setup.truth]
    place = rng.normal(0.0, noise, (n, 3)) + markov(rng, n, step, 40.0, wander)
    angle = rng.normal(0.0, a_noise, (n, 3)) + markov(rng, n, step, 60.0, a_wander)
    body = state.attitude.inv().apply(state.velocity)
    # A survey of the origin is good to centimetres; the frame is east-north-up.
    values = {
        'position': state.position + place,
        'orientation': (Rotation.from_rotvec(np.radians(angle)) * state.attitude).as_quat(),
        'velocity': body + markov(rng, n, step, 0.3, v_noise),
        'rate': state.rate + rng.normal(0.0, w_noise, (n, 3)),
        'pose_covariance': _diagonal(
            n,
            *[max(noise, wander, 1e-3)] * 3,
            *[float(np.radians(max(a_noise, a_wander, 0.01)))] * 3,
        ),
        'twist_covariance': _diagonal(n, *[max(v_noise, 1e-3)] * 3, *[max(w_noise, 1e-4)] * 3),
    }
    received = _latency(rng, time, 0.003, 0.002)
    return Stream('odometry', 'map', 'base_link', time, received, values)


def _odometry(setup: Setup, motion: Motion, rng: np.random.Generator) -> Stream:
    """Return wheel odometry; of drone and boat, velocities by flow or Doppler log."""
    rate = float(rng.choice([20.0, 50.0]))
    time = np.arange(rng.uniform(0.0, 1.0 / rate), motion.duration, 1.0 / rate)
    n = len(time)
    state = motion.at(time)
    velocity = state.attitude.inv().apply(state.velocity)
    wheeled = setup.vehicle in ('car', 'truck')
    seen = velocity * [1.0, 0.0, 0.0] if wheeled else velocity
    seen = seen * (1.0 + rng.normal(0.0, 0.006))
    seen = seen + rng.normal(0.0, 0.03, (n, 3)) * ([1.0, 0.0, 0.0] if wheeled else 1.0)
    turning = state.rate * [0.0, 0.0, 1.0] + rng.normal(0.0, 0.008, (n, 3)) * [0.0, 0.0, 1.0]
    steps = np.diff(time, prepend=time[0])
    yaw = np.cumsum(turning[:, 2] * steps)
    heading = Rotation.from_euler('z', yaw[:, None])
    place = np.cumsum(heading.apply(seen) * steps[:, None], axis=0)
    speed, spin = _honest(rng, seen - velocity), _honest(rng, turning - state.rate)
    values = {
        'position': place,
        'orientation': heading.as_quat(),
        'velocity': seen,
        'rate': turning,
        'pose_covariance': _diagonal(n, *[0.5] * 3, *[0.1] * 3),
        'twist_covariance': _diagonal(n, *[speed] * 3, *[spin] * 3),
    }
    received = _latency(rng, time, 0.004, 0.003)
    return Stream('odometry', 'odom', 'base_link', time, received, values)


def _field(setup: Setup, motion: Motion, rng: np.random.Generator) -> Stream:
    rate = min(setup.imu_rate, 50.0)
    time = np.arange(rng.uniform(0.0, 1.0 / rate), motion.duration, 1.0 / rate)
    n = len(time)
    to_sensor = (motion.at(time).attitude * setup.mounted).inv()
    field = to_sensor.apply(earth.magnetic_field(setup.place))
    errors = rng.normal(0.0, 4e-7, 3) + rng.normal(0.0, 3e-7, (n, 3))
    values = {'field': field + errors, 'field_covariance': _diagonal(n, _honest(rng, errors))}
    frame = 'imu_link' if setup.declares else 'base_link'
    return Stream('mag', frame, '', time, _latency(rng, time, 0.004, 0.003), values)
