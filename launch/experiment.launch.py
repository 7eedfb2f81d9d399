# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Consecutive recorded runs of a motion, the sensors that measure it, and a judge.

A run has the labels of `sim2real simulate --motion SCENARIO`, so it draws the same random numbers.
Its bag is a recording for `sim2real judge` and `sim2real vepd`.

Examples
--------
ros2 launch sim2real_sensors experiment.launch.py scenario:=drive_line gps:=ch_rw runs:=5 out:=out
sim2real vepd out/ch_rw/* --models paper --out result
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.actions import ExecuteProcess, LogInfo, OpaqueFunction
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration, NotEqualsSubstitution

from sim2real_eval.ros_launch.arguments import (
    JUDGE_OR_NONE,
    NAVSAT,
    NO_JUDGE,
    check_packages,
    declare,
    motion_file,
    profile_file,
)
from sim2real_eval.ros_launch.nodes import (
    LaunchRun,
    LaunchRuns,
    absolute_namespace,
    describe,
    include,
    set_noise_free_imu,
    set_transforms_file,
    trajectory_node,
    typed_argument,
)
from sim2real_eval.ros_launch.sensors import (
    find_missing_messages,
    name_prefix,
    read_published_count,
    write_recorder_qos,
)
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.seeding import run_label
from sim_sensors.gps.gps import GpsModel
from sim_sensors.imu.imu import ImuModel

TRUTH = 'ground_truth/odometry'
# Sensors of a recording, without a lost message: the default sensors of sensors.launch.py.
SENSORS = {kind.node: kind.topic for kind in (ImuModel, GpsModel)}
RECORDED = (TRUTH, *SENSORS.values())
# Estimate of the judge.
ESTIMATE = 'odometry/filtered'
RECORDER = '/rosbag2_recorder'


def generate_launch_description() -> LaunchDescription:
    return describe(
        [
            *declare('scenario', 'duration', 'factor', motion_params_file=motion_file()),
            *declare('runs', 'first_run', 'out', 'storage', 'delay', 'settle'),
            *declare(
                'seed', 'imu', 'gps', 'sensors_params_file', 'faults_file', noise_free_imu=''
            ),
            *declare(judge=JUDGE_OR_NONE, profile='clean'),
            *declare(judge_params_file=profile_file(), navsat_params_file=profile_file(NAVSAT)),
            *declare('sensor_transforms', 'static_transforms_file'),
            *declare('namespace', 'frame_prefix', 'log_level', use_sim_time='true'),
            check_packages(),
            set_transforms_file(),
            set_noise_free_imu(),
            OpaqueFunction(function=start_experiment),
        ],
        include('sensors.launch.py', 'sensors_params_file'),
        include('judge.launch.py', 'judge_params_file'),
    )


def start_experiment(context: LaunchContext) -> list:
    def value(name: str) -> str:
        return LaunchConfiguration(name).perform(context)

    first, runs = int(value('first_run')), int(value('runs'))
    folder = Path(value('out'), Path(value('gps')).stem)
    # my_motion.py:MyMotion is labelled by the class.
    scenario = value('scenario').rpartition(':')[2].removeprefix('drive_')
    bags = {number: folder / f'{scenario}_{number}' for number in range(first, first + runs)}
    for bag in bags.values():
        if bag.exists():
            raise ParameterError('experiment', 'out', f'{bag} exists already; choose another')
    folder.mkdir(parents=True, exist_ok=True)
    namespace = absolute_namespace(context)
    tf_static = '/tf_static' if value('frame_prefix') else f'{name_prefix(namespace)}tf_static'
    return LaunchRuns(
        lambda number: describe_run(bags[number], scenario, value('judge'), namespace, tf_static),
        bags,
        float(value('settle')),
    ).actions()


def describe_run(
    bag: Path, scenario: str, judge: str, namespace: str, tf_static: str
) -> LaunchRun:
    """Return the processes of one recording, which ends with the motion."""
    prefix = name_prefix(namespace)
    topics = [prefix + topic for topic in RECORDED]
    outputs = [*SENSORS.values(), *([] if judge == NO_JUDGE else [ESTIMATE])]
    awaited = [
        *(f'{TRUTH}:{name}' for name in SENSORS),
        *(f'{topic}:{RECORDER}' for topic in (TRUTH, *outputs)),
        *outputs,
    ]
    motion = trajectory_node(
        {
            'run': bag.name,
            'awaited': ' '.join(awaited),
            # A publisher may know its subscribers seconds before these know it.
            'delay': typed_argument('delay', float),
        }
    )
    recorder = ExecuteProcess(
        cmd=[
            *('ros2', 'bag', 'record', '--output', str(bag)),
            *('--storage', LaunchConfiguration('storage'), '--use-sim-time'),
            *('--disable-keyboard-controls', '--custom-data', f'scenario={scenario}'),
            *('--qos-profile-overrides-path', str(write_recorder_qos(topics))),
            *('--topics', *topics, prefix + ESTIMATE, tf_static),
        ],
        output='screen',
        # Time to write the cache to the disk.
        sigterm_timeout='30',
    )
    sensors = include(
        'sensors.launch.py',
        'sensors_params_file',
        run=run_label('recording', 1, bag.name),
        lossless='true',
    )
    judge_launch = include(
        'judge.launch.py',
        'judge_params_file',
        # The sensors publish their transforms.
        sensor_transforms='false',
        condition=IfCondition(NotEqualsSubstitution(LaunchConfiguration('judge'), NO_JUDGE)),
    )
    # The sensors hold back their last measurements until they know that no odometry follows.
    finish_calls = {
        topic: ExecuteProcess(
            cmd=['ros2', 'service', 'call', f'{prefix}{name}/finish', 'std_srvs/srv/Trigger'],
            output='log',
        )
        for name, topic in SENSORS.items()
    }

    def check(output_of: Callable[[ExecuteProcess], str]) -> str:
        """Compare the bag with the published messages."""
        expected = {}
        for topic, process in {TRUTH: motion, **finish_calls}.items():
            output = output_of(process)
            number = read_published_count(output)
            if number is None:
                return f'{bag}: the number of messages on {topic} is unknown: {output.strip()}'
            expected[prefix + topic] = number
        problem = find_missing_messages(bag, expected)
        return f'{problem}; try a longer delay or a smaller factor' if problem else ''

    return LaunchRun(
        motion,
        # The recorder starts late: it would outlive a failure of the actions before it.
        [LogInfo(msg=f'run {bag}'), sensors, judge_launch, recorder, motion],
        list(finish_calls.values()),
        recorder,
        check,
    )
