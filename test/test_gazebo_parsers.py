# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Gazebo's parser accepts the world and the robot; tests skip without libsdformat.

On Debian and Ubuntu: apt install libsdformat12-12 (or a later one) and liburdfdom-tools.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

# Calls the functions of `gz sdf --check` and `--print` in a process, which the library may end.
_CALL = """
import ctypes, sys
function = getattr(ctypes.CDLL(sys.argv[1]), sys.argv[2])
function.argtypes, function.restype = [ctypes.c_char_p], ctypes.c_int
sys.exit(function(sys.argv[3].encode()) != 0)
"""


def parser() -> str | None:
    """Return the name of the newest installed libsdformat."""
    for major in range(20, 11, -1):
        name = f'libsdformat{major}.so.{major}'
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return name
    return None


SDFORMAT = parser()
needs_sdformat = pytest.mark.skipif(SDFORMAT is None, reason='libsdformat is not installed')


def sdf(function: str, path: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, '-c', _CALL, str(SDFORMAT), function, str(path)]
    return subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope='module')
def world(repository: Path) -> Path:
    return repository / 'gazebo_ws_plugins' / 'worlds' / 'sim2real_field.sdf'


@pytest.fixture(scope='module')
def urdf(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    xacro = pytest.importorskip('xacro', reason='xacro is not installed')
    source = repository / 'gazebo_ws_plugins' / 'urdf' / 'differential_drive.urdf.xacro'
    path = tmp_path_factory.mktemp('robot') / 'robot.urdf'
    path.write_text(xacro.process_file(str(source)).toxml(), encoding='utf-8')
    return path


@needs_sdformat
def test_the_world_is_valid_without_warnings(world: Path) -> None:
    done = sdf('cmdCheck', world)
    assert (done.returncode, done.stderr) == (0, '')
    assert 'Valid' in done.stdout


@needs_sdformat
def test_gazebo_keeps_the_links_joints_and_truth_of_the_robot(urdf: Path) -> None:
    """Gazebo merges fixed joints but keeps the IMU link; the truth is that of base_link."""
    done = sdf('cmdPrint', urdf)
    assert (done.returncode, done.stderr) == (0, '')
    model = ElementTree.fromstring(done.stdout).find('model')
    links = {link.get('name'): link for link in model.findall('link')}
    # Model and first link are base_footprint, on the ground; base_link is a frame above it.
    assert set(links) == {'base_footprint', 'imu_link', 'left_wheel', 'right_wheel'}
    assert links['imu_link'].find("sensor[@type='imu']") is not None
    joints = {joint.get('name'): joint for joint in model.findall('joint')}
    for side in ('left', 'right'):
        assert joints[f'{side}_wheel_joint'].get('type') == 'revolute'
        limits = joints[f'{side}_wheel_joint'].find('axis/limit')
        assert float(limits.findtext('upper', 'inf')) > 1e6, 'a wheel that stops is none'
    odometry = model.find("plugin[@name='gz::sim::systems::OdometryPublisher']")
    # The plugin publishes the model pose, moved by the offset, as that of base_link.
    assert odometry.findtext('robot_base_frame') == 'base_link'
    base = ElementTree.parse(urdf).getroot().find("joint[@name='base_joint']/origin")
    assert odometry.findtext('xyz_offset', '').split() == base.get('xyz', '').split()


@pytest.mark.skipif(shutil.which('check_urdf') is None, reason='check_urdf is not installed')
def test_the_urdf_of_the_robot_is_a_tree_to_urdfdom(urdf: Path) -> None:
    done = subprocess.run(
        ['check_urdf', str(urdf)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    for link in ('base_footprint', 'base_link', 'caster', 'imu_link', 'left_wheel', 'right_wheel'):
        assert link in done.stdout
