# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The robot's URDF is physically possible and equals the robot of sim_sensors; needs xacro."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from sim_sensors.motion.vehicles import DifferentialDrive, WheelRates

xacro = pytest.importorskip('xacro', reason='xacro is not installed')


def robot_of(repository: Path, **arguments: str) -> ElementTree.Element:
    path = repository / 'gazebo_ws_plugins' / 'urdf' / 'differential_drive.urdf.xacro'
    document = xacro.process_file(str(path), mappings=arguments)
    return ElementTree.fromstring(document.toxml())


@pytest.fixture(scope='module')
def robot(repository: Path) -> ElementTree.Element:
    return robot_of(repository)


def numbers(element: ElementTree.Element | None, name: str) -> np.ndarray:
    text = '0 0 0' if element is None else element.get(name, '0 0 0')
    return np.array([float(part) for part in text.split()])


def inertia_of(inertial: ElementTree.Element) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre and 3x3 inertia about it."""
    mass = inertial.find('mass')
    inertia = inertial.find('inertia')
    xx, xy, xz, yy, yz, zz = (
        float(inertia.get(f'i{axes}', 'nan')) for axes in ('xx', 'xy', 'xz', 'yy', 'yz', 'zz')
    )
    moments = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return float(mass.get('value', 'nan')), numbers(inertial.find('origin'), 'xyz'), moments


def test_the_links_of_the_urdf_form_one_tree(robot: ElementTree.Element) -> None:
    links = {link.get('name') for link in robot.findall('link')}
    children = [joint.find('child').get('link') for joint in robot.findall('joint')]
    assert sorted(children) == sorted(links - {'base_footprint'})
    assert {joint.find('parent').get('link') for joint in robot.findall('joint')} <= links


def test_inertia_of_every_body_is_physically_possible(robot: ElementTree.Element) -> None:
    """The 6x6 mass matrix is positive definite; no moment exceeds the sum of the other two."""
    bodies = [link.find('inertial') for link in robot.findall('link')]
    bodies = [body for body in bodies if body is not None]
    assert len(bodies) == 5
    for body in bodies:
        mass, centre, moments = inertia_of(body)
        x, y, z = centre
        skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        whole = np.block(
            [[moments - mass * skew @ skew, mass * skew], [mass * skew.T, mass * np.eye(3)]]
        )
        assert np.linalg.eigvalsh(whole).min() > 0.0
        a, b, c = np.sort(np.linalg.eigvalsh(moments))
        assert a + b >= c * (1.0 - 1e-9)


def test_moments_of_inertia_equal_those_of_the_shapes(robot: ElementTree.Element) -> None:
    """Monte Carlo over 200000 points of each shape: moments within 1 % (> 5 sigma)."""
    rng = np.random.default_rng(1)
    for link in robot.findall('link'):
        inertial, geometry = link.find('inertial'), link.find('visual/geometry')
        if inertial is None or geometry is None:
            continue
        shape = geometry[0]
        points = rng.uniform(-1.0, 1.0, (200_000, 3))
        if shape.tag == 'box':
            points *= 0.5 * numbers(shape, 'size')
        elif shape.tag == 'cylinder':
            points = points[np.hypot(points[:, 0], points[:, 1]) < 1.0]
            radius, length = float(shape.get('radius')), float(shape.get('length'))
            points *= [radius, radius, 0.5 * length]
        else:
            points = points[np.linalg.norm(points, axis=1) < 1.0] * float(shape.get('radius'))
        mass, _, moments = inertia_of(inertial)
        square = np.sum(points**2, axis=1)
        expected_moments = [
            mass * float(np.mean(square - points[:, axis] ** 2)) for axis in range(3)
        ]
        assert np.diag(moments) == pytest.approx(expected_moments, rel=0.01), link.get('name')


OURS = DifferentialDrive()
WIDE = DifferentialDrive(half_track=0.35, wheel_radius=0.12)


@pytest.mark.parametrize(
    ('ours', 'arguments'), [(OURS, {}), (WIDE, {'half_track': '0.35', 'wheel_radius': '0.12'})]
)
def test_the_urdf_has_the_dimensions_of_the_batch_robot(
    repository: Path, ours: DifferentialDrive, arguments: dict[str, str]
) -> None:
    """Wheels 2 L apart and of radius R, in links, joints and the drive plugin alike."""
    robot = robot_of(repository, **arguments)
    at = {}
    for side in ('left', 'right'):
        joint = robot.find(f"joint[@name='{side}_wheel_joint']")
        assert joint.get('type') == 'continuous'
        origin = joint.find('origin')
        at[side] = numbers(origin, 'xyz')
        turn = Rotation.from_euler('xyz', numbers(origin, 'rpy'))
        # A positive rate about the robot's +y rolls forward.
        assert turn.apply(numbers(joint.find('axis'), 'xyz')) == pytest.approx([0, 1, 0], abs=1e-9)
        wheel = robot.find(f"link[@name='{side}_wheel']/collision/geometry/cylinder")
        assert float(wheel.get('radius')) == ours.wheel_radius
    assert at['left'] - at['right'] == pytest.approx([0.0, 2.0 * ours.half_track, 0.0])
    plugin = robot.find("gazebo/plugin[@name='gz::sim::systems::DiffDrive']")
    assert float(plugin.findtext('wheel_separation')) == pytest.approx(2.0 * ours.half_track)
    assert float(plugin.findtext('wheel_radius')) == ours.wheel_radius
    assert plugin.findtext('left_joint') == 'left_wheel_joint'
    # Left wheel still: the robot turns about it, so the right one's path is 2 L times the turn.
    _, yaw_rate = ours.forward(WheelRates(0.0, 1.0))
    assert yaw_rate * (at['left'] - at['right'])[1] == pytest.approx(ours.wheel_radius)


def test_the_robot_stands_on_wheels_and_caster(robot: ElementTree.Element) -> None:
    """All three touch the ground of base_footprint, and its weight lies between them."""
    base = numbers(robot.find("joint[@name='base_joint']/origin"), 'xyz')[2]
    caster = numbers(robot.find("joint[@name='caster_joint']/origin"), 'xyz')
    radius = float(robot.find("link[@name='caster']/collision/geometry/sphere").get('radius'))
    assert base == DifferentialDrive().wheel_radius
    assert base + caster[2] - radius == pytest.approx(0.0, abs=1e-12)
    _, centre, _ = inertia_of(robot.find("link[@name='base_link']/inertial"))
    assert 0.0 < centre[0] < caster[0]


def test_the_imu_sensor_has_its_own_frame_and_no_noise(robot: ElementTree.Element) -> None:
    assert robot.find("joint[@name='imu_link_joint']/parent").get('link') == 'base_link'
    sensor = robot.find("gazebo[@reference='imu_link']/sensor")
    assert (sensor.get('type'), sensor.findtext('gz_frame_id')) == ('imu', 'imu_link')
    assert sensor.find('imu') is None, 'the noise is what sim2real adds'
