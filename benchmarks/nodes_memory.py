# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Memory of each node after 20 s of work, beside an rclpy node that only subscribes.

    python benchmarks/nodes_memory.py --seconds 20

All nodes are in one graph: the car of the demo drives, and each of them measures, follows or
estimates. Resident memory counts what a process shares with others, such as the code of libraries;
unique memory is what its end would free.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import end_processes, table, write

ROOT = Path(__file__).resolve().parents[1]
JUDGE = ROOT / 'config' / 'judge'
PATH = Path(tempfile.gettempdir()) / 'nodes_memory_path.csv'
EMPTY = 'rclpy node, no model'
# Arguments after the name of the executable.
NODES: dict[str, tuple[str, ...]] = {
    'imu_node': (),
    'gps_node': (),
    'magnetometer_node': (),
    'camera_node': ('-p', 'world:=tag_ring'),
    'wheel_odometry_node': (),
    'vision_node': ('-p', 'world:=tag_ring'),
    # In a namespace, so that no two nodes have one name.
    'sensors_node': ('-r', '__ns:=/both', '-r', 'ground_truth/odometry:=/ground_truth/odometry'),
    'path_follower_node': ('-p', f'path:={PATH}'),
    'judge_node': (
        *('-p', 'assume_identity_frames:=true', '--params-file', str(JUDGE / 'clean.yaml')),
        *('-p', f'navsat_params_file:={JUDGE / "clean_navsat.yaml"}'),
    ),
    'trajectory_node': (
        *('-p', 'clock:=true', '-p', 'duration:=120.0'),
        *('-p', 'awaited:=imu/data gps/fix odometry/filtered'),
    ),
}
_READY_S = 240.0


def command(name: str) -> list[str]:
    if name == EMPTY:
        return [sys.executable, str(Path(__file__).with_name('relay.py'))]
    package = 'sim2real_eval' if name == 'judge_node' else 'sim_sensors'
    words = ['--ros-args', '-p', 'use_sim_time:=true', *NODES[name]]
    if name == 'trajectory_node':
        words[2] = 'use_sim_time:=false'
    code = f'import sys; from {package}.executables import {name}; sys.exit({name}())'
    return [sys.executable, '-c', code, *words]


def memory_mib(process: int) -> dict[str, float]:
    """Return resident and unique memory, MiB."""
    text = Path(f'/proc/{process}/smaps_rollup').read_text(encoding='ascii')
    kib = {
        words[0].rstrip(':'): int(words[1])
        for words in map(str.split, text.splitlines()[1:])
        if len(words) > 1
    }
    unique = kib['Private_Clean'] + kib['Private_Dirty']
    return {'resident': kib['Rss'] / 1024.0, 'unique': unique / 1024.0}


@contextlib.contextmanager
def running(names: list[str], domain: int) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    environment = {**os.environ, 'ROS_DOMAIN_ID': str(domain)}
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name in names:
            processes[name] = subprocess.Popen(command(name), env=environment)
        yield processes
    finally:
        end_processes(processes.values())


def measure(seconds: float, names: list[str]) -> dict[str, dict[str, float]]:
    import rclpy
    from nav_msgs.msg import Odometry

    from sim2real_eval.judge.external.graph import free_domain, private_context

    with free_domain() as domain, private_context(domain) as context:
        node = rclpy.create_node('driver', context=context)
        stamps: list[float] = []
        node.create_subscription(
            Odometry,
            'odometry/filtered' if 'judge_node' in names else 'ground_truth/odometry',
            lambda message: stamps.append(message.header.stamp.sec),
            10,
        )
        with running(names, domain) as processes:
            executor = rclpy.executors.SingleThreadedExecutor(context=context)
            executor.add_node(node)
            end = time.monotonic() + _READY_S
            while not stamps:
                if time.monotonic() > end:
                    raise TimeoutError(f'no odometry after {_READY_S:g} s')
                executor.spin_once(timeout_sec=1.0)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                executor.spin_once(timeout_sec=1.0)
            for name, process in processes.items():
                if process.poll() is not None:
                    raise RuntimeError(f'{name} has ended')
            memory = {name: memory_mib(process.pid) for name, process in processes.items()}
            executor.shutdown()
        node.destroy_node()
    return memory


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--seconds', type=float, default=20.0, help='default %(default)s')
    parser.add_argument('--out', type=Path, default=Path(__file__).parent / 'results')
    options = parser.parse_args()
    try:
        import rclpy  # noqa: F401
    except ImportError:
        print('nodes_memory: skipped, no ROS 2 (rclpy) here; pip install ".[ros]" gets it')
        return
    # A square that the robot of the follower never reaches the end of.
    rows = [f'{20 * k},{10 * (k in (1, 2))},{10 * (k in (2, 3))}' for k in range(4)]
    PATH.write_text('\n'.join(['t,x,y', *rows]), encoding='utf-8')
    memory = measure(options.seconds, [EMPTY, *NODES])
    table(
        ('after work', 'resident MiB', 'unique MiB'),
        [(name, f'{m["resident"]:.0f}', f'{m["unique"]:.0f}') for name, m in memory.items()],
    )
    write(options.out, 'nodes_memory', {'seconds': options.seconds, 'memory_mib': memory})


if __name__ == '__main__':
    main()
