# SPDX-License-Identifier: Apache-2.0
"""Values of a YAML file with their place, for precise error messages."""

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
    """A value of a YAML file and its place."""

    where: str  # file
    key: str  # path of the value, such as `recordings[0].path`; empty for the whole file
    value: Any

    def refuse(self, problem: str) -> NoReturn:
        """Raise a ParameterError that names the place."""
        raise ParameterError(self.where, self.key, problem)

    def refuse_value(self, allowed: str, known_names: Sequence[str] = ()) -> NoReturn:
        """Raise a ParameterError with place, value, nearest known name and what is allowed."""
        text = ' '.join(repr(self.value).split())
        short = text if len(text) <= 60 else f'{text[:57]}...'
        hint = did_you_mean(self.value, known_names)
        self.refuse(f'{short} is not allowed{hint}; must be {allowed}')

    @contextlib.contextmanager
    def looked_up(self) -> Iterator[None]:
        """Raise an UnknownNameError of the block as a ParameterError that names the place."""
        try:
            yield
        except UnknownNameError as error:
            self.refuse(error.problem)

    def fields(
        self, allowed_keys: Sequence[str], *, required: Sequence[str] = ()
    ) -> dict[str, Entry]:
        """Return the values of a mapping by key; refuse unknown and missing keys."""
        if not isinstance(self.value, dict):
            self.refuse_value(f'a mapping with keys of {", ".join(allowed_keys)}')
        for name in self.value:
            if name not in allowed_keys:
                self.field(name).refuse(not_among('unknown key', name, allowed_keys))
        for name in required:
            if name not in self.value:
                self.field(name).refuse('is missing')
        return {name: self.field(name) for name in self.value}

    def field(self, name: object) -> Entry:
        """Return the entry of a key; its value is None if the key is missing."""
        key = f'{self.key}.{name}' if self.key else str(name)
        return Entry(self.where, key, self.value.get(name))

    def items(self, content: str) -> list[Entry]:
        """Return the entries of a list that is not empty; `content` names them in errors."""
        if not isinstance(self.value, list) or not self.value:
            self.refuse_value(f'a list of one or more {content}')
        return [
            Entry(self.where, f'{self.key}[{number}]', value)
            for number, value in enumerate(self.value)
        ]

    def refuse_twice(self, labels: Sequence[str], role: str) -> None:
        """Refuse labels of which two are equal; `role` says what they name."""
        for label in labels:
            if labels.count(label) > 1:
                self.refuse(f'{label!r} is the {role}; must be of one')

    def class_name(self, registry: Registry[Any], folder: Path) -> str:
        """Return the name of a registered class, with its whole path if it is in a file."""
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

    def label(self, *reserved: str) -> str:
        """Return a text that can be a name of files and of rows of tables."""
        value = self.value
        # YAML reads a scenario called 8 as a number.
        text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        refused = ('all', *reserved)
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
        """Return an integer within bounds."""
        declared = Parameter(minimum, '1', '', minimum=minimum, maximum=maximum)
        return int(declared.parse(self.value, self.where, self.key))

    def number(self, unit: str, *, minimum: float | None = None, above: bool = False) -> float:
        """Return a finite number of at least `minimum`, or greater than it with `above`."""
        declared = Parameter(0.0, unit, '', minimum=minimum, minimum_excluded=above)
        return float(declared.parse(self.value, self.where, self.key))
