# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""VEPD of real bags: each is replayed beside simulated sensors, and both sides are judged.

The launch ends by itself, with exit status 1 if evaluation_node failed.

Examples
--------
ros2 launch sim2real_sensors evaluate.launch.py real:='bags/*' models:=ch_rw,ch_gauss out:=result
"""

from __future__ import annotations

import json
import shlex
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import OpaqueFunction, Shutdown
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration, TextSubstitution
from launch_ros.parameter_descriptions import ParameterValue

from sim2real_eval.ros_launch.arguments import declare
from sim2real_eval.ros_launch.nodes import describe, failure, node, typed_argument
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
    'block',
    'component',
)
NUMBERS = {'seed': int, 'repetitions': int, 'rate_factor': float}
SWITCHES = ('overwrite', 'match_rates', 'start_heading', 'off_ticks')


def generate_launch_description() -> LaunchDescription:
    return describe(
        [
            *declare('real', 'models', out=Parameter('result', '', 'Folder to write.')),
            *declare(imu=ComparedSensors.declarations()['imu'], judge='judge_node'),
            *declare('profile', judge_params_file='', navsat_params_file=''),
            *declare('case_file', 'overwrite', 'seed', 'repetitions'),
            # Empty: derived from the recordings.
            *declare(match_rates='', start_heading='', off_ticks=''),
            *declare('adapt', 'block', 'component', 'topics', 'label', 'rate_factor'),
            *declare('params_file', 'namespace', 'log_level'),
            OpaqueFunction(function=start_evaluation),
        ]
    )


def start_evaluation(context: LaunchContext) -> list:
    def split_argument(name: str) -> list[str]:
        return shlex.split(LaunchConfiguration(name).perform(context))

    lists = {name: split_argument(name) for name in ('real', 'topics')}
    parameters: dict[str, Any] = {
        **{name: typed_argument(name, str) for name in TEXTS},
        **{name: typed_argument(name, kind) for name, kind in NUMBERS.items()},
        # A parameter that is set is not derived from the recordings.
        **{name: typed_argument(name, bool) for name in SWITCHES if split_argument(name)},
        'params_file': typed_argument('judge_params_file', str),
        'scenario': typed_argument('label', str),
        # An empty list has no type. As JSON text, a folder named 12 stays a text.
        **{
            name: ParameterValue(TextSubstitution(text=json.dumps(texts)), value_type=list[str])
            for name, texts in lists.items()
            if texts
        },
    }
    file = LaunchConfiguration('params_file').perform(context)
    return [
        node(
            'evaluation_node',
            clock=None,
            parameters=[parameters, *([file] if file else [])],
            on_exit=on_end,
            # After an interrupt, the node writes the complete recordings.
            sigterm_timeout='30',
        )
    ]


def on_end(event: ProcessExited, context: LaunchContext) -> list:
    if event.returncode == 0 or context.is_shutdown:
        return [Shutdown(reason='the evaluation is done')]
    return [failure(f'evaluation_node ended with exit status {event.returncode}')]
