# SPDX-License-Identifier: Apache-2.0
"""Options of files and of simulated runs that mean the same in every verb that has them."""

from __future__ import annotations

import argparse

from sim2real_eval.cli.arguments import at_least

__all__ = [
    'add_base_frame',
    'add_overwrite',
    'add_simulated_runs',
    'add_storage',
    'add_transforms',
]


def add_overwrite(parser: argparse._ActionsContainer) -> None:
    """Add --overwrite, for a verb whose --out is a folder DIR."""
    parser.add_argument('--overwrite', action='store_true', help='replace an older result in DIR')


def add_storage(parser: argparse._ActionsContainer) -> None:
    """Add --storage."""
    parser.add_argument(
        '--storage',
        choices=('mcap', 'sqlite3', 'csv'),
        default='mcap',
        help='form of the recordings (default mcap)',
    )


def add_transforms(parser: argparse._ActionsContainer) -> None:
    """Add --transforms; `TransformFile.from_file` reads what it names."""
    parser.add_argument(
        '--transforms',
        metavar='FILE',
        help='static transforms that replace or complete those of the recording: a URDF, or YAML '
        'such as "- {parent: base_link, child: imu_link, translation: [0.1, 0, 0.2], '
        'rotation_xyzw: [0, 0, 0, 1]}"',
    )


def add_base_frame(parser: argparse._ActionsContainer) -> None:
    """Add --base-frame."""
    parser.add_argument(
        '--base-frame',
        default='base_link',
        metavar='FRAME',
        help='body frame of the robot, which lever arms count from (default base_link)',
    )


def add_simulated_runs(parser: argparse._ActionsContainer, *, repetitions: int = 1) -> None:
    """Add --match-rates and --repetitions: how each recording is simulated."""
    parser.add_argument(
        '--match-rates', action='store_true', help='simulate at the rates of the real sensors'
    )
    parser.add_argument(
        '--repetitions',
        type=at_least(1, int),
        default=repetitions,
        metavar='N',
        help=f'simulated runs per recording and model (default {repetitions})',
    )
