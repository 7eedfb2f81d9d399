# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""CPU of `sensors_node` with sensors of all kinds, beside relays that publish the same messages.

    python benchmarks/sensors_cost.py

One relay for each kind of sensor takes the odometry and publishes the messages of that kind at
their rates, without a model (sensor_relays.py). All run at once on the same odometry of 100 Hz, so
that other load falls on all of them.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import end_processes, parse, spread, table, write

RATE, SECONDS = 100.0, 20.0
READY_S = 180.0
ALL = 'imu,gps,mag,camera,wheels,vision'
_TICKS = os.sysconf('SC_CLK_TCK')


def cpu_seconds(process: int) -> float:
    text = Path(f'/proc/{process}/stat').read_text(encoding='ascii')
    fields = text.rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def commands(sensors: str) -> dict[str, list[str]]:
    parameters = [f'sensors:=[{sensors}]', 'world:=tag_ring']
    words = [word for parameter in parameters for word in ('-p', parameter)]
    node = ['-m', 'sim_sensors.ros.sensors_node', '--ros-args', *words]
    relay = str(Path(__file__).with_name('sensor_relays.py'))
    relays = {
        kind: [relay, kind, '--ros-args', '-r', '__ns:=/relay', '-r', f'{topic}:=/{topic}']
        for kind in sensors.split(',')
        for topic in ['ground_truth/odometry']
    }
    return {name: [sys.executable, *command] for name, command in {'node': node, **relays}.items()}


def run_once(sensors: str) -> dict[str, Any]:
    """Return the CPU shares of all processes and the numbers of messages on each topic."""
    from nav_msgs.msg import Odometry
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.node import Node
    from rclpy.qos import QoSProfile
    from rclpy.serialization import serialize_message
    from sensor_relays import KINDS

    from sim2real_eval.judge.external.graph import free_domain, private_context
    from sim_sensors.motion.motions import motion_of, truth_of
    from sim_sensors.ros.messages import messages_of

    motion = motion_of('circle', seed=0, run='', duration=SECONDS, parameters={})
    rows = [serialize_message(m) for m in messages_of(truth_of(motion, rate=RATE))]
    counts: dict[str, int] = {}
    with contextlib.ExitStack() as stack:
        domain = stack.enter_context(free_domain())
        context = stack.enter_context(private_context(domain))
        node = Node('driver', context=context)
        deep = QoSProfile(depth=1000)
        odometry = node.create_publisher(Odometry, 'ground_truth/odometry', deep)

        def count(topic: str) -> Callable[[bytes], None]:
            def add(data: bytes) -> None:
                counts[topic] = counts.get(topic, 0) + 1

            return add

        kinds = sensors.split(',')
        topics = [item for kind in kinds for item in KINDS[kind][1].items()]
        for topic, message in topics:
            for name in (topic, f'/relay/{topic}'):
                node.create_subscription(message, name, count(name), deep, raw=True)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        environment = {**os.environ, 'ROS_DOMAIN_ID': str(domain)}
        processes = {
            name: subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
            for name, command in commands(sensors).items()
        }
        try:
            end = time.monotonic() + READY_S
            while odometry.get_subscription_count() < 2 * len(kinds) or not all(
                node.count_publishers(name)
                for topic, _ in topics
                for name in (topic, f'/relay/{topic}')
            ):
                if time.monotonic() > end:
                    raise TimeoutError(f'not all nodes are ready after {READY_S:g} s')
                executor.spin_once(timeout_sec=0.1)
            time.sleep(3.0)
            before = {name: cpu_seconds(process.pid) for name, process in processes.items()}
            begin = time.monotonic()
            for k, row in enumerate(rows):
                while (left := begin + k / RATE - time.monotonic()) > 0.0:
                    executor.spin_once(timeout_sec=left)
                odometry.publish(row)
            end = time.monotonic() + 1.0
            while time.monotonic() < end:
                executor.spin_once(timeout_sec=0.1)
            cpu = {
                name: (cpu_seconds(process.pid) - before[name]) / SECONDS
                for name, process in processes.items()
            }
        finally:
            end_processes(processes.values())
            executor.shutdown()
            node.destroy_node()
    return {'cpu': cpu, 'messages': counts}


def main() -> None:
    options = parse((__doc__ or '').partition('\n')[0], repetitions=3)
    try:
        import rclpy  # noqa: F401
    except ImportError:
        print('sensors_cost: skipped, no ROS 2 (rclpy) here; pip install ".[ros]" gets it')
        return
    runs = [run_once(ALL) for _ in range(options.repetitions)]
    nodes = [run['cpu']['node'] for run in runs]
    relays = [sum(run['cpu'].values()) - run['cpu']['node'] for run in runs]
    ratios = [node / max(relay, 0.01) for node, relay in zip(nodes, relays, strict=True)]
    result = {
        'cpu_of_node': spread(nodes),
        'cpu_of_relays': spread(relays),
        'ratio': spread(ratios),
        'runs': runs,
    }
    table(
        ('odometry at 100 Hz', 'CPU', 'x relays'),
        [
            ('relays of all kinds, sum', f'{result["cpu_of_relays"]["median"]:.1%}', ''),
            (
                f'sensors_node: {ALL}',
                f'{result["cpu_of_node"]["median"]:.1%}',
                f'{result["ratio"]["median"]:.2f}',
            ),
        ],
    )
    write(options.out, 'sensors_cost', result)


if __name__ == '__main__':
    main()
