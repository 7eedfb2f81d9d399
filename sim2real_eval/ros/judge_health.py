# SPDX-License-Identifier: Apache-2.0
"""What judge_node tells about its inputs, for /diagnostics and ~/status."""

from __future__ import annotations

import dataclasses
import math

import numpy.typing as npt
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from sim2real_eval.judge import LiveJudge
from sim_sensors.transformations import euler_from_quaternion

__all__ = ['JudgeHealth']


class JudgeHealth:
    """Counts what the judge itself does not see.

    Parameters
    ----------
    name : str
        Full name of the node.
    live : LiveJudge
    """

    def __init__(self, name: str, live: LiveJudge) -> None:
        self._name = name
        self._live = live
        self.received: dict[str, int] = {}
        self.published = 0
        self.resets = 0
        self._refused: dict[str, tuple[int, str]] = {}
        self._orientation: npt.ArrayLike | None = None

    def saw(self, subscription: str) -> None:
        """Count a message of a subscription, whatever becomes of it."""
        self.received[subscription] = self.received.get(subscription, 0) + 1

    def estimated(self, orientation: npt.ArrayLike) -> None:
        """Count a published estimate, and keep its quaternion x y z w."""
        self.published += 1
        self._orientation = orientation

    def refused(self, subscription: str, why: str) -> bool:
        """Count a message that could not be used; say whether the reason is news."""
        number, before = self._refused.get(subscription, (0, ''))
        self._refused[subscription] = (number + 1, why)
        return why != before

    def status(self) -> DiagnosticStatus:
        """Return counts and notes; WARN while there is anything to say or nothing to judge."""
        notes = [*(why for _, why in self._refused.values()), *self._live.notes()]
        level = DiagnosticStatus.WARN if notes else DiagnosticStatus.OK
        if not any(self.received.values()):
            level = DiagnosticStatus.WARN
            notes.insert(0, 'no message received yet')
        values: list[tuple[str, object]] = [('published', self.published)]
        if self._orientation is not None:
            heading = math.degrees(euler_from_quaternion(self._orientation)[2])
            values.append(('heading [deg]', f'{heading:.1f}'))
        values.append(('resets', self.resets))
        values += [(f'{name} received', count) for name, count in sorted(self.received.items())]
        values += [(f'{name} refused', n) for name, (n, _) in sorted(self._refused.items())]
        for part in self._live.parts:
            for count in ('older', 'unusable', 'fused', 'rejected'):
                values.append((f'{part.name} {count}', getattr(part, count)))
        return DiagnosticStatus(
            level=level,
            name=f'{self._name}: judge',
            message='; '.join(notes) or 'judging',
            hardware_id='',
            values=[KeyValue(key=key, value=str(value)) for key, value in values],
        )

    def summary(self) -> dict[str, object]:
        """Return counts and notes as plain values."""
        return {
            'received': self.received,
            'refused': {name: count for name, (count, _) in self._refused.items()},
            'published': self.published,
            'resets': self.resets,
            'parts': [dataclasses.asdict(part) for part in self._live.parts],
            'notes': self._live.notes(),
        }
