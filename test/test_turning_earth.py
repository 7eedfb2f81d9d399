# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""IMUs measure the rotation and curvature of the Earth, and inertial judges subtract them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest

from sim2real_eval.characterization.imu_file import chain_model
from sim2real_eval.judge.inertial.error_state import ErrorStateJudge
from sim2real_eval.judge.inertial.settings import InertialSettings, Start
from sim2real_eval.judge.inertial.strapdown import propagate_state
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim_sensors import load_gps, load_imu
from sim_sensors.core import rotations
from sim_sensors.core.errors import SensorError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.imu.chain import ImuChain
from sim_sensors.imu.imu import ImuModel
from sim_sensors.imu.models import IdealImu
from sim_sensors.motion.motions import START_NS, motion_of, truth_of
from sim_sensors.motion.scenarios import FigureEight
from sim_sensors.motion.trajectory import Trajectory
from sim_sensors.world.earth import (
    EARTH_RATE,
    Gravity,
    TurningEarth,
    normal_gravity,
    simulates_rotation,
)
from sim_sensors.world.geodesy import LocalFrame
from sim_sensors.world.world import World

G = 9.80665
PLACE = LocalFrame(50.0, 8.0, 100.0)
EARTH = TurningEarth.from_frame(PLACE, G)
DRIVEN = 660.0  # s


def world(earth: str) -> World:
    return World(frame=PLACE, gravity_model=Gravity(earth=earth))


def measured(motion: Trajectory, earth: TurningEarth | None) -> tuple[FloatArray, FloatArray]:
    result = IdealImu(rate=100.0).start(1, 'a', earth=earth).measure(motion)
    return result.angular_velocity, result.linear_acceleration


Record = Callable[[str, object], None]


@pytest.mark.parametrize('latitude', [-30.0, 0.0, 50.0, 90.0])
def test_a_gyroscope_at_rest_measures_true_north(latitude: float, record_property: Record) -> None:
    """15.04 deg/h, of which cos(latitude) points north and sin(latitude) up."""
    earth = TurningEarth.from_frame(LocalFrame(latitude, 8.0, 0.0), G)
    heading = 0.7
    still = motion_of('standstill', duration=0.5, parameters={'heading': heading})
    rate, force = measured(still.at(np.arange(10) / 100.0), earth)
    per_hour = np.degrees(rate[-1]) * 3600.0
    assert np.linalg.norm(per_hour) == pytest.approx(15.041, abs=1e-3)
    north = 15.041 * math.cos(math.radians(latitude))
    # The body's x axis is turned by the heading from east, its y axis from north.
    assert per_hour[0] == pytest.approx(north * math.sin(heading), abs=1e-3)
    assert per_hour[1] == pytest.approx(north * math.cos(heading), abs=1e-3)
    assert per_hour[2] == pytest.approx(15.041 * math.sin(math.radians(latitude)), abs=1e-3)
    record_property('rate', abs(float(np.linalg.norm(per_hour)) / 15.041 - 1.0))
    np.testing.assert_allclose(force[-1], [0.0, 0.0, G], atol=1e-12)


def test_the_plumb_line_is_that_of_the_ellipsoid_and_gets_weaker_with_height() -> None:
    for point in ([5000.0, 0.0, 0.0], [0.0, 5000.0, 0.0], [0.0, 0.0, 2000.0]):
        place = np.array([point])
        latitude, longitude, altitude = PLACE.to_geodetic(place)
        up = PLACE.to_enu(latitude, longitude, altitude + 1.0)[0] - place[0]
        # From the gravity of the ellipsoid at the origin to that at the place.
        change = normal_gravity(latitude, altitude) - normal_gravity(50.0, 100.0)
        expected = up * (G + change) - [0.0, 0.0, G]
        np.testing.assert_allclose(-EARTH.gradient * place[0], expected, rtol=0.02, atol=8e-5)


def test_the_specific_force_of_eastward_and_northward_drives_includes_coriolis(
    record_property: Record,
) -> None:
    """The effect of Eötvös, 2 W v cos(latitude), and that of Coriolis, 2 W v sin(latitude)."""
    zeros, speed = np.zeros((1, 3)), 20.0
    for heading, axis in ((0.0, 2), (math.pi / 2, 1)):
        turn = rotations.from_heading(np.array([heading]))
        ahead = rotations.rotate(turn, np.array([[speed, 0.0, 0.0]]))
        motion = Trajectory(np.zeros(1), zeros, turn, ahead, zeros, zeros, zeros)
        _, force = measured(motion, EARTH)
        part = math.cos if axis == 2 else math.sin
        pull = 2.0 * EARTH_RATE * speed * part(math.radians(50.0))
        # A vehicle that drives straight north measures a force to the left against Coriolis.
        felt = (force[0, axis] - (G if axis == 2 else 0.0)) / (-pull if axis == 2 else pull)
        assert felt == pytest.approx(1.0, rel=1e-9)
        record_property('pull', abs(felt - 1.0))


def test_a_moving_lever_arm_adds_the_coriolis_acceleration_of_its_velocity() -> None:
    motion = FigureEight(duration=20.0, speed=3.0).at(np.linspace(0.0, 20.0, 50))
    arm = np.array([2.0, -1.0, 0.5])
    first, then = (
        EARTH.sensed_motion(motion.at_lever_arm(arm)),
        EARTH.sensed_motion(motion).at_lever_arm(arm),
    )
    np.testing.assert_allclose(first.acceleration, then.acceleration, atol=1e-5)
    # Against velocities of the body alone the difference is larger.
    arms = motion.at_lever_arm(arm)
    body = dataclasses.replace(arms, velocity=motion.velocity)
    assert np.abs(EARTH.sensed_motion(body).acceleration - then.acceleration).max() > 5e-5


def test_an_unaided_navigator_oscillates_with_the_schuler_period(record_property: Record) -> None:
    """2 pi sqrt(R / g): 84.4 minutes."""
    earth, x = np.stack([EARTH.rate, EARTH.gradient]), np.zeros(16)
    x[4], x[9] = 0.1, 1.0
    force = np.array([0.0, 0.0, G])
    F, work = np.zeros((15, 15)), np.zeros((12, 4))
    north = []
    for _ in range(5400):
        propagate_state(x, EARTH.rate, force, 1.0, G, earth, F, work)
        north.append(x[4])
    crossings = np.flatnonzero(np.diff(np.sign(north)) != 0)
    period = 2.0 * (crossings[1] - crossings[0]) / 60.0
    assert period == pytest.approx(84.4, abs=0.4)
    record_property('period', period)
    # On a flat Earth the navigator would keep its initial speed error.
    assert np.abs(x[:2]).max() < 200.0


def test_the_judge_removes_the_earth_rotation_that_the_simulation_added() -> None:
    drive = FigureEight(duration=60.0, speed=3.0, length=30.0, width=15.0)
    rate, force = measured(drive.at(np.arange(6001) / 100.0), EARTH)

    def end(earth: FloatArray) -> FloatArray:
        x = np.zeros(16)
        first = drive.at(np.zeros(1))
        x[:3], x[3:6], x[6:10] = first.position[0], first.velocity[0], first.orientation[0]
        F, work = np.zeros((15, 15)), np.zeros((12, 4))
        for k in range(6000):
            mean = 0.5 * (rate[k] + rate[k + 1]), 0.5 * (force[k] + force[k + 1])
            propagate_state(x, *mean, 0.01, G, earth, F, work)
        last = drive.at(np.array([60.0]))
        error = rotations.rotation_between(last.orientation, x[None, 6:10])[0]
        return np.concatenate([x[3:6] - last.velocity[0], error])

    flat, turning = (
        end(earth) for earth in (np.zeros((2, 3)), np.stack([EARTH.rate, EARTH.gradient]))
    )
    assert np.linalg.norm(flat[3:]) == pytest.approx(60.0 * EARTH_RATE, rel=0.3)
    assert np.linalg.norm(turning[3:]) < 0.02 * np.linalg.norm(flat[3:])
    assert np.linalg.norm(turning[:3]) < 0.1 * np.linalg.norm(flat[:3])


def test_only_earth_auto_depends_on_duration_and_gyroscope_grade() -> None:
    assert World().gravity_model.earth == 'auto'
    assert world('flat').turning_earth is None
    for earth in ('auto', 'rotating'):
        result = world(earth).turning_earth
        assert result.automatic == (earth == 'auto')
        np.testing.assert_array_equal(result.rate, EARTH.rate)


@pytest.mark.parametrize('minutes', [9.9, 10.1])
@pytest.mark.parametrize(
    ('name', 'tactical'),
    [('gnss_ins_sim_high', True), ('gnss_ins_sim_low', True), ('adis16448', False)],
)
def test_a_tactical_gyroscope_measures_the_earth_rotation_in_long_records(
    name: str, tactical: bool, minutes: float
) -> None:
    """By the angle that the Earth has turned; consumer grade and short records keep their bits."""
    still = motion_of('standstill', duration=60.0 * minutes)
    model = dataclasses.replace(load_imu(name), rate=1.0)

    def angle(earth: str) -> FloatArray:
        result = ImuModel.simulate(
            model, still, seed=1, run='1', **ImuModel.surroundings(world(earth))
        )
        return np.asarray(result.angular_velocity.sum(axis=0))

    if tactical and minutes > 10.0:
        turned = EARTH_RATE * (60.0 * minutes + 1.0)
        assert np.linalg.norm(angle('auto') - angle('flat')) == pytest.approx(turned, rel=0.01)
    else:
        np.testing.assert_array_equal(angle('auto'), angle('flat'))


def test_measure_all_and_simulate_apply_the_same_earth_rotation() -> None:
    still = motion_of('standstill', duration=DRIVEN)
    model = dataclasses.replace(load_imu('gnss_ins_sim_high'), rate=1.0)
    started = [model.start(1, '1', **ImuModel.surroundings(world('auto'))) for _ in range(2)]
    messages = started[0].simulate(still)
    _, measured = started[1].measure_all(still)
    np.testing.assert_array_equal(measured.angular_velocity, messages.angular_velocity)
    turned = np.linalg.norm(measured.angular_velocity.mean(axis=0))
    assert turned == pytest.approx(EARTH_RATE, rel=0.05)


def test_a_chain_declares_its_bias_deviation_at_the_end_of_the_record() -> None:
    per_hour = math.radians(1.0) / 3600.0
    chain = ImuChain.from_mapping(
        {'gyroscope': {'turn_on_std': 3 * per_hour, 'random_walk': 4 * per_hour / 30.0}}, 'test'
    )
    assert chain.gyroscope_bias(900.0) == pytest.approx(5.0 * per_hour)
    # White noise does not decide the grade.
    white = ImuChain.from_mapping({'gyroscope': {'noise_density': 1e-6}}, 'test')
    assert not simulates_rotation('auto', white.gyroscope_bias(3600.0), 3600.0)


def test_the_judge_subtracts_the_earth_rotation_under_the_rule_of_the_simulation() -> None:
    hour = np.array([0, 3600 * 10**9])
    tactical = InertialSettings(start=Start(gyroscope_bias_deviation=5e-6))
    assert tactical.turning_earth(PLACE, hour) is not None
    assert tactical.turning_earth(PLACE, hour // 60) is None
    assert InertialSettings().turning_earth(PLACE, hour) is None
    assert InertialSettings(earth='rotating').turning_earth(PLACE, hour // 60) is not None


@pytest.fixture(scope='module')
def unaided() -> dict[tuple[str, str], FloatArray]:
    """Errors of heading and velocity, rad and m/s, after 11 minutes with fixes in the first 2 s.

    The keys are the Earth of the twin and that of the judge; the gyroscope is of tactical grade.
    """
    line = {'heading': 0.7, 'speed': 5.0, 'rest_time': 3.0, 'ramp_time': 10.0}
    drive = motion_of('line', duration=DRIVEN, parameters=line)
    truth = {'/truth': truth_of(drive, rate=10.0)}
    recorded = Recording('drive', '', '', truth, {'truth': '/truth'})
    imu = ImuChain.from_mapping({'rate': 10.0, 'gyroscope': {'turn_on_std': 1e-9}}, 'test')
    both = Twin('tactical', dataclasses.replace(load_gps('baseline'), rate=1.0), imu)
    tactical_bias = {'gyroscope_bias_deviation': 1e-9, 'accelerometer_bias_deviation': 1e-9}
    quiet = {
        **{'gyroscope_noise': 1e-6, 'accelerometer_noise': 1e-4, 'output_frequency': 1.0},
        **{'gyroscope_bias_walk': 0.0, 'accelerometer_bias_walk': 0.0, 'longest_gap': 1.0},
    }
    result = {}
    for earth in ('auto', 'flat'):
        twin = TwinMaker(recorded, seed=1, origin=PLACE, world=world(earth)).make(both)
        twin = twin.with_messages('gps', twin.gps.take(slice(0, 3)))
        for judged in ('auto', 'flat'):
            settings = {**quiet, 'start': tactical_bias, 'earth': judged, 'gravity': G}
            judge = ErrorStateJudge('', (), InertialSettings.from_mapping(settings, 'test'))
            run = judge.judge(twin, start_heading=0.7)
            end = drive.at((run.stamp_ns[-1:] - START_NS) * 1e-9)
            turn = rotations.rotation_between(end.orientation, run.orientation[-1:])[0, 2]
            velocity = rotations.rotate(run.orientation[-1:], run.linear_velocity[-1:])
            result[earth, judged] = np.append(turn, velocity - end.velocity)
    return result


def test_earth_rotation_in_simulation_and_judge_cancels(
    unaided: dict[tuple[str, str], FloatArray],
) -> None:
    """To a thousandth of what it does on one side, by `auto` as without it."""
    for sides in (('auto', 'auto'), ('flat', 'flat')):
        assert abs(unaided[sides][0]) < 1e-3 * unaided['auto', 'flat'][0]
        assert np.linalg.norm(unaided[sides][1:3]) < 1e-3 * unaided['auto', 'flat'][1]


def test_earth_rotation_only_in_the_simulation_causes_heading_and_velocity_errors(
    unaided: dict[tuple[str, str], FloatArray], record_property: Record
) -> None:
    """Heading by W sin(latitude) t. The level tilts by W cos(latitude) t, which gravity turns into
    a velocity of its second integral; a judge with a curved Earth swings as Schuler's pendulum.
    """
    turn = EARTH.rate[2] * DRIVEN
    swing = math.sqrt(G / 6.38e6)
    falls = 0.5 * G * EARTH.rate[1] * DRIVEN**2
    swings = G * EARTH.rate[1] * (1.0 - math.cos(swing * DRIVEN)) / swing**2
    for sides, sign, speed in ((('auto', 'flat'), 1.0, falls), (('flat', 'auto'), -1.0, swings)):
        heading, east = unaided[sides][0] / (sign * turn), unaided[sides][1] / (sign * speed)
        assert heading == pytest.approx(1.0, abs=1e-3)
        # 1 m/s of 100 m/s is Coriolis acceleration; sines of the tilt are not linear.
        assert east == pytest.approx(1.0, abs=0.02)
        record_property('heading', heading)
        record_property('velocity', east)


def test_a_bias_fitted_at_rest_does_not_add_the_earth_rotation_twice() -> None:
    """The mean rate at rest contains the rate of the Earth, and so does the model fitted to it."""
    still = motion_of('standstill', duration=660.0, parameters={'heading': 0.7})
    biased = {'rate': 1.0, 'gyroscope': {'constant_bias': 5e-6}}
    consumer_imu = ImuChain.from_mapping(biased, 'test')
    surroundings = ImuModel.surroundings(world('auto'))

    def mean_rate(model: ImuChain) -> FloatArray:
        result = ImuModel.simulate(model, still, seed=1, run='1', **surroundings)
        return np.asarray(result.angular_velocity.mean(axis=0))

    recorded = mean_rate(consumer_imu)
    assert np.linalg.norm(recorded - 5e-6) == pytest.approx(EARTH_RATE, rel=1e-6)
    means = {f'gyroscope_{axis}': (mean, 0.0) for axis, mean in zip('xyz', recorded, strict=True)}
    fitted = chain_model({}, rate=1.0, biases=means)
    np.testing.assert_allclose(mean_rate(fitted), recorded, rtol=1e-12)
    # The rate of the Earth is counted twice if the flag is missing.
    silent = dataclasses.replace(fitted.gyroscope, earth_in_bias=False)
    twice = mean_rate(dataclasses.replace(fitted, gyroscope=silent))
    assert np.linalg.norm(twice - recorded) == pytest.approx(EARTH_RATE, rel=1e-6)
    with pytest.raises(SensorError, match='rate of the Earth'):
        fitted.start(1, '1', **ImuModel.surroundings(world('rotating')))
