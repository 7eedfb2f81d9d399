# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The process of a node loads no library that it does not use.

numba with llvmlite is 125 MB of a process, SciPy 25 MB and PROJ 13 MB; see
benchmarks/nodes_memory.py.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='no ROS')

from geometry_msgs.msg import TwistStamped
from ros_examples import Graph, graph_of_its_own
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, NavSatFix

from sim_sensors.core.shipped import config_path
from sim_sensors.motion.motions import motion_of, truth_of
from sim_sensors.ros.messages import messages_of

COMPILER = {'numba', 'llvmlite'}
NEVER = {
    *('bokeh', 'jinja2', 'matplotlib', 'mujoco', 'pandas', 'rich', 'rosbags'),
    *('scipy.signal', 'scipy.stats'),
    *('sim2real_eval.cli', 'sim2real_eval.report', 'sim2real_eval.study'),
}
OTHER_KINDS = {'sim_sensors.camera.camera', 'sim_sensors.vision', 'sim_sensors.wheels'}
TRUTH = truth_of(motion_of('circle', seed=0, run='', duration=5.0, parameters={}), rate=100.0)
PATH = 't,x,y\n0,0,0\n20,10,0\n40,10,10\n'


@pytest.fixture
def graph() -> Iterator[Graph]:
    with graph_of_its_own() as graph:
        yield graph


def imports(
    graph: Graph, package: str, name: str, parameters: list[str], done: Callable[[], bool]
) -> set[str]:
    """Run a node as a process until `done`; return the modules that it loaded."""
    call = f'import sys; from {package}.executables import {name}; sys.exit({name}())'
    words = [word for parameter in parameters for word in ('-p', parameter)]
    with tempfile.TemporaryFile('w+') as log:
        process = subprocess.Popen(
            [sys.executable, '-X', 'importtime', '-c', call, '--ros-args', *words], stderr=log
        )
        graph.processes.append(process)
        rows = list(messages_of(TRUTH))

        def works() -> bool:
            assert process.poll() is None, 'the node has ended'
            if graph.odometry.get_subscription_count() and rows:
                graph.odometry.publish(rows.pop(0))
            return done()

        graph.wait(works, f'the output of {name}')
        assert graph.stop(process) == 0
        log.seek(0)
        lines = [line for line in log if line.startswith('import time:')]
    return {line.rpartition('|')[2].strip() for line in lines}


def loaded(modules: set[str], names: set[str]) -> set[str]:
    """Return those of the names that are among the modules or contain one of them."""
    return {
        name
        for name in names
        if any(module == name or module.startswith(f'{name}.') for module in modules)
    }


@pytest.mark.parametrize(
    ('name', 'topics', 'parameters', 'unused'),
    [
        ('imu_node', {'imu/data': Imu}, [], {'scipy', 'pyproj', *OTHER_KINDS}),
        ('gps_node', {'gps/fix': NavSatFix}, [], {'scipy', *OTHER_KINDS}),
        (*('sensors_node', {'imu/data': Imu, 'gps/fix': NavSatFix}, []), {'scipy', *OTHER_KINDS}),
        (
            *('trajectory_node', {'/clock': Clock}, ['motion:=drive_line', 'clock:=true']),
            {'scipy', 'pyproj', *OTHER_KINDS},
        ),
        ('path_follower_node', {'cmd_vel': TwistStamped}, [], {'pyproj', *OTHER_KINDS}),
    ],
    ids=lambda value: value if isinstance(value, str) else '',
)
def test_a_node_loads_neither_the_compiler_nor_what_others_use(
    graph: Graph,
    tmp_path: Path,
    name: str,
    topics: dict[str, type],
    parameters: list[str],
    unused: set[str],
) -> None:
    if name == 'path_follower_node':
        path = tmp_path / 'path.csv'
        path.write_text(PATH, encoding='utf-8')
        parameters = [f'path:={path}']
    for topic, kind in topics.items():
        graph.listen(topic, kind)
    modules = imports(
        graph,
        'sim_sensors',
        name,
        parameters,
        lambda: all(len(graph.received[topic]) >= 5 for topic in topics),
    )
    assert 'rclpy' in modules
    assert loaded(modules, NEVER | COMPILER | unused) == set()


def test_judge_node_loads_the_compiler_and_no_reports(graph: Graph) -> None:
    """The filter is compiled; the nodes above load nothing of it."""
    parameters = [
        'assume_identity_frames:=true',
        f'navsat_params_file:={config_path("judge", "clean_navsat.yaml")}',
        'imu0:=/imu/data',
        f'imu0_config:={[False] * 11 + [True] + [False] * 3}'.replace(' ', '').lower(),
    ]
    modules = imports(
        graph,
        'sim2real_eval',
        'judge_node',
        parameters,
        lambda: bool(graph.node.count_publishers('/odometry/filtered')),
    )
    assert loaded(modules, NEVER) == set()
    assert loaded(modules, COMPILER) == COMPILER


def test_a_module_counts_with_what_is_in_it() -> None:
    assert loaded({'numba.core', 'scipyx'}, {'numba', 'scipy', 'rich'}) == {'numba'}
