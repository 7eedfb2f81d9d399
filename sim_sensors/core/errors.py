# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Errors that the user can correct; all other exceptions are defects of this package."""

from __future__ import annotations

import difflib
import numbers
import re
from collections.abc import Iterable


class Sim2RealError(Exception):
    """Base class of all errors whose message is meant for the user.

    The message is one line that names the file, key or topic, the value and what is allowed. The
    command line prints it without a traceback and exits with status 2.
    """

    def __init__(self, message: str = '') -> None:
        super().__init__(one_line(message))


_LONGEST_WORD, _LONGEST_LINE = 300, 2000


def one_line(text: str) -> str:
    r"""Return a string as one printable line of limited length.

    Examples
    --------
    >>> one_line('imu.yaml: rate: \x1b[31m is\nnot allowed')
    'imu.yaml: rate: \\x1b[31m is not allowed'
    """
    words = [_shorten(word, _LONGEST_WORD) for word in text.split()]
    return _shorten(printable(' '.join(words)), _LONGEST_LINE)


def printable(text: str, keep: str = '') -> str:
    r"""Escape the characters of a string that are neither printable nor in `keep`.

    Not printable are control characters, such as those that colour or overwrite a terminal,
    characters that change the direction of writing, and bytes of file names that are not UTF-8.

    Examples
    --------
    >>> printable('rock\x1b[8m\u202efast')
    'rock\\x1b[8m\\u202efast'
    """
    if text.isprintable():
        return text
    return ''.join(
        character if character.isprintable() or character in keep else repr(character)[1:-1]
        for character in text
    )


def _shorten(text: str, longest: int) -> str:
    half = longest // 2
    return text if len(text) <= longest else f'{text[:half]} ... {text[-half:]}'


class ParameterError(Sim2RealError):
    """A parameter is unknown, of the wrong type or out of range.

    Parameters
    ----------
    where : str
        File, option or object that contains the parameter.
    key : str
        Dotted path of the parameter inside `where`; empty if `where` as a whole is wrong.
    problem : str
        Wrong value, and what is allowed.
    """

    def __init__(self, where: str, key: str, problem: str) -> None:
        self.where = where
        self.key = key
        self.problem = problem
        super().__init__(': '.join(part for part in (where, key, problem) if part))

    def __reduce__(self) -> tuple[type[ParameterError], tuple[str, str, str]]:
        # Worker processes pickle it.
        return type(self), (self.where, self.key, self.problem)


class UnknownNameError(ParameterError):
    """A name matches neither a shipped file nor a registered class.

    The caller that read the name from a file can add where it stands.
    """


class SensorError(Sim2RealError):
    """A sensor cannot perform the requested operation."""


class MotionError(Sim2RealError):
    """A trajectory or scenario cannot be built from the given values."""


class Remark(str):
    """Message whose numbers are stored separately, so that messages of many runs can be merged."""

    template: str
    numbers: dict[str, float]

    def __new__(cls, template: str, **numbers: float) -> Remark:
        """Fill in a template; its formats may end in a unit, as in `{limit:g s}`."""
        text = re.sub(r'\{(\w+:[^ {}]*) ([^{}]+)\}', r'{\1} \2', template)
        remark = super().__new__(cls, text.format(**numbers))
        remark.template, remark.numbers = template, numbers
        return remark

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, float]]:
        # A copy uses the template, because the sentence itself may contain braces.
        return (self.template,), self.numbers


def did_you_mean(name: object, allowed: Iterable[str]) -> str:
    """Return ` (did you mean X?)` with the nearest known name, or an empty string.

    Leading dashes do not count, because they would make all options similar.

    Examples
    --------
    >>> did_you_mean('gass', ['gauss', 'walk'])
    ' (did you mean gauss?)'
    >>> did_you_mean('--sedd', ['--seed']), did_you_mean('--scenarios', ['--version'])
    (' (did you mean --seed?)', '')
    """
    names = {known.lstrip('-'): known for known in allowed}
    near = difflib.get_close_matches(str(name).lstrip('-'), names, n=1)
    return f' (did you mean {names[near[0]]}?)' if near else ''


def not_among(problem: str, name: object, allowed: Iterable[str]) -> str:
    """Append the nearest and all allowed names to the description of a problem.

    Examples
    --------
    >>> not_among('unknown key', 'rat', ['rate', 'seed'])
    'unknown key (did you mean rate?); must be one of rate, seed'
    >>> not_among('unknown parameter', 'gain', [])
    'unknown parameter; there are none'
    """
    allowed = list(allowed)
    if not allowed:
        return f'{problem}; there are none'
    return f'{problem}{did_you_mean(name, allowed)}; must be one of {", ".join(allowed)}'


def check_whole_number(where: str, key: str, value: object, least: int) -> None:
    """Raise ParameterError unless an argument is an integer of at least `least`.

    Examples
    --------
    >>> check_whole_number('simulate', 'seed', -1, 0)
    Traceback (most recent call last):
    sim_sensors.core.errors.ParameterError: simulate: seed: -1 is not allowed; must be an int >= 0
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ParameterError(where, key, f'{value!r} is not allowed; must be an int >= {least}')
