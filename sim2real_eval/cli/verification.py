# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real study --verify`: whether a result can be had again from its code and inputs."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sim2real_eval.common.workers import Workers
from sim_sensors.core.errors import ParameterError, UnknownNameError
from .deprecations import current_words
from .output import print_json, progress_bar

if TYPE_CHECKING:
    from sim2real_eval.study.plan import StudyPlan

_ALLOWED = {'help', 'help_all', 'study', 'verify', 'jobs', 'json', 'quiet', 'verbose'}
"""Options that can be used with --verify."""


def verify(options: argparse.Namespace, workers: Workers) -> int:
    """Verify the study in the folder `options.verify`; return the exit status.

    The status is 1 if code, an input or a run differs; all are named.
    """
    from sim2real_eval.common.results import hold
    from sim2real_eval.study.outcome import StudyOutcome
    from sim2real_eval.study.verification import check_inputs, judge_again

    for action in options.parser._actions:
        if action.dest not in _ALLOWED and getattr(options, action.dest) != action.default:
            problem = 'cannot be used with --verify, which repeats the command of the study'
            raise ParameterError((action.option_strings or [action.dest])[0], '', problem)
    folder = Path(options.verify)
    with hold(folder), contextlib.ExitStack() as stack:
        outcome = StudyOutcome.read(folder)
        plan = _plan(outcome.record.get('command', ()), options)
        checks = check_inputs(outcome.record, plan)
        differing = [check.name for check in checks if check.problem]
        is_told = not (options.json or options.quiet)
        if is_told:
            print('\n'.join(map(str, checks)))
        if not differing:

            def begin(units: int) -> Callable[[], None]:
                if not options.quiet:
                    print(
                        f'judging {len(outcome.runs)} runs again, which takes as long as at first',
                        file=sys.stderr,
                    )
                return stack.enter_context(
                    progress_bar(units, 'judging again', quiet=options.quiet)
                )

            differing = judge_again(plan, folder, outcome, workers=workers, begin=begin)
            if is_told:
                print(
                    '\n'.join(f'differs: {name}' for name in differing), end='\n' * bool(differing)
                )
    if options.json:
        inputs = [check._asdict() for check in checks]
        print_json({'inputs': inputs, 'runs': len(outcome.runs), 'differing': differing})
    else:
        runs = f'{len(outcome.runs)} runs'
        result = (
            f'{len(differing)} differences' if differing else f'all {runs} are equal to the bit'
        )
        print(f'{folder}: {result}')
    return 1 if differing else 0


def _plan(command: Sequence[str], options: argparse.Namespace) -> StudyPlan:
    """Return the plan that the command of a study makes now, in the current folder."""
    from .parser import VERBS, build_parser

    words = list(command[1:])
    words[1:], _ = current_words(''.join(words[:1]), words[1:])
    try:
        make_plan = getattr(VERBS.get(''.join(words[:1])), 'plan_of', None)
    except UnknownNameError:
        make_plan = None
    if make_plan is None:
        raise ParameterError(
            '--verify', '', f'{options.verify} was made by {" ".join(command)!r}; must be of '
            '`sim2real study`, `vepd` or `demo`'
        )  # fmt: skip
    if words[0] == 'study':
        if options.study:
            words[1] = options.study
        elif words[1].endswith(('.yaml', '.yml')) and not Path(words[1]).is_file():
            raise ParameterError(
                '--verify', '', f'{words[1]} is not in this folder; give the study file too: '
                f'sim2real study PATH/{words[1]} --verify {options.verify}'
            )  # fmt: skip
    if '--out' not in words:
        # It was run from Python.
        words += ['--out', options.verify]
    plan: StudyPlan = make_plan(build_parser(words[0]).parse_args(words))
    return plan
