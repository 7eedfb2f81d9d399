# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Motions of a physics engine: a pendulum with a closed solution, roads, the car on springs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call
from scipy.signal import welch

from sim2real_eval.recording.reading import read_recording
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim_sensors.core.errors import MotionError
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu import imu
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.motions import motion_of
from sim_sensors.motion.paths import drive
from sim_sensors.motion.road_classes import ROUGHNESS
from sim_sensors.motion.roads import Road, SprungCar, drive_on_springs, road_heights

PENDULUM = """
<mujoco><option timestep="0.0005" integrator="RK4" gravity="0 0 -9.80665"/><worldbody>
<body name="arm"><joint name="pivot" type="hinge" axis="0 1 0"/>
<geom size="0.01" pos="0 0 -2" mass="1"/><site name="bob" pos="0 0 -2"/></body>
</worldbody><keyframe><key qpos="1.0"/></keyframe></mujoco>
"""


@pytest.fixture(scope='module', autouse=True)
def mujoco() -> None:
    pytest.importorskip('mujoco')


def test_a_pendulum_has_the_specific_force_of_mechanics(tmp_path: Path) -> None:
    """Along the arm g cos(a) + l w^2, across it nothing; the arm is 2 m and the mass a ball."""
    file = tmp_path / 'pendulum.xml'
    file.write_text(PENDULUM)
    swing = motion_of('mjcf', duration=3.0, parameters={'file': str(file), 'site': 'bob'})
    felt = imu.simulate(load_imu('ideal'), swing, seed=1, run='1')
    at = swing.at(felt.stamp_ns * 1e-9)
    angle = np.arctan2(-at.position[:, 0], -at.position[:, 2])
    rate = felt.angular_velocity[:, 1]
    along = 9.80665 * np.cos(angle) + 2.0 * rate**2
    # The ball itself turns: 2/5 r^2 of its inertia is 1e-5 of that of the pendulum.
    assert np.abs(felt.linear_acceleration[:, 2] - along).max() < 1e-3
    assert np.abs(felt.linear_acceleration[:, :2]).max() < 1e-3
    energy = 0.5 * (2.0 * rate) ** 2 - 2.0 * 9.80665 * np.cos(angle)
    assert np.ptp(energy) < 1e-3


def test_roads_have_the_spectrum_of_their_class() -> None:
    """512 lines of 20 fields: the mean of 10 frequencies is within 3 %, false alarm 1e-4."""
    power = []
    for seed in range(20):
        heights = road_heights('C', 512, 512, 0.05, np.random.default_rng(seed))
        frequency, density = welch(heights, fs=20.0, nperseg=256, axis=1)
        power.append(density.mean(axis=0))
    frequency = frequency[1:]
    expected = ROUGHNESS['C'] * (frequency / 0.1) ** -2 * 10.0 / np.hypot(frequency, 10.0)
    ratio = (np.mean(power, axis=0)[1:] / expected)[8:78].reshape(7, 10).mean(axis=1)
    assert np.abs(ratio - 1.0).max() < 0.03, 'scipy welch against ISO 8608, 3 %'
    with pytest.raises(MotionError, match="road 'E' is unknown"):
        road_heights('E', 8, 8, 0.1, np.random.default_rng(0))


def test_a_road_is_smooth_periodic_and_interpolates_its_heights() -> None:
    road = Road('D', np.random.default_rng(2), side=128, spacing=0.05)
    rng = np.random.default_rng(3)
    places = rng.uniform(-20.0, 20.0, (200, 2))
    step = 1e-6
    slope = road.at(places)[1]
    for axis in range(2):
        aside = step * np.eye(2)[axis]
        rise = road.at(places + aside)[0] - road.at(places - aside)[0]
        np.testing.assert_allclose(rise / (2.0 * step), slope[:, axis], atol=1e-8)
    cells = rng.integers(-300, 300, (50, 2))
    at_points = road.heights[cells[:, 1] % 128, cells[:, 0] % 128]
    np.testing.assert_allclose(road.at(cells * 0.05)[0], at_points, atol=1e-12)


@pytest.mark.parametrize('path', ['line', 'circle', 'half_sine'])
def test_on_a_plane_the_car_follows_the_kinematic_model(path: str) -> None:
    """It reaches the speed at which motor and resistance balance, and follows the same path.

    To 1 % of the speed, and of the 4 m of the path.
    """
    driven = drive_on_springs(path, seed=1, run='1', duration=8.0)
    rolled = drive(path, seed=1, run='1', duration=8.0)
    speed = np.linalg.norm(driven.at([8.0]).velocity)
    assert speed == pytest.approx(np.linalg.norm(rolled.velocity[-1]), rel=0.01)
    assert np.linalg.norm(driven.at([8.0]).position[0, :2] - rolled.position[-1, :2]) < 0.04


@pytest.mark.parametrize('road', ['smooth', 'C'])
def test_the_sprung_car_starts_at_rest(road: str) -> None:
    for run in '123':
        car = SprungCar(road=road)
        driven = drive_on_springs('line', seed=1, run=run, duration=0.1, car=car)
        start = driven.at([0.0])
        assert np.abs(start.velocity).max() < 0.01
        assert np.abs(driven.noise_free_imu.linear_acceleration[0] @ [0, 0, 1] - 9.8) < 0.1
    again = drive_on_springs('line', seed=1, run='3', duration=0.1, car=car)
    assert np.array_equal(driven.truth.position, again.truth.position)


@pytest.mark.parametrize(
    ('motion', 'settings', 'key'),
    [
        ('sprung_line', ['mass=0.5'], 'mass'),
        ('sprung_line', ['cg_to_rear=0'], 'cg_to_rear'),
        ('sprung_line', ['road=E'], 'road'),
        ('sprung_line', ['tyre_stiffness=1e5'], 'timestep'),
        ('mjcf', ['file=empty.xml', 'site=bob'], "site 'bob'"),
        ('mjcf', ['file=broken.xml', 'site=bob'], 'XML'),
        ('mjcf', ['file=pendulum.xml', 'site=bod'], "site 'bod'"),
    ],
)
def test_an_impossible_car_or_model_is_a_one_line_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], motion: str, settings: list[str], key: str
) -> None:
    models = {
        'empty': '<mujoco><worldbody/></mujoco>',
        'broken': '<mujoco><',
        'pendulum': PENDULUM,
    }
    for name, text in models.items():
        (tmp_path / f'{name}.xml').write_text(text)
    words = [f'--set={setting.replace("file=", f"file={tmp_path}/")}' for setting in settings]
    done = call(capsys, 'simulate', '--motion', motion, *words, '--out', tmp_path / 'out')
    assert (done.status, done.err.count('\n')) == (2, 1)
    assert key in done.err


def ball_file(folder: Path, gravity: str) -> Path:
    """A ball that lies on a plane from the start on."""
    file = folder / 'ball.xml'
    file.write_text(
        f'<mujoco><option{gravity}/><worldbody><geom type="plane" size="9 9 1"/>'
        '<body pos="0 0 2"><freejoint/><geom size="0.1"/><site name="ball"/></body>'
        '</worldbody></mujoco>'
    )
    return file


@pytest.mark.parametrize(
    ('gravity', 'expected'),
    [
        ('', 9.80665),
        (' gravity="0 0 -9.81"', 9.80665),
        (' gravity="0 0 -1.62"', 1.62),
        (' gravity="0 0 -3.71"', 3.71),
        (' gravity="0 0 0"', 0.0),
    ],
)
def test_the_gravity_of_a_file_is_kept_or_replaced(
    tmp_path: Path, gravity: str, expected: float
) -> None:
    stated = {'file': str(ball_file(tmp_path, gravity)), 'site': 'ball'}
    fall = motion_of('mjcf', duration=0.4, parameters=stated)
    assert fall.at([0.2]).velocity[0, 2] == pytest.approx(-0.2 * expected, rel=1e-2)
    replaced = motion_of('mjcf', duration=0.4, parameters={**stated, 'gravity': 5.0})
    assert replaced.at([0.2]).velocity[0, 2] == pytest.approx(-0.2 * 5.0, rel=1e-2)


def gravity_codes(output: str) -> set[str]:
    """Return the codes of the findings about gravity in the JSON of simulate."""
    codes = {note['code'] for run in json.loads(output) for note in run['notes']}
    return codes & {'twin.other_gravity', 'twin.centimetres'}


@pytest.mark.parametrize('gravity', ['0 0 9.81', '0 1 -9.81', '-9.81 0 0'])
def test_gravity_that_is_not_down_is_refused(tmp_path: Path, gravity: str) -> None:
    file = ball_file(tmp_path, f' gravity="{gravity}"')
    fall = motion_of('mjcf', duration=0.4, parameters={'file': str(file), 'site': 'ball'})
    with pytest.raises(MotionError, match='gravity'):
        fall.at([0.2])


@pytest.mark.parametrize(
    ('gravity', 'code', 'at_rest'),
    [
        ('0 0 -1.62', 'twin.other_gravity', 1.62),
        ('0 0 -981', 'twin.centimetres', 981.0),
        ('0 0 -9.81', None, 9.80665),
    ],
)
def test_a_recording_has_the_gravity_of_the_file_and_a_finding_about_another(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    gravity: str,
    code: str | None,
    at_rest: float,
) -> None:
    """The remedy of the finding, --set gravity=9.80665, leaves no finding."""
    file = ball_file(tmp_path, f' gravity="{gravity}"').rename(tmp_path / 'rest.xml')
    file.write_text(file.read_text().replace('0 0 2', '0 0 0.1'))
    words = ['--motion', 'mjcf', '--set', f'file={file}', '--set', 'site=ball', '--duration', 3]
    words += ['--gps', 'none', '--imu', 'ideal', '--storage', 'csv', '--json']
    done = call(capsys, 'simulate', *words, '--out', tmp_path / 'kept')
    assert done.status == 0, done.err
    assert gravity_codes(done.out) == ({code} if code else set())
    imu = read_recording(tmp_path / 'kept' / 'mjcf_1').imu
    assert imu is not None
    size = np.linalg.norm(imu.linear_acceleration[-20:], axis=1)
    np.testing.assert_allclose(size, at_rest, rtol=1e-3)
    words += ['--set', 'gravity=9.80665']
    done = call(capsys, 'simulate', *words, '--out', tmp_path / 'replaced')
    assert (done.status, gravity_codes(done.out)) == (0, set())


def test_a_recording_contains_the_specific_force_of_the_physics_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At the rate of the physics; the simulated IMU is on it, then and when simulated anew."""
    arguments = ('--motion', 'sprung_circle', '--set', 'road=C', '--duration', 3, '--imu', 'ideal')
    done = call(capsys, 'simulate', *arguments, '--out', tmp_path / 'out', '--seed', 4)
    assert done.status == 0, done.err
    recording = read_recording(tmp_path / 'out' / 'sprung_circle_1')
    ideal = recording.messages[recording.roles['ideal_imu']]
    assert len(ideal) == 1501
    at = np.isin(ideal.stamp_ns, recording.imu.stamp_ns)
    felt = ideal.linear_acceleration[at]
    np.testing.assert_allclose(recording.imu.linear_acceleration, felt, atol=1e-9)
    maker = TwinMaker(recording, seed=9)
    twin = maker.make(Twin('own', load_gps('ch_rw'), load_imu('ideal')))
    np.testing.assert_allclose(twin.imu.linear_acceleration, felt, atol=1e-9)
