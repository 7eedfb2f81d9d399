# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The car on springs over a road of known spectrum, and the vibration of its IMU."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from ideal_examples import recorded, simulated
from scipy.signal import welch
from scipy.signal.windows import tukey
from scipy.special import k1
from scipy.stats import chi2

from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.mujoco_motion import PhysicalMotion
from sim_sensors.motion.road_classes import REFERENCE_FREQUENCY, ROUGHNESS
from sim_sensors.motion.roads import Road, SprungCar
from sim_sensors.motion.vehicles import AckermannVehicle, VehicleCommand, VehicleState
from sim_sensors.world.geodesy import STANDARD_GRAVITY

Record = Callable[[str, object], None]

SPEED = 0.7  # m/s
SECONDS = 68.0
SETTLED = 4.0  # s, before which it reaches the speed
CAR = SprungCar(road='C')


def ahead(car: SprungCar, seconds: float) -> PhysicalMotion:
    """Return a drive straight ahead, at constant speed; 1 to 8 Hz are waves of 70 to 9 cm."""
    pytest.importorskip('mujoco')
    return car.ride(
        lambda time, state: VehicleCommand(0.9 + 8.0 * (SPEED - state.speed), 0.0),
        np.random.default_rng(1),
        duration=seconds,
        start=VehicleState(0.0, 0.0, 0.3, SPEED),
    )


@pytest.fixture(scope='module')
def rough() -> PhysicalMotion:
    return ahead(CAR, SECONDS)


def responses(frequency: FloatArray) -> FloatArray:
    """Return the upward acceleration of a linear car's body per height of front and rear track."""
    body, wheels = CAR.mass - 4.0 * CAR.wheel_mass, 2.0 * CAR.wheel_mass
    turning = body / 12.0 * (CAR.wheelbase**2 + CAR.body_height**2)
    # Heave, pitch, front and rear wheels; an axle has two springs, dampers and tyres.
    mass = np.diag([body, turning, wheels, wheels])
    stiffness, damping = np.zeros((2, 4, 4))
    rate = 2.0 * np.pi * CAR.ride_frequency
    for axle, place in enumerate((CAR.cg_to_front, -CAR.cg_to_rear)):
        carried = body * (1.0 - abs(place) / CAR.wheelbase)
        bent = np.zeros(4)
        bent[[0, 1, 2 + axle]] = 1.0, place, -1.0
        stiffness += carried * rate**2 * np.outer(bent, bent)
        damping += 2.0 * CAR.ride_damping * carried * rate * np.outer(bent, bent)
        stiffness[2 + axle, 2 + axle] += 2.0 * CAR.tyre_stiffness
    s = 2j * np.pi * frequency[:, None, None]
    pushed = 2.0 * CAR.tyre_stiffness * np.eye(4)[:, 2:]
    moved: FloatArray = np.linalg.solve(mass * s**2 + damping * s + stiffness, pushed)[:, 0]
    return moved * s[:, 0] ** 2


def body_spectrum(frequency: FloatArray, speed: float) -> FloatArray:
    """Return the density of that acceleration, (m/s^2)^2/Hz; the rear follows L / v later. The
    mean of two tracks w apart has (1 + x K1(x)) / 2 of the density of one, x = 2 pi n w.
    """
    n = frequency / speed
    x = 2.0 * np.pi * n * CAR.track
    road = ROUGHNESS['C'] * (n / REFERENCE_FREQUENCY) ** -2 / speed * (1.0 + x * k1(x)) / 2.0
    front, rear = responses(frequency).T
    later = np.exp(-2j * np.pi * frequency * CAR.wheelbase / speed)
    return np.asarray(np.abs(front + rear * later) ** 2 * road)


def mean_body_spectrum(rough: PhysicalMotion, frequency: FloatArray) -> FloatArray:
    """Return `body_spectrum` averaged over the speeds: they set where the wheel base filters."""
    speeds = np.linalg.norm(rough.truth.linear_velocity[2000:, :2], axis=1)
    assert speeds.std() < 0.03 * SPEED
    speed_quantiles = np.quantile(speeds, np.linspace(0.02, 0.98, 25))
    return np.mean(
        [body_spectrum(frequency, probability) for probability in speed_quantiles], axis=0
    )


def ratios(
    rough: PhysicalMotion, acceleration: FloatArray, rate: float, band: tuple[int, int]
) -> tuple[FloatArray, FloatArray]:
    """Return measured over expected power of every hertz of a band, and its degrees of freedom.
    Half-overlapping segments [Welch1967] of T seconds have 2 T of them per hertz of a flat
    spectrum, and (sum S)^2 / sum S^2 bins of another spectrum count.
    """
    settled = acceleration[round(SETTLED * rate) :, 2]
    frequency, density = welch(settled - settled.mean(), fs=rate, nperseg=round(4.0 * rate))
    inside = (frequency >= band[0]) & (frequency < band[1])
    hertz = np.arange(inside.sum()).reshape(band[1] - band[0], 4)
    true = mean_body_spectrum(rough, frequency[inside])[hertz]
    free = 2.0 * (SECONDS - SETTLED) / 4.0 * true.sum(axis=1) ** 2 / (true**2).sum(axis=1)
    return density[inside][hertz].sum(axis=1) / true.sum(axis=1), free


def is_likely(ratio: FloatArray, free: FloatArray, alarms: float) -> bool:
    """Return True if all ratios are likely, at a false-alarm rate of `alarms`."""
    share = alarms / 2.0 / np.size(ratio)
    low, high = (chi2.ppf(probability, free) / free for probability in (share, 1.0 - share))
    return bool(np.all((low < ratio) & (ratio < high)))


def test_the_body_spectrum_is_the_road_spectrum_times_the_transfer_function(
    rough: PhysicalMotion, record_property: Record
) -> None:
    """Every hertz and the sum over 1 to 8 Hz, to 25 %; a false alarm once in 10^4."""
    felt = rough.noise_free_imu.linear_acceleration
    ratio, free = ratios(rough, felt, 1.0 / CAR.timestep, (1, 8))
    assert is_likely(ratio, free, 0.5e-4)
    power = np.average(ratio, weights=free)
    record_property('power', float(power))
    assert is_likely(power, free.sum(), 0.5e-4)
    assert chi2.ppf(1.0 - 0.25e-4, free.sum()) / free.sum() < 1.25


def test_the_car_on_rough_ground_equals_the_linear_quarter_car(record_property: Record) -> None:
    """1 to 10 Hz to 6 % of the acceleration; half the stiffness of the tyres would give 28 %."""
    driven = ahead(dataclasses.replace(CAR, road='A'), 20.0)
    begin = round(SETTLED / CAR.timestep)
    road, truth = Road('A', np.random.default_rng(1)), driven.truth.take(slice(begin, None))
    tracks = []
    for x in (CAR.cg_to_front, -CAR.cg_to_rear):
        sides = []
        for y in (CAR.track / 2.0, -CAR.track / 2.0):
            arm = np.broadcast_to([x, y, 0.0], truth.position.shape)
            wheel = truth.position + rotations.rotate(truth.orientation, arm)
            sides.append(road.at(wheel[:, :2])[0])
        tracks.append(np.mean(sides, axis=0))
    window = tukey(len(truth), 0.2)
    frequency = np.fft.rfftfreq(len(truth), CAR.timestep)
    inside = (frequency > 1.0) & (frequency < 10.0)
    heights = np.fft.rfft(window * tracks)[:, inside]
    linear = (responses(frequency[inside]).T * heights).sum(axis=0)
    felt = driven.noise_free_imu.linear_acceleration[begin:, 2] - STANDARD_GRAVITY
    spectrum = np.fft.rfft(window * felt)[inside]
    off = float(np.linalg.norm(spectrum - linear) / np.linalg.norm(linear))
    record_property('difference', off)
    assert off < 0.06


def test_vibration_appears_in_the_imu_but_not_in_slow_odometry(rough: PhysicalMotion) -> None:
    """Odometry at 8 Hz leaves a twentieth of 6 to 8 Hz. A false alarm once in 10^4."""
    model = dataclasses.replace(load_imu('ideal'), rate=100.0)
    shares = []
    for ideal in ({'ideal_imu': rough.noise_free_imu}, {}):
        imu = simulated(recorded(rough, ideal, 8.0), imu=model).imu
        shares.append(ratios(rough, imu.linear_acceleration, model.rate, (6, 8)))
    assert is_likely(*shares[0], 1e-4)
    assert shares[1][0].max() < 0.05


def test_a_car_on_springs_climbs_as_one_without() -> None:
    """A slope of 0.05 rad, without roughness: speed and position within 2 %."""
    pytest.importorskip('mujoco')
    commands = {'duration': 15.0, 'start': VehicleState(0.0, 0.0, 0.4, 0.0)}
    plane = AckermannVehicle(incline=0.05).drive(lambda t, s: VehicleCommand(0.8, 0.1), **commands)
    springs = SprungCar(incline=0.05).ride(
        lambda t, s: VehicleCommand(0.8, 0.1), np.random.default_rng(1), **commands
    )
    assert springs.gravity == pytest.approx(STANDARD_GRAVITY)
    times = np.linspace(5.0, 15.0, 50)
    driven, ridden = plane.at(times), springs.at(times)
    speed = np.linalg.norm(driven.velocity, axis=1)
    assert np.linalg.norm(ridden.velocity, axis=1) == pytest.approx(speed, rel=0.02)
    climbed = [motion.position[-1, 2] - motion.position[0, 2] for motion in (ridden, driven)]
    assert climbed[0] == pytest.approx(climbed[1], rel=0.02)
    # Its noise-free IMU measures gravity along the slope.
    resting = springs.noise_free_imu.linear_acceleration[0]
    assert np.linalg.norm(resting) == pytest.approx(STANDARD_GRAVITY, rel=0.01)


@pytest.mark.parametrize('damping', [0.0, 8.0])
def test_the_tyre_force_follows_from_stiffness_and_damping(damping: float) -> None:
    """The car falls 1 cm; the force is never negative."""
    mujoco = pytest.importorskip('mujoco')
    car = SprungCar(tyre_damping=damping)
    model = car.model()
    data = mujoco.MjData(model)
    data.qpos[2] = car.wheel_radius + 0.01
    pushed = np.zeros(6)
    largest = 0.0
    for _ in range(200):
        mujoco.mj_step(model, data)
        mujoco.mj_forward(model, data)
        for number, contact in enumerate(data.contact):
            mujoco.mj_contactForce(model, data, number, pushed)
            rate = data.efc_vel[contact.efc_address]
            expected_force = -car.tyre_stiffness * contact.dist - damping * rate
            assert pushed[0] == pytest.approx(max(expected_force, 0.0), abs=0.1)
            largest = max(largest, pushed[0])
    assert largest > 20.0
