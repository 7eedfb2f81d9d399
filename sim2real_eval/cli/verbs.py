# SPDX-License-Identifier: Apache-2.0
"""The verbs of the command: each is a module, of this package or of another one.

A verb's module has `HELP`, one line for the list of verbs; `run(options)`, which returns the exit
status; and, where it wants them, `add_arguments(parser)`, `DESCRIPTION` and `EPILOG`. It imports
what is heavy when it runs, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
from typing import Any, Protocol

from sim_sensors.core.registry import Registry


class Verb(Protocol):
    """What a verb's module has at least."""

    HELP: str

    def run(self, options: argparse.Namespace) -> int:
        """Run the verb; return the exit status."""


VERBS: Registry[Verb] = Registry(
    'sim2real_sensors.verbs',
    'a verb',
    lambda module: hasattr(module, 'HELP') and callable(getattr(module, 'run', None)),
    {
        name: f'sim2real_eval.cli.{name}'
        for name in (
            'demo', 'simulate', 'follow', 'judge', 'vepd', 'study', 'gate', 'report', 'compare',
            'reference', 'allan', 'characterize', 'fit', 'scenario', 'attitude', 'wheels',
            'world', 'models',
        )
    },
    needs='HELP and run(options)',
)  # fmt: skip
"""The verbs by name, in the order of `sim2real --help`."""


def add_verb(parsers: Any, name: str, verb: Verb) -> None:
    """Add the parser of a verb to those of the command."""
    parser = parsers.add_parser(
        name,
        help=verb.HELP,
        description=getattr(verb, 'DESCRIPTION', verb.HELP),
        epilog=getattr(verb, 'EPILOG', None),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments = getattr(verb, 'add_arguments', None)
    if add_arguments is not None:
        add_arguments(parser)
    parser.set_defaults(run=verb.run)
