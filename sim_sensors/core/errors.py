# SPDX-License-Identifier: Apache-2.0
"""Errors that a user can act on; everything else is a defect of ours."""

from __future__ import annotations

import difflib
import numbers
import re
from collections.abc import Iterable


class Sim2RealError(Exception):
    """Root of all errors whose message is meant for the user.

    The message is one line that names the file, key or topic, the value found and what is allowed.
    The command line prints it without a traceback and exits with status 2.
    """

    def __init__(self, message: str = '') -> None:
        super().__init__(one_line(message))


_LONGEST_WORD, _LONGEST_LINE = 300, 2000


def one_line(text: str) -> str:
    r"""Return text as one printable line of bounded length, whatever was quoted in it.

    Examples
    --------
    >>> one_line('imu.yaml: rate: \x1b[31m is\nnot allowed')
    'imu.yaml: rate: \\x1b[31m is not allowed'
    """
    words = [_shortened(word, _LONGEST_WORD) for word in text.split()]
    line = ''.join(
        character if character.isprintable() else repr(character)[1:-1]
        for character in ' '.join(words)
    )
    return _shortened(line, _LONGEST_LINE)


def _shortened(text: str, longest: int) -> str:
    half = longest // 2
    return text if len(text) <= longest else f'{text[:half]} ... {text[-half:]}'


class ParameterError(Sim2RealError):
    """A parameter is unknown, of the wrong type or out of range.

    Parameters
    ----------
    where : str
        File, option or object that the parameter was given in.
    key : str
        Dotted path of the parameter inside `where`; empty when the whole of `where` is at fault.
    problem : str
        The value found and what is allowed.
    """

    def __init__(self, where: str, key: str, problem: str) -> None:
        self.where = where
        self.key = key
        self.problem = problem
        super().__init__(': '.join(part for part in (where, key, problem) if part))

    def __reduce__(self) -> tuple[type[ParameterError], tuple[str, str, str]]:
        # Processes send it to each other.
        return type(self), (self.where, self.key, self.problem)


class UnknownNameError(ParameterError):
    """Nothing is shipped under a name; who read the name from a file can say where it stands."""


class SensorError(Sim2RealError):
    """A sensor cannot do what it was asked to."""


class MotionError(Sim2RealError):
    """A trajectory or scenario cannot be built from what was given."""


class Remark(str):
    """A sentence for the user that keeps its numbers apart, to merge those of many runs."""

    template: str
    numbers: dict[str, float]

    def __new__(cls, template: str, **numbers: float) -> Remark:
        """Put numbers into a template whose formats may end in a unit: `{limit:g s}`."""
        text = re.sub(r'\{(\w+:[^ {}]*) ([^{}]+)\}', r'{\1} \2', template)
        remark = super().__new__(cls, text.format(**numbers))
        remark.template, remark.numbers = template, numbers
        return remark

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, float]]:
        # A copy is made of the template again: the sentence may have braces of its own.
        return (self.template,), self.numbers


def did_you_mean(name: object, allowed: Iterable[str]) -> str:
    """Return ` (did you mean X?)` with the name nearest to one that is unknown; else nothing.

    Examples
    --------
    >>> did_you_mean('gass', ['gauss', 'walk'])
    ' (did you mean gauss?)'
    """
    near = difflib.get_close_matches(str(name), list(allowed), n=1)
    return f' (did you mean {near[0]}?)' if near else ''


def not_among(problem: str, name: object, allowed: Iterable[str]) -> str:
    """Return the problem with the nearest name and all that are allowed.

    Examples
    --------
    >>> not_among('unknown key', 'rat', ['rate', 'seed'])
    'unknown key (did you mean rate?); must be one of rate, seed'
    """
    allowed = list(allowed)
    return f'{problem}{did_you_mean(name, allowed)}; must be one of {", ".join(allowed)}'


def whole_number(where: str, key: str, value: object, least: int) -> None:
    """Refuse an argument that is no integer, or below the least one, by a ParameterError.

    Examples
    --------
    >>> whole_number('simulate', 'seed', -1, 0)
    Traceback (most recent call last):
    sim_sensors.core.errors.ParameterError: simulate: seed: -1 is not allowed; must be an int >= 0
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ParameterError(where, key, f'{value!r} is not allowed; must be an int >= {least}')
