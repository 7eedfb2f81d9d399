# SPDX-License-Identifier: Apache-2.0
"""What judge_node tells about its inputs, for /diagnostics and ~/status."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path

import numpy.typing as npt
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node

from sim2real_eval.common.findings import Finding, by_severity, to_records
from sim2real_eval.judge.robot_localization.configuration import (
    FRONT_ENDS,
    FilterConfig,
    NavsatConfig,
    with_front_end,
)
from sim2real_eval.judge.robot_localization.live import LiveJudge
from sim2real_eval.judge.robot_localization.replay_options import corrections, front_end
from sim2real_eval.judge.robot_localization.ros_parameters import ParameterReader
from sim2real_eval.recording.findings import STAMP_REPEATED
from sim2real_eval.recording.metadata import read_transforms
from sim2real_eval.recording.recording import StaticTransform
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.rotations import euler_from_quaternion
from sim_sensors.ros.diagnostics import diagnostic, several_publishers
from sim_sensors.ros.parameters import given_parameters


class JudgeHealth:
    """Counts what the judge itself does not see, for the node of a full name."""

    def __init__(self, name: str, live: LiveJudge) -> None:
        self._name = name
        self._live = live
        self.received: dict[str, int] = {}
        self.published = 0
        self.resets = 0
        self._refused: dict[str, tuple[int, str]] = {}
        # By topic: the newest stamp, and how many had that of the message before.
        self._stamps: dict[str, int] = {}
        self._repeated: dict[str, int] = {}
        self._orientation: npt.ArrayLike | None = None

    def saw(self, subscription: str) -> None:
        """Count a message of a subscription, whatever becomes of it."""
        self.received[subscription] = self.received.get(subscription, 0) + 1

    def stamped(self, topic: str, stamp_ns: int) -> None:
        """Look at the stamp of a message of a topic."""
        if self._stamps.get(topic) == stamp_ns:
            self._repeated[topic] = self._repeated.get(topic, 0) + 1
        self._stamps[topic] = stamp_ns

    def estimated(self, orientation: npt.ArrayLike) -> None:
        """Count a published estimate, and keep its quaternion x y z w."""
        self.published += 1
        self._orientation = orientation

    def refused(self, subscription: str, why: str) -> bool:
        """Count a message that could not be used; say whether the reason is news."""
        number, before = self._refused.get(subscription, (0, ''))
        self._refused[subscription] = (number + 1, why)
        return why != before

    def _notes(self) -> list[Finding]:
        repeated = [STAMP_REPEATED(topic, count=n) for topic, n in self._repeated.items()]
        return [*self._live.notes(), *repeated]

    def status(self, publishers: Mapping[str, int]) -> DiagnosticStatus:
        """Return counts and notes; WARN while there is anything to say or nothing to judge.

        `publishers` is how many publish each topic that must have one.
        """
        notes = [
            *(note for topic, n in publishers.items() for note in several_publishers(topic, n)),
            *(why for _, why in self._refused.values()),
            *map(str, by_severity(self._notes())),
        ]
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
        message = '; '.join(notes) or 'judging'
        return diagnostic(f'{self._name}: judge', level, message, values)

    def summary(self) -> dict[str, object]:
        """Return counts and notes as plain values."""
        return {
            'received': self.received,
            'refused': {name: count for name, (count, _) in self._refused.items()},
            'published': self.published,
            'resets': self.resets,
            'parts': [dataclasses.asdict(part) for part in self._live.parts],
            'notes': to_records(self._notes()),
        }


_QUEUE_SIZE = 10


@dataclasses.dataclass(frozen=True, eq=False)
class JudgeParameters:
    """Parameters of one judge_node, read once when it starts."""

    config: FilterConfig  # those of ekf_node or, with `filter: ukf`, of ukf_node
    # From `navsat_params_file`; with `front_end: enu` those of the plain front end.
    navsat: NavsatConfig | None
    correct: frozenset[str]  # deviations of robot_localization that are corrected
    transforms: tuple[StaticTransform, ...]  # from `static_transforms_file`
    assume_identity: bool  # `assume_identity_frames`: frames that nothing connects coincide
    # By input: its topic as given, so that a leading slash keeps its meaning, and the depth of its
    # subscription.
    topics: Mapping[str, str]
    queue_sizes: Mapping[str, int]

    @classmethod
    def of(cls, node: Node) -> JudgeParameters:
        """Take the overrides that a node was started with and declared.

        An unknown or unsupported parameter, a wrong value, or a wrong file is an error.
        """
        values = given_parameters(node)
        own = ParameterReader(f'parameters of {node.get_fully_qualified_name()}', values)
        navsat_file = own.text('navsat_params_file', '')
        transforms_file = own.text('static_transforms_file', '')
        assume_identity = own.boolean('assume_identity_frames', False)
        # Sections of parameter files go by the name of the node.
        kind = own.text('filter', 'ukf' if node.get_name().startswith('ukf') else 'ekf')
        if kind not in ('ekf', 'ukf'):
            raise own.refuse('filter', kind, 'ekf or ukf')
        way = front_end(own.text('front_end', FRONT_ENDS[0]), own.where, 'front_end')
        correct = corrections(own.texts('correct'), own.where, 'correct')
        if 'unscented' in correct and kind != 'ukf':
            raise ParameterError(own.where, 'correct', 'unscented goes with ukf_node only')
        navsat = NavsatConfig.from_file(navsat_file) if navsat_file else None
        config = FilterConfig.from_parameters(own, unscented=kind == 'ukf')
        sizes = (values.get(f'{source.name}_queue_size') for source in config.sources)
        return cls(
            config=config,
            navsat=with_front_end(navsat, way),
            correct=correct,
            transforms=read_transforms(Path(transforms_file)) if transforms_file else (),
            assume_identity=assume_identity,
            topics={source.name: str(values[source.name]) for source in config.sources},
            queue_sizes={
                source.name: size if isinstance(size, int) and size > 0 else _QUEUE_SIZE
                for source, size in zip(config.sources, sizes, strict=True)
            },
        )
