# SPDX-License-Identifier: Apache-2.0
"""The label of a truth that is none: an estimate made from the recording's own sensors."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

__all__ = ['ReferenceTruth']


@dataclasses.dataclass(frozen=True)
class ReferenceTruth:
    """How a reference trajectory was made; in recording.yaml under `truth`.

    Attributes
    ----------
    topic : str
        Of the odometry that is concerned.
    made_by : str
        Programs and their versions.
    made_from : tuple of str
        Topics of the sensors that it was made from.
    deviation : mapping of str to float
        Median standard deviations that its maker states, by quantity and unit.
    settings : mapping
        Parameters of its maker, as plain values.
    """

    topic: str
    made_by: str
    made_from: tuple[str, ...] = ()
    deviation: Mapping[str, float] = dataclasses.field(default_factory=dict)
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        sensors = ' and '.join(self.made_from) or "the recording's own sensors"
        return f'truth is a reference that {self.made_by} made from {sensors}'

    def to_mapping(self) -> dict[str, Any]:
        """Return the content of `truth` in recording.yaml."""
        return {
            'nature': 'reference',
            'topic': self.topic,
            'made_by': self.made_by,
            'made_from': list(self.made_from),
            'deviation': dict(self.deviation),
            'settings': dict(self.settings),
        }
