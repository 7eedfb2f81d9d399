# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Spellings of version 1.0, which still work in 1.1 and print a hint."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from sim_sensors.core.errors import ParameterError

POSITIONAL = {
    ('vepd', '--real'): 'bags/*',
    ('compare', '--real'): 'bags/*',
    ('transfer', '--real'): 'bags/*',
    ('fit', '--real'): 'bags/*',
    ('study', '--real'): 'NAME bags/*',
    ('match', '--drives'): 'STANDSTILL bags/*',
    ('simulate', '--truth'): 'bags/*',
    ('wheels', '--truth'): 'bags/*',
}
"""Current arguments by verb and option, for options whose recordings are now positional."""

REPEATED = (('tune', '--test'), ('compare', '--sim'))
"""Options, after their verb, that took several paths and now take one path or pattern."""


def current_words(verb: str, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words after a verb in the current spelling, and the hints about old ones.

    Several words after an option of `REPEATED` raise ParameterError, because the later ones may be
    recordings, unless another old spelling beside it says that they are not.

    Examples
    --------
    >>> current_words('vepd', ['--real', 'a', 'b', '--out', 'x'])
    (['--out', 'x', 'a', 'b'], ['--real is now positional: sim2real vepd bags/* ...'])
    >>> current_words('compare', ['--real', 'a', '--sim', 'b', 'c'])[0]
    ['--sim', 'b', '--sim', 'c', 'a']
    """
    current: list[str] = []
    recordings: list[str] = []
    hints: list[str] = []
    place, end = 0, words.index('--') if '--' in words else len(words)
    while place < end:
        option, equals, value = words[place].partition('=')
        place += 1
        first = place
        if (verb, option) in POSITIONAL or (verb, option) in REPEATED:
            while place < end and not equals and not words[place].startswith('-'):
                place += 1
        values = [value] if equals else list(words[first:place])
        if values and (arguments := POSITIONAL.get((verb, option))):
            recordings += values
            hints.append(f'{option} is now positional: sim2real {verb} {arguments} ...')
        elif len(values) > 1:
            if not any((verb, word.partition('=')[0]) in POSITIONAL for word in words):
                repeated = ' '.join(f'{option} {path}' for path in values[:2])
                raise ParameterError(
                    option, '', f'takes one path or pattern, but {len(values)} words follow; give '
                    f'`{repeated}` for more, or recordings first: sim2real {verb} bags/* {option} '
                    "'others/*'"
                )  # fmt: skip
            current += [word for path in values for word in (option, path)]
            hints.append(f'{option} now takes one path or pattern and may be repeated')
        else:
            current += words[first - 1 : place]
    return [*current, *recordings, *words[end:]], list(dict.fromkeys(hints))


def place_files(verb: str, out: str, name: str) -> tuple[Path, str]:
    """Return the folder of --out and the name of the main file in it, which is `name`.

    In the old spelling, --out names the file: a path with the suffix of `name` that is no folder.
    """
    path = Path(out)
    if path.suffix.lower() != Path(name).suffix or path.is_dir():
        return path, name
    print_hint(
        f'--out is now a folder: sim2real {verb} --out {path.with_suffix("")} writes {name}'
    )
    return path.parent, path.name


def print_hint(hint: str) -> None:
    """Print a hint on standard error."""
    print(f'sim2real: {hint}', file=sys.stderr)
