# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real gate`: compare a result with limits, in the CI of a simulator."""

from __future__ import annotations

import argparse
import datetime
import math
from pathlib import Path
from typing import TYPE_CHECKING

from sim2real_eval.study.options import GateOptions
from sim_sensors.core.errors import ParameterError, Sim2RealError
from .arguments import add_shared
from .options import OptionSet
from .output import conclude, wrap_text

if TYPE_CHECKING:
    from sim2real_eval.study.gate_verdict import GateVerdict

DESCRIPTION = (
    'Compare the VEPD of a result of `sim2real vepd` or `sim2real study` with a '
    'limit, an earlier result, or both, and print a line per limit. See docs/howto/gate_in_ci.md.'
)
EPILOG = """\
exit status: 0 passed; 1 a limit is exceeded, a recording was left out or, with
--strict, a finding is decisive; 2 bad input or options

examples:
  sim2real gate result --max-ratio-to-null 3
  sim2real gate result --max-vepd 0.1 --strict
  sim2real gate result --baseline main/study.json --max-increase 0.01 --junit gate.xml
  sim2real gate study_b --models ch_rw,airsim --max-vepd 0.1 --by low --confidence 0.99
"""


_LIMITS = OptionSet(GateOptions)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        'result',
        metavar='RESULT',
        help='folder of a study (of vepd, study or demo) or of transfer, or a study.json',
    )
    limits = parser.add_argument_group('limits')
    _LIMITS.add(
        limits,
        'max_vepd',
        'max_ratio_to_null',
        'max_increase',
        'by',
        'confidence',
        'resamples',
        'strict',
    )
    limits.add_argument(
        '--max-transfer-loss',
        type=_share,
        metavar='X%',
        help='largest transfer loss allowed, such as 10%% or 0.1',
    )
    limits.add_argument(
        '--baseline',
        metavar='FILE',
        help='earlier result, folder or file; VEPD must not increase, and no part of it may be '
        'missing in the new result',
    )
    what = parser.add_argument_group('compared parts of the result (default: everything)')
    for option, meaning in (
        ('--models', 'models, separated by commas'),
        ('--scenarios', 'scenarios, separated by commas; all: pooled'),
        ('--judge-names', 'judges, separated by commas'),
    ):
        what.add_argument(option, action='append', default=[], metavar='LIST', help=meaning)
    output = parser.add_argument_group('output')
    output.add_argument(
        '--junit', metavar='FILE', help='JUnit XML file to write, with a case per model, scenario '
        'and judge; an existing file is replaced'
    )  # fmt: skip
    add_shared(output, 'json')
    add_shared(parser, 'seed')


def _share(text: str) -> float:
    """Return a number that may be given in per cent."""
    number, percent, rest = text.strip().partition('%')
    try:
        value = float(number) / (100.0 if percent else 1.0)
    except ValueError:
        value = math.nan
    if rest or not math.isfinite(value) or (value > 1.0 and not percent):
        raise argparse.ArgumentTypeError(f'{text!r} must be a share, such as 10% or 0.1')
    return value


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.common.results import fresh_files
    from sim2real_eval.study.gate import GatedResult, judge_result, split_names
    from sim2real_eval.study.junit import junit_xml

    result = GatedResult.read(options.result)
    if options.max_increase is not None and options.baseline is None:
        raise ParameterError('--max-increase', '', 'needs --baseline')
    if options.junit and Path(options.junit).is_dir():
        raise Sim2RealError(f'{options.junit}: is a folder; must be a file to write')
    baseline = None if options.baseline is None else GatedResult.read(options.baseline)
    verdict = judge_result(
        result,
        _LIMITS.make(
            options,
            models=split_names(options.models),
            scenarios=split_names(options.scenarios),
            judges=split_names(options.judge_names),
        ),
        baseline,
    )
    if options.junit:
        now = datetime.datetime.now(datetime.timezone.utc)
        target = Path(options.junit)
        with fresh_files(target.parent, (target.name,), overwrite=True) as folder:
            (folder / target.name).write_bytes(junit_xml(verdict, now))
    failed = [] if verdict.passed else [verdict]
    return conclude(options, verdict.to_mapping(), lambda: _print(verdict), failures=failed)


def _print(verdict: GateVerdict) -> None:
    for line in verdict.lines:
        text = line.lstrip()
        print(wrap_text(text, line[: len(line) - len(text)], '  '))
