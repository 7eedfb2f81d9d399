# SPDX-License-Identifier: Apache-2.0
"""Clock and timers of a judged run, and the `case.yaml` that states them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sim2real_eval.judge.robot_localization.configuration import FRONT_ENDS, topic_name
from sim2real_eval.recording.frames import TransformFile
from sim_sensors.core.config_files import read_yaml
from sim_sensors.core.errors import ParameterError, not_among

# What may be asked of the judge beside the nodes' own parameters, in case.yaml or on a
# line.

CORRECTIONS = ('gravity', 'differential', 'unscented')
"""Deviations of robot_localization that can be corrected."""


_MOST_LATENCY_S = 1e6


@dataclasses.dataclass(frozen=True)
class Options:
    """What was said outside case.yaml; None, or an empty mapping, where nothing was.

    Attributes
    ----------
    unscented : bool or None
        Whether the filter is ukf_node, whatever case and parameter file say.
    correct : frozenset of str or None
        Of CORRECTIONS; replaces that of the case.
    latency_ns : mapping of str to int
        By topic; replaces that of the case topic by topic.
    transforms : TransformFile or None
    front_end : str or None
    section : str or None
        Node whose parameters count.
    topics : mapping of str to str
        By input of the configuration, such as `odom0`, the topic that it is to hear; replaces that
        of the case input by input.
    """

    unscented: bool | None = None
    correct: frozenset[str] | None = None
    latency_ns: Mapping[str, int] = dataclasses.field(default_factory=dict)
    transforms: TransformFile | None = None
    front_end: str | None = None
    section: str | None = None
    topics: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def over(self, case: ReplayOptions) -> ReplayOptions:
        """Return a case in which these options replace its own."""
        given = {
            name: value
            for name in ('unscented', 'correct', 'transforms', 'front_end', 'section')
            if (value := getattr(self, name)) is not None
        }
        given['latency_ns'] = {**case.latency_ns, **self.latency_ns}
        given['renamed'] = {**case.renamed, **self.topics}
        return dataclasses.replace(case, **given)


def corrections(names: Iterable[Any], where: str, key: str) -> frozenset[str]:
    """Return the deviations to correct; ParameterError for a name that is none of CORRECTIONS."""
    found = list(names)
    for name in found:
        if name not in CORRECTIONS:
            problem = not_among(f'{name!r} is not allowed', name, CORRECTIONS)
            raise ParameterError(where, key, problem)
    return frozenset(found)


def front_end(name: object, where: str, key: str) -> str:
    """Return the name of a front end; ParameterError for one that is none of FRONT_ENDS."""
    if not isinstance(name, str) or name not in FRONT_ENDS:
        problem = not_among(f'{name!r} is not allowed', name, FRONT_ENDS)
        raise ParameterError(where, key, problem)
    return name


def latency_ns(seconds: Mapping[Any, Any], where: str, key: str) -> dict[str, int]:
    """Return latencies in nanoseconds by topic without slashes at its ends, in order of topics.

    Raises
    ------
    ParameterError
        For what is no topic, a number that is not finite, negative or beyond 1e6 s.
    """
    found = {}
    for topic, value in seconds.items():
        if not isinstance(topic, str) or not topic_name(topic):
            raise ParameterError(where, key, f'{topic!r} is not allowed; must be a topic')
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not 0.0 <= value <= _MOST_LATENCY_S:
            raise ParameterError(
                where,
                f'{key}.{topic}' if key else topic,
                f'{value!r} is not allowed; must be a number from 0 to {_MOST_LATENCY_S:g} [s]',
            )
        found[topic_name(topic)] = round(value * 1e9)
    return dict(sorted(found.items()))


NAVSAT_PHASE_NS = 20_000_000
"""From the start to the origin of navsat_transform's timer, unless told otherwise."""


@dataclasses.dataclass(frozen=True)
class Clock:
    """When the nodes start and when their timers tick; nanoseconds, None for the default.

    Attributes
    ----------
    start_ns : int or None
        Time at which the nodes start; default: the first arrival.
    step_ns : int
        Distance of two clock messages: things happen only at start + k step. Default 1, a
        continuous clock.
    filter_origin_ns : int or None
        The filter ticks at origin + n period, n >= 1; default: start.
    filter_period_ns : int or None
        Default: 1 / frequency, cut to whole nanoseconds.
    navsat_origin_ns : int or None
        Likewise for navsat_transform, whose real timer has an arbitrary phase; default: start +
        20 ms, so that fixes which come with the start are not torn between two ticks by rounding.
    navsat_period_ns : int or None
        Default: 1 / frequency of navsat_transform.
    run_on_ns : int
        How long the nodes run on after the last arrival; the default of 0.4 s is that of the
        reference traces.
    """

    start_ns: int | None = None
    step_ns: int = 1
    filter_origin_ns: int | None = None
    filter_period_ns: int | None = None
    navsat_origin_ns: int | None = None
    navsat_period_ns: int | None = None
    run_on_ns: int = 400_000_000


_CLOCK_KEYS: Mapping[str, str] = {
    'start_ns': 'start_ns',
    'period_ns': 'step_ns',
    'filter_timer_origin_ns': 'filter_origin_ns',
    'filter_timer_period_ns': 'filter_period_ns',
    'navsat_timer_origin_ns': 'navsat_origin_ns',
    'navsat_timer_period_ns': 'navsat_period_ns',
    'run_on_ns': 'run_on_ns',
}


_KEYS = (
    'node', 'inputs', 'clock', 'navsat', 'correct', 'latency', 'transforms', 'front_end',
    'section', 'topics',
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class ReplayOptions:
    """How a recording is fed to the judge.

    Attributes
    ----------
    clock : Clock
    topics : tuple of str
        Topics in the order in which messages that arrive together are delivered; empty for the
        order of the configuration.
    unscented : bool
        Whether the node is ukf_node.
    fix, heading : str
        Topics that navsat_transform subscribes to; empty for the recording's gps and imu.
    correct : frozenset of str
        Deviations of robot_localization that are corrected: gravity, differential, unscented.
    latency_ns : mapping of str to int
        By topic, how much later than in the recording its messages arrive.
    transforms : TransformFile or None
        Static transforms that replace or complete those of the recording.
    front_end : str
        What turns fixes into odometry/gps: navsat_transform or enu.
    section : str
        Name of the node whose parameters count, in a file with those of several filters.
    renamed : mapping of str to str
        By input of the configuration, such as `odom0`, the topic that it hears instead.
    """

    clock: Clock = Clock()
    topics: tuple[str, ...] = ()
    unscented: bool = False
    fix: str = ''
    heading: str = ''
    correct: frozenset[str] = frozenset()
    latency_ns: Mapping[str, int] = dataclasses.field(default_factory=dict)
    transforms: TransformFile | None = None
    front_end: str = FRONT_ENDS[0]
    section: str = ''
    renamed: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @classmethod
    def from_file(cls, path: str | Path) -> ReplayOptions:
        """Read a `case.yaml`; a file that it names is relative to its folder.

        Raises
        ------
        Sim2RealError
            For an unreadable file, an unknown key or a wrong value.
        """
        where = str(path)
        tree = _mapping(read_yaml(Path(path)), where, '')
        node = tree.get('node', 'ekf_node')
        if node not in ('ekf_node', 'ukf_node'):
            raise ParameterError(
                where, 'node', f'{node!r} is not allowed; must be ekf_node or ukf_node'
            )
        for key in tree:
            if key not in _KEYS:
                raise ParameterError(where, str(key), not_among('unknown key', key, _KEYS))
        topics = []
        for file, entry in _mapping(tree.get('inputs') or {}, where, 'inputs').items():
            topic = _mapping(entry, where, f'inputs.{file}').get('topic')
            if not isinstance(topic, str):
                raise ParameterError(where, f'inputs.{file}.topic', f'{topic!r} must be a topic')
            topics.append(topic_name(topic))
        navsat = _mapping(tree.get('navsat') or {}, where, 'navsat')
        for key in navsat:
            if key not in ('fix', 'imu'):
                problem = not_among('unknown key', key, ('fix', 'imu'))
                raise ParameterError(where, f'navsat.{key}', problem)
        return cls(
            clock=_clock(_mapping(tree.get('clock') or {}, where, 'clock'), where),
            topics=tuple(topics),
            unscented=node == 'ukf_node',
            fix=_topic(navsat, 'fix', where),
            heading=_topic(navsat, 'imu', where),
            correct=corrections(_list(tree.get('correct'), where, 'correct'), where, 'correct'),
            latency_ns=latency_ns(
                _mapping(tree.get('latency') or {}, where, 'latency'), where, 'latency'
            ),
            transforms=_transforms(tree.get('transforms'), Path(path)),
            front_end=front_end(tree.get('front_end') or FRONT_ENDS[0], where, 'front_end'),
            section=_section(tree.get('section'), where),
            renamed=_renamed(_mapping(tree.get('topics') or {}, where, 'topics'), where),
        )

    def settings(self) -> dict[str, Any]:
        """Return everything as plain values, equal cases giving equal bytes."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {
            **values,
            'clock': dataclasses.asdict(self.clock),
            'topics': list(self.topics),
            'correct': sorted(self.correct),
            'renamed': dict(sorted(self.renamed.items())),
            'latency_ns': dict(sorted(self.latency_ns.items())),
            'transforms': None if self.transforms is None else self.transforms.settings(),
        }


def _topic(navsat: Mapping[str, Any], key: str, where: str) -> str:
    topic = navsat.get(key) or ''
    if not isinstance(topic, str):
        raise ParameterError(where, f'navsat.{key}', f'{topic!r} must be a topic or null')
    return topic_name(topic)


def _list(value: Any, where: str, key: str) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise ParameterError(where, key, f'{value!r} is not allowed; must be a list')
    return value or []


def _transforms(name: Any, case: Path) -> TransformFile | None:
    if name is None:
        return None
    if not isinstance(name, str) or not name:
        raise ParameterError(str(case), 'transforms', f'{name!r} is not allowed; must be a file')
    return TransformFile.from_file(case.parent / name)


def _renamed(topics: Mapping[Any, Any], where: str) -> dict[str, str]:
    for name, topic in topics.items():
        if not isinstance(topic, str) or not topic_name(topic):
            raise ParameterError(
                where, f'topics.{name}', f'{topic!r} is not allowed; must be a topic'
            )
    return {str(name): topic_name(topic) for name, topic in topics.items()}


def _section(name: Any, where: str) -> str:
    if name is not None and (not isinstance(name, str) or not name):
        raise ParameterError(
            where, 'section', f'{name!r} is not allowed; must be the name of a node'
        )
    return name or ''


def _mapping(value: Any, where: str, key: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ParameterError(where, key, f'{value!r} is not allowed; must be a mapping')
    return value


def _clock(tree: Mapping[str, Any], where: str) -> Clock:
    values: dict[str, int] = {}
    for key, value in tree.items():
        if key == 'hz':
            continue
        if key not in _CLOCK_KEYS:
            problem = not_among('unknown key', key, _CLOCK_KEYS)
            raise ParameterError(where, f'clock.{key}', problem)
        least = 1 if key.endswith('period_ns') else 0
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**62:
            raise ParameterError(
                where,
                f'clock.{key}',
                f'{value!r} is not allowed; must be an integer from {least} to 2^62 [ns]',
            )
        values[_CLOCK_KEYS[key]] = value
    return Clock(**values)
