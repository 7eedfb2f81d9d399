# SPDX-License-Identifier: Apache-2.0
"""Real bags in, VEPD out: each is replayed beside simulated sensors, and both sides are judged.

Ends by itself, with exit status 1 when evaluation_node failed.

Examples
--------
ros2 launch sim2real_sensors evaluate.launch.py real:='bags/*' models:=ch_rw,ch_gauss out:=result
"""

from __future__ import annotations

import glob
import json
import shlex
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import OpaqueFunction, Shutdown
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration, TextSubstitution
from launch_ros.parameter_descriptions import ParameterValue

from sim2real_eval.ros_launch.arguments import declare
from sim2real_eval.ros_launch.nodes import failure, node, typed
from sim2real_eval.study.options import ComparedSensors
from sim_sensors.core.parameters import Parameter

TEXTS = (
    'models',
    'imu',
    'judge',
    'profile',
    'navsat_params_file',
    'case_file',
    'out',
    'adapt',
    'component',
)
NUMBERS = {'seed': int, 'repetitions': int, 'rate_factor': float}
SWITCHES = ('overwrite', 'match_rates', 'start_heading', 'off_ticks')


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription(
        [
            *declare('real', 'models', out=Parameter('result', '', 'Folder to write.')),
            *declare(imu=ComparedSensors.declared()['imu'], judge='judge_node'),
            *declare('profile', judge_params_file='', navsat_params_file=''),
            *declare('case_file', 'overwrite', 'seed', 'repetitions'),
            # None: as the recordings demand.
            *declare(match_rates='', start_heading='', off_ticks=''),
            *declare('adapt', 'component', 'topics', 'label', 'rate_factor'),
            *declare('params_file', 'namespace', 'log_level'),
            OpaqueFunction(function=evaluation),
        ]
    )


def evaluation(context: LaunchContext) -> list:
    def words(name: str) -> list[str]:
        return shlex.split(LaunchConfiguration(name).perform(context))

    lists = {
        'real': [path for word in words('real') for path in matches(word)],
        'topics': words('topics'),
    }
    parameters: dict[str, Any] = {
        **{name: typed(name, str) for name in TEXTS},
        **{name: typed(name, kind) for name, kind in NUMBERS.items()},
        # What is given to the node does not follow from the recordings.
        **{name: typed(name, bool) for name in SWITCHES if words(name)},
        'params_file': typed('judge_params_file', str),
        'scenario': typed('label', str),
        # An empty list has no type; as a text, a folder called 12 stays one.
        **{
            name: ParameterValue(TextSubstitution(text=json.dumps(value)), value_type=list[str])
            for name, value in lists.items()
            if value
        },
    }
    file = LaunchConfiguration('params_file').perform(context)
    return [
        node(
            'evaluation_node',
            clock=None,
            parameters=[parameters, *([file] if file else [])],
            on_exit=ended,
            # When interrupted it writes what is complete.
            sigterm_timeout='30',
        )
    ]


def matches(pattern: str) -> list[str]:
    # One that matches nothing stays, so that the node names it. Path.glob takes no absolute ones.
    return sorted(glob.glob(pattern)) or [pattern]  # noqa: PTH207


def ended(event: ProcessExited, context: LaunchContext) -> list:
    if event.returncode == 0 or context.is_shutdown:
        return [Shutdown(reason='the evaluation is done')]
    return [failure(f'evaluation_node ended with exit status {event.returncode}')]
