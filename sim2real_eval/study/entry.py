# SPDX-License-Identifier: Apache-2.0
"""One value of a file that people write, with its place: whoever reads it can refuse it well."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from sim_sensors.core.errors import ParameterError, UnknownNameError, did_you_mean, not_among
from sim_sensors.core.parameters import Parameter
from sim_sensors.core.registry import Registry, file_of


@dataclasses.dataclass(eq=False)
class Entry:
    """A value and where it is."""

    where: str  # file
    key: str  # path of the value in it, such as `recordings[0].path`; empty for the whole
    value: Any  # as YAML gives it

    def refuse(self, problem: str) -> NoReturn:
        """Raise ParameterError with the place."""
        raise ParameterError(self.where, self.key, problem)

    def refuse_value(self, allowed: str, known: Sequence[str] = ()) -> NoReturn:
        """Raise ParameterError with the place, the value, what is nearest and what is allowed."""
        text = ' '.join(repr(self.value).split())
        shown = text if len(text) <= 60 else f'{text[:57]}...'
        near = did_you_mean(self.value, known)
        self.refuse(f'{shown} is not allowed{near}; must be {allowed}')

    @contextlib.contextmanager
    def looked_up(self) -> Iterator[None]:
        """Give its place to what is wrong with the name that the value is."""
        try:
            yield
        except UnknownNameError as error:
            self.refuse(error.problem)

    def fields(self, known: Sequence[str], *, required: Sequence[str] = ()) -> dict[str, Entry]:
        """Return the values of a mapping by key; refuse unknown keys and missing ones."""
        if not isinstance(self.value, dict):
            self.refuse_value(f'a mapping with keys of {", ".join(known)}')
        for name in self.value:
            if name not in known:
                self.field(name).refuse(not_among('unknown key', name, known))
        for name in required:
            if name not in self.value:
                self.field(name).refuse('is missing')
        return {name: self.field(name) for name in self.value}

    def field(self, name: object) -> Entry:
        """Return the value of a key; None where there is none."""
        return Entry(
            self.where, f'{self.key}.{name}' if self.key else str(name), self.value.get(name)
        )

    def items(self, what: str) -> list[Entry]:
        """Return the entries of a list that is not empty."""
        if not isinstance(self.value, list) or not self.value:
            self.refuse_value(f'a list of one or more {what}')
        return [
            Entry(self.where, f'{self.key}[{number}]', value)
            for number, value in enumerate(self.value)
        ]

    def refuse_twice(self, labels: Sequence[str], what: str) -> None:
        """Refuse labels of which one is given twice, being the `what` of several things."""
        for label in labels:
            if labels.count(label) > 1:
                self.refuse(f'{label!r} is the {what}; must be of one')

    def class_name(self, registry: Registry[Any], folder: Path) -> str:
        """Return the name of a registered class; that of one in a file with its whole path."""
        name = self.text()
        kind = registry.get(name, where=self.where, key=self.key, folder=folder)
        path = file_of(kind)
        return name if path is None else f'{path}:{kind.__name__}'

    def text(self, choices: Sequence[str] = ()) -> str:
        """Return a text that is not empty."""
        value = self.value
        if not isinstance(value, str) or not value or (choices and value not in choices):
            self.refuse_value(f'one of {", ".join(choices)}' if choices else 'a text', choices)
        return value

    def label(self, *taken: str) -> str:
        """Return a text that may be a name of files and of rows of tables."""
        value = self.value
        # A scenario called 8 or a surface called 12 is a label all the same.
        text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        refused = ('all', *taken)
        if (
            not isinstance(text, str)
            or not text
            or text in refused
            or text[0] == '.'
            or not text.isprintable()
            or set(text) & set('/\\')
        ):
            self.refuse_value(
                f'a label: not {" or ".join(refused)}, without / and \\, not beginning with a dot'
            )
        return text

    def integer(self, minimum: int, maximum: int | None = None) -> int:
        """Return an integer from a minimum on."""
        declared = Parameter(minimum, '1', '', minimum=minimum, maximum=maximum)
        return int(declared.parse(self.value, self.where, self.key))

    def number(self, unit: str, *, minimum: float | None = None, above: bool = False) -> float:
        """Return a finite number."""
        declared = Parameter(0.0, unit, '', minimum=minimum, minimum_excluded=above)
        return float(declared.parse(self.value, self.where, self.key))
