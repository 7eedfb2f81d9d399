# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Clock, timers and other options of a judged run, and the `case.yaml` of these."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sim2real_eval.recording.metadata import TransformFile
from sim_sensors.core.config_files import branch, check_keys, read_yaml_mapping
from sim_sensors.core.errors import ParameterError, not_among
from .configuration import FRONT_ENDS, FilterConfig, NavsatConfig, topic_name
from .release import Release
from .state import next_tick

CORRECTIONS = ('gravity', 'differential', 'unscented')
"""Deviations of robot_localization that can be corrected."""
_MAX_LATENCY_S = 1e6


@dataclasses.dataclass(frozen=True)
class Options:
    """Options from outside case.yaml; None or an empty mapping if not set.

    Attributes
    ----------
    unscented : bool or None
        Whether the filter is ukf_node; overrides case and parameter file.
    correct : frozenset of str or None
        Members of CORRECTIONS; replaces those of the case.
    latency_ns : mapping of str to int
        By topic; replaces the latencies of the case topic by topic.
    transforms : TransformFile or None
    front_end : str or None
    section : str or None
        Node whose parameters are read.
    release : Release or None
    topics : mapping of str to str
        Topic by input of the configuration, such as `odom0`; replaces the topics of the case input
        by input.
    """

    unscented: bool | None = None
    correct: frozenset[str] | None = None
    latency_ns: Mapping[str, int] = dataclasses.field(default_factory=dict)
    transforms: TransformFile | None = None
    front_end: str | None = None
    section: str | None = None
    release: Release | None = None
    topics: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def override(self, case: ReplayOptions) -> ReplayOptions:
        """Return the case with these options in place of its own."""
        changes = {
            name: value
            for name in ('unscented', 'correct', 'transforms', 'front_end', 'section', 'release')
            if (value := getattr(self, name)) is not None
        }
        changes['latency_ns'] = {**case.latency_ns, **self.latency_ns}
        changes['renamed'] = {**case.renamed, **self.topics}
        return dataclasses.replace(case, **changes)


def corrections(names: Iterable[Any], where: str, key: str) -> frozenset[str]:
    """Return the deviations to correct; ParameterError for a name that is not in CORRECTIONS."""
    return frozenset(_one_of(CORRECTIONS, name, where, key) for name in names)


def front_end(name: object, where: str, key: str) -> str:
    """Return the name of a front end; ParameterError for one that is not in FRONT_ENDS."""
    return _one_of(FRONT_ENDS, name, where, key)


def _one_of(allowed: tuple[str, ...], name: object, where: str, key: str) -> str:
    if not isinstance(name, str) or name not in allowed:
        raise ParameterError(where, key, not_among(f'{name!r} is not allowed', name, allowed))
    return name


def latency_ns(seconds: Mapping[Any, Any], where: str, key: str) -> dict[str, int]:
    """Return latencies in nanoseconds by topic without slashes at its ends, sorted by topic.

    ParameterError for an invalid topic, or a number that is not finite, negative or above 1e6 s.
    """
    latencies = {}
    for topic, value in seconds.items():
        if not isinstance(topic, str) or not topic_name(topic):
            raise ParameterError(where, key, f'{topic!r} is not allowed; must be a topic')
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not 0.0 <= value <= _MAX_LATENCY_S:
            allowed = f'a number from 0 to {_MAX_LATENCY_S:g} [s]'
            full = f'{key}.{topic}' if key else topic
            raise ParameterError(where, full, f'{value!r} is not allowed; must be {allowed}')
        latencies[topic_name(topic)] = round(value * 1e9)
    return dict(sorted(latencies.items()))


def _covariance_factors(factors: Mapping[Any, Any], where: str) -> dict[str, float]:
    result = {}
    for topic, value in factors.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not 0.0 < value < math.inf:
            allowed = 'a number above 0'
            problem = f'{value!r} is not allowed; must be {allowed}'
            raise ParameterError(where, f'covariance.{topic}', problem)
        result[topic_name(str(topic))] = float(value)
    return result


_DEVIATIONS = ('position', 'orientation', 'velocity', 'rate', 'acceleration')


def _deviations(tree: Mapping[str, Any], where: str) -> dict[str, dict[str, float]]:
    """Return standard deviations by topic and quantity, in SI units."""
    result = {}
    for topic in tree:
        stated = branch(tree, topic, where, f'deviation.{topic}')
        check_keys(stated, _DEVIATIONS, where, f'deviation.{topic}.')
        for quantity, value in stated.items():
            if (
                not isinstance(value, (int, float))
                or isinstance(value, bool)
                or not (0.0 < value < math.inf)
            ):
                problem = f'{value!r} is not allowed; must be a number above 0'
                raise ParameterError(where, f'deviation.{topic}.{quantity}', problem)
        result[topic_name(str(topic))] = {name: float(value) for name, value in stated.items()}
    return result


NAVSAT_PHASE_NS = 20_000_000
"""Default time from the start to the origin of navsat_transform's timer."""


@dataclasses.dataclass(frozen=True)
class Clock:
    """Start of the nodes and grids of their timers, nanoseconds; None for the default."""

    start_ns: int | None = None  # time at which the nodes start; default: the first arrival
    # Interval of clock messages: events happen only at start + k step. The default of 1 is a
    # continuous clock.
    step_ns: int = 1
    # The filter ticks at origin + n period, n >= 1; default: start.
    filter_origin_ns: int | None = None
    filter_period_ns: int | None = None  # default: 1 / frequency, cut to whole nanoseconds
    # Likewise for navsat_transform, whose real timer has an arbitrary phase. The default of start
    # + 20 ms keeps rounding from distributing fixes at the start over two ticks.
    navsat_origin_ns: int | None = None
    navsat_period_ns: int | None = None  # default: 1 / frequency of navsat_transform
    # Time that the nodes run after the last arrival; the default of 0.4 s is that of the reference
    # traces.
    run_on_ns: int = 400_000_000


# Keys of the fields of `Clock`, in the same order.
_CLOCK_KEYS = (
    'start_ns', 'period_ns', 'filter_timer_origin_ns', 'filter_timer_period_ns',
    'navsat_timer_origin_ns', 'navsat_timer_period_ns', 'run_on_ns',
)  # fmt: skip
_KEYS = (
    'node', 'inputs', 'clock', 'navsat', 'correct', 'latency', 'transforms', 'front_end',
    'section', 'topics', 'covariance', 'deviation', 'rl_version',
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class ReplayOptions:
    """Options of a run of the embedded judge on a recording.

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
        Additional latency of messages by topic.
    covariance : mapping of str to float
        Factor of the covariances of messages by topic.
    deviation : mapping of str to (mapping of str to float)
        Standard deviations that replace the covariances of messages, by topic and quantity:
        position (m), orientation (rad), velocity (m/s), rate (rad/s), acceleration (m/s^2).
    transforms : TransformFile or None
        Static transforms that replace or complete those of the recording.
    front_end : str
        Way to convert fixes into odometry/gps: navsat_transform or enu.
    section : str
        Name of the node whose parameters are read, in a file for several filters.
    renamed : mapping of str to str
        Other topic by input of the configuration, such as `odom0`.
    release : Release or None
        Release of robot_localization; None for that of the parameter file.
    """

    clock: Clock = Clock()
    topics: tuple[str, ...] = ()
    unscented: bool = False
    fix: str = ''
    heading: str = ''
    correct: frozenset[str] = frozenset()
    latency_ns: Mapping[str, int] = dataclasses.field(default_factory=dict)
    covariance: Mapping[str, float] = dataclasses.field(default_factory=dict)
    deviation: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)
    transforms: TransformFile | None = None
    front_end: str = FRONT_ENDS[0]
    section: str = ''
    renamed: Mapping[str, str] = dataclasses.field(default_factory=dict)
    release: Release | None = None

    @classmethod
    def from_file(cls, path: str | Path) -> ReplayOptions:
        """Read a `case.yaml`; paths in it are relative to its folder.

        Raises
        ------
        Sim2RealError
            For an unreadable file, an unknown key or a wrong value.
        """
        where = str(path)
        tree = read_yaml_mapping(Path(path))
        node = tree.get('node', 'ekf_node')
        if node not in ('ekf_node', 'ukf_node'):
            raise ParameterError(
                where, 'node', f'{node!r} is not allowed; must be ekf_node or ukf_node'
            )
        check_keys(tree, _KEYS, where)
        inputs = branch(tree, 'inputs', where)
        topics = [
            _topic(
                branch(inputs, file, where, f'inputs.{file}'), 'topic', where, f'inputs.{file}.'
            )
            for file in inputs
        ]
        navsat = branch(tree, 'navsat', where)
        check_keys(navsat, ('fix', 'imu'), where, 'navsat.')
        fix, heading = (
            _topic(navsat, key, where, 'navsat.') if navsat.get(key) else ''
            for key in ('fix', 'imu')
        )
        renamed = branch(tree, 'topics', where)
        transforms = _text(tree, 'transforms', where, 'a file')
        return cls(
            clock=_clock(branch(tree, 'clock', where), where),
            topics=tuple(topics),
            unscented=node == 'ukf_node',
            fix=fix,
            heading=heading,
            correct=corrections(_list(tree, 'correct', where), where, 'correct'),
            latency_ns=latency_ns(branch(tree, 'latency', where), where, 'latency'),
            covariance=_covariance_factors(branch(tree, 'covariance', where), where),
            deviation=_deviations(branch(tree, 'deviation', where), where),
            transforms=TransformFile.from_file(Path(path).parent / transforms)
            if transforms
            else None,
            front_end=front_end(tree.get('front_end') or FRONT_ENDS[0], where, 'front_end'),
            section=_text(tree, 'section', where, 'the name of a node'),
            renamed={str(name): _topic(renamed, name, where, 'topics.') for name in renamed},
            release=None
            if tree.get('rl_version') is None
            else Release.from_value(tree['rl_version'], where),
        )

    def settings(self) -> dict[str, Any]:
        """Return all options but the release as JSON values; equal cases give equal bytes.

        The release is stated by `JudgeSetup.settings`, because the parameter file may set it too.
        """
        names = [field.name for field in dataclasses.fields(self) if field.name != 'release']
        values = {name: getattr(self, name) for name in names}
        return {
            **values,
            'clock': dataclasses.asdict(self.clock),
            'topics': list(self.topics),
            'correct': sorted(self.correct),
            'renamed': dict(sorted(self.renamed.items())),
            'latency_ns': dict(sorted(self.latency_ns.items())),
            'covariance': dict(sorted(self.covariance.items())),
            'deviation': {
                topic: dict(sorted(stated.items()))
                for topic, stated in sorted(self.deviation.items())
            },
            'transforms': None if self.transforms is None else self.transforms.settings(),
        }


def _topic(tree: Mapping[str, Any], key: str, where: str, prefix: str) -> str:
    topic = tree.get(key)
    if not isinstance(topic, str) or not topic_name(topic):
        raise ParameterError(where, f'{prefix}{key}', f'{topic!r} is not allowed; must be a topic')
    return topic_name(topic)


def _text(tree: Mapping[str, Any], key: str, where: str, what: str) -> str:
    """Return a string that must not be empty if present, or an empty string if absent."""
    text = tree.get(key)
    if text is not None and (not isinstance(text, str) or not text):
        raise ParameterError(where, key, f'{text!r} is not allowed; must be {what}')
    return text or ''


def _list(tree: Mapping[str, Any], key: str, where: str) -> list[Any]:
    value = tree.get(key)
    if value is not None and not isinstance(value, list):
        raise ParameterError(where, key, f'{value!r} is not allowed; must be a list')
    return value or []


def _clock(tree: Mapping[str, Any], where: str) -> Clock:
    names = dict(
        zip(_CLOCK_KEYS, (field.name for field in dataclasses.fields(Clock)), strict=True)
    )
    times = {key: value for key, value in tree.items() if key != 'hz'}
    check_keys(times, _CLOCK_KEYS, where, 'clock.')
    for key, value in times.items():
        least = 1 if key.endswith('period_ns') else 0
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**62:
            problem = f'{value!r} is not allowed; must be an integer from {least} to 2^62 [ns]'
            raise ParameterError(where, f'clock.{key}', problem)
    return Clock(**{names[key]: value for key, value in times.items()})


class Grid:
    """Timer that is due at origin + n period, n >= 1.

    It ticks at the first clock step, start + k step, at or after a due time. A late tick does not
    shift the grid, and missed ticks are not repeated.
    """

    def __init__(self, origin_ns: int, period_ns: int, start_ns: int, step_ns: int) -> None:
        self.origin_ns, self.period_ns = origin_ns, period_ns
        self._start, self._step = start_ns, step_ns
        self._due = origin_ns + period_ns

    @property
    def next_ns(self) -> int:
        """Clock step of the next tick."""
        steps = max(-((self._start - self._due) // self._step), 0)
        return self._start + steps * self._step

    def take(self, now_ns: int) -> bool:
        """Return whether the timer ticks now; if so, wait for the next due time."""
        if now_ns < self._due:
            return False
        self._due = next_tick(self.origin_ns, self.period_ns, now_ns)
        return True


class Grids:
    """Timers of the filter and of navsat_transform, if it is used.

    The nodes start at `start_ns` unless the clock has a start. Ask for navsat_transform's tick
    after that of the filter.
    """

    def __init__(
        self,
        config: FilterConfig,
        navsat: NavsatConfig | None,
        start_ns: int,
        clock: Clock = Clock(),
    ) -> None:
        start = start_ns if clock.start_ns is None else clock.start_ns
        origin = start if clock.filter_origin_ns is None else clock.filter_origin_ns
        period = clock.filter_period_ns or int(1e9 / config.frequency)
        self.start_ns = start
        self.filter = Grid(origin, period, start, clock.step_ns)
        self.navsat: Grid | None = None
        if navsat is not None and navsat.has_timer:
            phase = clock.navsat_origin_ns
            origin = start + NAVSAT_PHASE_NS if phase is None else phase
            period = clock.navsat_period_ns or int(1e9 / navsat.frequency)
            self.navsat = Grid(origin, period, start, clock.step_ns)

    @property
    def next_ns(self) -> int:
        """Clock step of the next tick of any timer."""
        due = self.filter.next_ns
        return due if self.navsat is None else min(due, self.navsat.next_ns)

    def take_navsat(self, now_ns: int) -> bool:
        """Return whether navsat_transform ticks now."""
        return self.navsat is not None and self.navsat.take(now_ns)
