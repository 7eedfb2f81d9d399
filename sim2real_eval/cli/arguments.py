# SPDX-License-Identifier: Apache-2.0
"""Arguments that several verbs share, and how their texts become values."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sim_sensors.core.errors import ParameterError, did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

    from sim2real_eval.recording.reading import Source


_ROLES = ('imu', 'gps', 'truth', 'mag', 'camera_pose', 'features', 'camera_info')


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Add --seed."""
    parser.add_argument(
        '--seed',
        type=at_least(0, int),
        default=0,
        metavar='N',
        help='seed of all random draws (default 0); equal seeds give equal bytes',
    )


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add --jobs."""
    parser.add_argument(
        '--jobs',
        type=at_least(1, int),
        default=os.cpu_count() or 1,
        metavar='N',
        help='processes (default: one per core); the result does not depend on it',
    )


def add_json(parser: argparse._ActionsContainer) -> None:
    """Add --json."""
    parser.add_argument('--json', action='store_true', help='print the result as JSON')


def add_topics(parser: argparse._ActionsContainer) -> None:
    """Add --topic."""
    parser.add_argument(
        '--topic',
        action='append',
        default=[],
        metavar='ROLE=TOPIC',
        help='topic of the imu, gps, truth, mag, camera_pose or features, such as truth=/odom, '
        "or of an input of the judge's parameter file, such as odom0=/wheel/odometry; repeatable",
    )


def at_least(minimum: float, kind: type[int] | type[float], *, above: bool = False):  # type: ignore[no-untyped-def]
    """Return an argparse type: a finite number not below (or above) a bound."""

    def parse(text: str) -> int | float:
        try:
            value = kind(text)
        except ValueError:
            value = kind(minimum) - 1
        # An integer may be too long for a float, and is finite anyway.
        unbounded = isinstance(value, float) and not math.isfinite(value)
        if unbounded or value < minimum or (above and value == minimum):
            name = 'an integer' if kind is int else 'a number'
            bound = '>' if above else '>='
            raise argparse.ArgumentTypeError(f'{text!r} must be {name} {bound} {minimum:g}')
        return value

    return parse


def scenario_problem(text: str) -> str | None:
    """Say what is wrong with a scenario label, which is also a file name; None: nothing."""
    if text in ('', 'all') or text[0] == '.' or not text.isprintable() or set(text) & set('/\\'):
        return (
            f'{text!r} must not be all (the pooled row), empty, hold / or \\ or begin with a dot'
        )
    return None


def scenario_label(text: str) -> str:
    """Argparse type: a scenario label."""
    if problem := scenario_problem(text):
        raise argparse.ArgumentTypeError(problem)
    return text


def topic_roles(given: Sequence[str], *, inputs: bool = False) -> tuple[tuple[str, str], ...]:
    """Return the (role, topic) pairs of --topic; with `inputs` there may be others beside them.

    Raises
    ------
    ParameterError
        For a text that is no pair, or neither a role nor an input.
    """
    pairs = _topics(given)
    for name, _ in pairs:
        if name not in _ROLES and not inputs:
            raise ParameterError(
                '--topic', '', f"{name} is an input of robot_localization's filters; here only "
                f'{", ".join(f"{role}=" for role in _ROLES)} are allowed'
            )  # fmt: skip
    return tuple(pair for pair in pairs if pair[0] in _ROLES)


def input_topics(given: Sequence[str]) -> dict[str, str]:
    """Return the topics of --topic by input of the filter, such as odom0; errors as above."""
    return {name: topic for name, topic in _topics(given) if name not in _ROLES}


def _topics(given: Sequence[str]) -> list[tuple[str, str]]:
    pairs: dict[str, str] = {}
    for text in given:
        name, equals, topic = text.partition('=')
        known = name in _ROLES or re.fullmatch(r'(odom|pose|twist|imu)\d+', name)
        if not equals or not topic.strip('/') or not known:
            hint = '' if known else did_you_mean(name, _ROLES)
            raise ParameterError(
                '--topic',
                '',
                f'{text!r} is not allowed{hint}; must be imu=, gps=, truth= or an input such as '
                'odom0= and a topic',
            )
        if name in pairs:
            raise ParameterError('--topic', '', f'{name} is given twice; must be given once')
        pairs[name] = topic
    return list(pairs.items())


def sources(
    paths: Sequence[str],
    topics: Sequence[str],
    scenario: str | None,
    *,
    inputs: bool = False,
    option: str | None = None,
) -> list[Source]:
    """Return one source per path; where last folders are alike, the folder above goes before.

    A label depends on its own path and on which labels are alike, never on the order. Where long
    work follows, `option` names the option that the paths are of, and one that is not there is
    refused; else whoever reads it finds out, and may go on with the others.
    """
    from pathlib import Path

    from sim2real_eval.recording.reading import Source
    from sim2real_eval.recording.roles import run_name

    pairs = topic_roles(topics, inputs=inputs)
    seen: dict[Path, str] = {}
    for path in paths:
        whole = Path(os.path.abspath(path))  # noqa: PTH100 - links are other recordings
        if whole in seen:
            raise ParameterError(
                path, '', f'is given twice (as {seen[whole]}); must be given once'
            )
        if option is not None and not whole.exists():
            raise ParameterError(option, '', f'{path}: no such file or folder')
        seen[whole] = path
    labels = [run_name(Path(path)) for path in paths]
    return [
        Source(
            path,
            f'{_folder_above(Path(path), label)}_{label}' if labels.count(label) > 1 else None,
            pairs,
            scenario,
        )
        for path, label in zip(paths, labels, strict=True)
    ]


def _folder_above(path: Path, label: str) -> str:
    """Name of the folder above the part of a path that gave the label."""
    whole = path.resolve()
    named = next((one for one in (whole, *whole.parents) if one.stem == label), whole)
    return named.parent.name


# Options of files and of simulated runs that mean the same in every verb that has them.


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
