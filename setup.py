# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Metadata of the package, for pip and for ament_python alike."""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import find_packages, setup

NAME = 'sim2real_sensors'
CLUSTER = 'distributed>=2024.1'
PANDAS = 'pandas>=2.1'
ULOG = 'pyulog>=1.0'
MUJOCO = 'mujoco>=3.3'
GTSAM = "gtsam>=4.3; python_version >= '3.11'"
# Resolved: colcon --symlink-install runs a link to this file in its build space.
HERE = Path(__file__).resolve().parent


def share(*folders: str) -> list[tuple[str, list[str]]]:
    """Pair every folder below `folders` that holds files with its place in share/."""
    pairs = []
    for top in folders:
        tree = [HERE / top, *(path for path in sorted((HERE / top).rglob('*')) if path.is_dir())]
        for folder in tree:
            files = sorted(path for path in folder.iterdir() if path.is_file())
            # Relative and with forward slashes: setuptools refuses anything else.
            names = [path.relative_to(HERE).as_posix() for path in files if path.suffix != '.pyc']
            if names:
                place = f'share/{NAME}/{folder.relative_to(HERE).as_posix()}'
                pairs.append((place, names))
    return pairs


# Executables of a colcon build are in lib/, where `ros2 run` looks; this puts the command on the
# path, too. pip, which makes a wheel, has it in bin/ already.
IS_WHEEL = any('wheel' in word for word in sys.argv)

setup(
    name=NAME,
    # A literal, and equal to that of package.xml: catkin_prepare_release of bloom sets both.
    version='1.1.0',
    description='Simulated GPS and IMU sensors, and a judge of how far they are from real ones',
    author='The sim2real_sensors contributors',
    license='Apache-2.0',
    # Those of package.xml, as a test holds.
    url='https://github.com/sim2real-sensors/sim2real_sensors',
    project_urls={
        'Bug Tracker': 'https://github.com/sim2real-sensors/sim2real_sensors/issues',
        'Source': 'https://github.com/sim2real-sensors/sim2real_sensors',
    },
    keywords=['ROS', 'robotics', 'simulation', 'IMU', 'GPS', 'sim2real'],
    classifiers=[
        'Development Status :: 5 - Production/Stable',
        'Intended Audience :: Science/Research',
        'Operating System :: POSIX :: Linux',
        'Programming Language :: Python :: 3 :: Only',
        *(f'Programming Language :: Python :: 3.{minor}' for minor in range(10, 14)),
        'Topic :: Scientific/Engineering',
        'Typing :: Typed',
    ],
    packages=find_packages(include=['sim_sensors*', 'sim2real_eval*']),
    package_data={
        'sim_sensors': ['py.typed', 'following/network.npz'],
        'sim2real_eval': ['py.typed', 'report/page/templates/*'],
    },
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{NAME}']),
        (f'share/{NAME}', ['package.xml']),
        *share('launch', 'config', 'gazebo_ws_plugins'),
        *([] if IS_WHEEL else [('bin', ['resource/sim2real'])]),
    ],
    zip_safe=False,
    python_requires='>=3.10',
    # Lower bounds: Ubuntu 24.04 (ROS 2 Jazzy) where its versions suffice; `make oldest` tests
    # them. matplotlib: legends outside the axes came with 3.7, Figure.get_supxlabel with 3.8.
    install_requires=[
        'Jinja2>=3.1.2',
        # What escapes text in the pages; Jinja2 brings it, too.
        'MarkupSafe>=2.1.5',
        'PyYAML>=6.0.1',
        # Completion in the shell.
        'argcomplete>=3.1.4',
        # Zstandard, a part of Python from 3.14 on.
        "backports.zstd>=1.0; python_version < '3.14'",
        # Interactive plots of the report page, whose script it ships: no network is asked.
        'bokeh>=3.4.0',
        # Locks of result folders and of compiled code.
        'filelock>=3.13.1',
        # Chunks of MCAP files.
        'lz4>=4.0.2',
        'matplotlib>=3.8.0',
        'numba>=0.58.1',
        'numpy>=1.26.4',
        # World Magnetic Model; without a rosdep key, so imported where it is asked for.
        'pygeomag>=1.1.0',
        'pyproj>=3.6.1',
        'rich>=13.7.1',
        # The first that uses backports.zstd, whose errors are caught.
        'rosbags>=0.11.7',
        'scipy>=1.11.4',
    ],
    extras_require={
        # Attitude filters inside a sensor, `orientation: mode: fusion`; 1.3 renamed its classes.
        'fusion': ['imufusion>=1.3'],
        # The nodes without a ROS workspace: community builds of ROS 2 Jazzy, with Fast DDS.
        'ros': [
            'ros-jazzy-diagnostic-msgs',
            'ros-jazzy-geometry-msgs',
            'ros-jazzy-nav-msgs',
            'ros-jazzy-rclpy',
            'ros-jazzy-rmw-fastrtps-cpp',
            'ros-jazzy-rosgraph-msgs',
            'ros-jazzy-sensor-msgs',
            'ros-jazzy-std-msgs',
            'ros-jazzy-std-srvs',
        ],
        # `sim2real study --cluster`: the runs of a study on several machines.
        'cluster': [CLUSTER],
        # VepdResult.to_dataframe.
        'pandas': [PANDAS],
        # The smoother (`--judge gtsam`, `sim2real reference`): 4.3 has lever arms of antennas, and
        # wheels from Python 3.11 on.
        'gtsam': [GTSAM],
        # Logs of PX4, `.ulg`.
        'ulog': [ULOG],
        # Motions of a physics engine: `sprung_line` ..., `mjcf`.
        'mujoco': [MUJOCO],
        # The site, `make docs`. MkDocs 2 cannot run Material.
        'docs': [
            # The IMU of the thesis in the gallery.
            'imufusion>=1.3',
            'mkdocs>=1.6,<2',
            # Shows the notebooks; it runs none.
            'mkdocs-jupyter>=0.26',
            'mkdocs-material>=9.6',
            'mkdocstrings[python]>=0.29',
        ],
        # Linters and type checkers get upper bounds too: a new release may find new faults in old
        # code, and a fresh clone of an old commit has to pass its own checks.
        'test': [
            'allantools>=2024.6',
            # axe-core, which finds what keeps people out of the report page.
            'axe-core-python>=0.1',
            'catkin-pkg>=1.0',
            'colcon-common-extensions>=0.3',
            CLUSTER,
            # Reads the changelog for bloom.
            'docutils>=0.20',
            # Opens what `sim2real judge --tum` writes.
            "evo>=1.30; python_version >= '3.11'",
            'filterpy>=1.4.5',
            GTSAM,
            'hypothesis>=6.100',
            'import-linter>=2.5,<3',
            'imufusion>=1.3',
            # Runs the notebooks of the documentation, with nbclient.
            'ipykernel>=6.29',
            # Opens bags as Foxglove does.
            'mcap>=1.1',
            MUJOCO,
            'mypy>=2.4,<2.5',
            'nbclient>=0.10',
            # An independent projection and pose, for the camera.
            'opencv-python-headless>=4.9',
            PANDAS,
            ULOG,
            # Known vulnerabilities of the libraries in constraints.txt.
            'pip-audit>=2.7,<3',
            # Prose of the pages.
            'proselint>=0.16,<0.17',
            'pytest>=8.0',
            # An attitude filter that an example judges with.
            'vqf>=2.1',
            'pytest-xdist>=3.5',
            # WPILib's swerve odometry, an independent answer to that of wheel_odometry.
            "robotpy-wpimath>=2024; sys_platform == 'linux' and platform_machine == 'x86_64'",
            'ruff>=0.17.5,<0.18',
            'scipy-stubs>=1.15',
            # An independent answer to what sim_sensors.core.rotations says.
            'transforms3d>=0.4.2',
            'types-PyYAML>=6.0.12',
            # Expands the URDF of the robot.
            'xacro>=2.0',
        ],
    },
    entry_points={
        'console_scripts': [
            'sim2real = sim2real_eval.cli.main:main',
            'camera_node = sim_sensors.executables:camera_node',
            'evaluation_node = sim2real_eval.executables:evaluation_node',
            'gps_node = sim_sensors.executables:gps_node',
            'imu_node = sim_sensors.executables:imu_node',
            'judge_node = sim2real_eval.executables:judge_node',
            'magnetometer_node = sim_sensors.executables:magnetometer_node',
            'path_follower_node = sim_sensors.executables:path_follower_node',
            'sensors_node = sim_sensors.executables:sensors_node',
            'trajectory_node = sim_sensors.executables:trajectory_node',
            'vision_node = sim_sensors.executables:vision_node',
            'wheel_odometry_node = sim_sensors.executables:wheel_odometry_node',
        ],
        'ament_copyright.license': ['apache2_spdx = sim_sensors.core.licence:APACHE_2'],
    },
)
