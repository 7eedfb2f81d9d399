# SPDX-License-Identifier: Apache-2.0
"""Runs one after another, each recorded: a motion, sensors that measure it, a judge beside them.

A run has the labels of `sim2real simulate --motion SCENARIO`, so it draws the same random numbers,
and its bag is a recording for `sim2real judge` and `sim2real vepd --real`.

Examples
--------
ros2 launch sim2real_sensors experiment.launch.py scenario:=drive_line gps:=ch_rw runs:=5 out:=out
sim2real vepd --real out/ch_rw/* --models paper --out result
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
    Run,
    Runs,
    include,
    note_mounting,
    note_noise_free,
    trajectory_node,
    typed,
)
from sim2real_eval.ros_launch.sensors import miscount, profiles_file, published, space_of
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.seeding import run_label
from sim_sensors.gps.gps import GpsModel
from sim_sensors.imu.imu import ImuModel

TRUTH = 'ground_truth/odometry'
# What a recording is made of, to the last message: the default sensors of sensors.launch.py.
SENSORS = {kind.node: kind.topic for kind in (ImuModel, GpsModel)}
RECORDED = (TRUTH, *SENSORS.values())
# What the judge said meanwhile.
JUDGED = 'odometry/filtered'
RECORDER = '/rosbag2_recorder'


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription(
        [
            *declare('scenario', 'duration', 'factor', motion_params_file=motion_file()),
            *declare('runs', 'first_run', 'out', 'storage', 'delay', 'settle'),
            *declare('seed', 'imu', 'gps', 'sensors_params_file', noise_free_imu=''),
            *declare(judge=JUDGE_OR_NONE, profile='clean'),
            *declare(judge_params_file=profile_file(), navsat_params_file=profile_file(NAVSAT)),
            *declare('sensor_transforms', 'static_transforms_file'),
            *declare('namespace', 'log_level', use_sim_time='true'),
            check_packages(),
            note_mounting(),
            note_noise_free(),
            OpaqueFunction(function=experiment),
        ]
    )


def experiment(context: LaunchContext) -> list:
    def value(name: str) -> str:
        return LaunchConfiguration(name).perform(context)

    first, runs = int(value('first_run')), int(value('runs'))
    folder = Path(value('out'), Path(value('gps')).stem)
    # Of a class in a file, my_motion.py:MyMotion, the class.
    scenario = value('scenario').rpartition(':')[2].removeprefix('drive_')
    bags = {number: folder / f'{scenario}_{number}' for number in range(first, first + runs)}
    for bag in bags.values():
        if bag.exists():
            raise ParameterError('experiment', 'out', f'{bag} exists already; choose another')
    folder.mkdir(parents=True, exist_ok=True)
    return Runs(
        lambda number: run(bags[number], scenario, value('judge'), value('namespace')),
        bags,
        float(value('settle')),
    ).actions()


def run(bag: Path, scenario: str, judge: str, namespace: str) -> Run:
    """Return everything that makes one recording; it lasts as long as the motion."""
    space = space_of(namespace)
    topics = [space + topic for topic in RECORDED]
    said = [*SENSORS.values(), *([] if judge == NO_JUDGE else [JUDGED])]
    awaited = [
        *(f'{TRUTH}:{name}' for name in SENSORS),
        *(f'{topic}:{RECORDER}' for topic in (TRUTH, *said)),
        *said,
    ]
    motion = trajectory_node(
        {
            'run': bag.name,
            'awaited': ' '.join(awaited),
            # That the publisher knows its readers does not mean that these know it: on a busy
            # machine they find it seconds later.
            'delay': typed('delay', float),
        }
    )
    recorder = ExecuteProcess(
        cmd=[
            *('ros2', 'bag', 'record', '--output', str(bag)),
            *('--storage', LaunchConfiguration('storage'), '--use-sim-time'),
            *('--disable-keyboard-controls', '--custom-data', f'scenario={scenario}'),
            *('--qos-profile-overrides-path', str(profiles_file(topics))),
            *('--topics', *topics, space + JUDGED, '/tf_static'),
        ],
        output='screen',
        # What is still in its cache has to reach the disk.
        sigterm_timeout='30',
    )
    sensors = include(
        'sensors.launch.py',
        'sensors_params_file',
        run=run_label('recording', 1, bag.name),
        lossless='true',
    )
    judge_of_it = include(
        'judge.launch.py',
        'judge_params_file',
        # The sensors publish theirs.
        sensor_transforms='false',
        condition=IfCondition(NotEqualsSubstitution(LaunchConfiguration('judge'), NO_JUDGE)),
    )
    # The sensors hold back what more odometry could change, until they know that none is coming.
    last = {
        topic: ExecuteProcess(
            cmd=['ros2', 'service', 'call', f'{space}{name}/finish', 'std_srvs/srv/Trigger'],
            output='log',
        )
        for name, topic in SENSORS.items()
    }

    def check(wrote: Callable[[ExecuteProcess], str]) -> str:
        """Compare the bag with what was published."""
        expected = {}
        for topic, process in {TRUTH: motion, **last}.items():
            number = published(wrote(process))
            if number is None:
                return f'{bag}: nobody says how much there is of {topic}: {wrote(process).strip()}'
            expected[space + topic] = number
        problem = miscount(bag, expected)
        return f'{problem}; try a longer delay or a smaller factor' if problem else ''

    return Run(
        motion,
        # The recorder late: what is wrong with the others would leave it behind.
        [LogInfo(msg=f'run {bag}'), sensors, judge_of_it, recorder, motion],
        list(last.values()),
        recorder,
        check,
    )
