# SPDX-License-Identifier: Apache-2.0
"""--judge error_state and --judge gtsam: judges with settings of their own."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sim_sensors.errors import ParameterError

if TYPE_CHECKING:
    from sim2real_eval.judge_setup import Judge

__all__ = ['INERTIAL', 'inertial_judge']

INERTIAL = ('error_state', 'gtsam')

_OF_NODES = {
    'navsat_config': '--navsat-config',
    'case': '--case',
    'filter_kind': '--filter',
    'section': '--section',
    'correct': '--correct',
    'latency': '--latency',
    'front_end': '--front-end',
    'filtered_gps': '--filtered-gps',
}
"""Options of robot_localization's nodes."""


def inertial_judge(options: argparse.Namespace) -> Judge:
    """Return the inertial judge that --judge names, with the settings that --config names.

    Raises
    ------
    Sim2RealError
        For an option that does not go with it, or wrong settings.
    """
    from sim2real_eval.judge.transform_file import TransformFile

    for dest, option in _OF_NODES.items():
        if getattr(options, dest, None):
            raise ParameterError(
                option,
                '',
                f'does not go with --judge {options.judge_kind}, only with the judges that are or '
                "repeat robot_localization's nodes",
            )
    transforms = options.transforms and TransformFile.from_file(options.transforms)
    if options.judge_kind == 'error_state':
        from sim2real_eval.inertial.error_state import ErrorStateJudge

        return ErrorStateJudge.load(options.config, transforms)
    from sim2real_eval.inertial.smoother import SmootherJudge

    return SmootherJudge.load(options.config, transforms)
