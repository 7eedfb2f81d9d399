# SPDX-License-Identifier: Apache-2.0
"""Which topic of a recording feeds which input of the judge, in what order, and how late."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

import numpy as np

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.common.findings import Finding
from sim2real_eval.recording.recording import DEFAULT_TOPICS, IDEAL_ROLES, Recording
from sim2real_eval.recording.roles import roles_heard
from sim_sensors.core.errors import did_you_mean
from sim_sensors.core.measurements import FixArray, ImuArray, MessageArray, TwistArray
from .configuration import (
    NAVSAT_TOPIC,
    FilterConfig,
    NavsatConfig,
    SourceConfig,
    topic_name,
    with_front_end,
)
from .findings import OTHER_TOPIC
from .replay_options import ReplayOptions

FIX, HEADING, COMMAND = 'fix', 'heading', 'command'
"""Takers beside the filter's inputs: navsat_transform's fixes and headings, velocity commands."""

_COMMAND_TOPIC = 'cmd_vel'


@dataclasses.dataclass(frozen=True)
class Routing:
    """What the judge hears of a recording."""

    # Input (`odom0`) to topic, in the order in which messages that arrive together are delivered;
    # None for what navsat_transform publishes.
    sources: Mapping[str, str | None]
    # Topics of navsat_transform and of the commands; None where nobody listens.
    fix: str | None
    heading: str | None
    command: str | None
    notes: tuple[Finding, ...] = ()  # what the user should know about the choice

    @property
    def takers(self) -> tuple[tuple[str, str], ...]:
        """Pairs of taker and topic; of messages that arrive together the earlier is first."""
        rest = ((FIX, self.fix), (HEADING, self.heading), (COMMAND, self.command))
        pairs = (*self.sources.items(), *rest)
        return tuple((taker, topic) for taker, topic in pairs if topic is not None)


def route(
    recording: Recording, config: FilterConfig, navsat: NavsatConfig | None, case: ReplayOptions
) -> Routing:
    """Find the topics; their messages are not looked at, so that they may be still to come.

    An IMU or fix topic that the recording has not is replaced by its imu or gps. JudgeError when
    it lacks what the configuration needs.
    """
    navsat = with_front_end(navsat, case.front_end)
    recording = roles_heard(recording, [source.topic for source in config.sources])
    topics = {topic_name(topic): topic for topic in recording.messages}
    fix = heading = None
    if navsat is not None:
        fix = _for_navsat(
            recording, topics, case.fix, 'gps', FixArray, f'{navsat.title} needs fixes'
        )
        if navsat.needs_heading:
            heading = _for_navsat(
                recording, topics, case.heading, 'imu', ImuArray,
                'navsat_transform needs an IMU for the heading', '; use_odometry_yaw does without',
            )  # fmt: skip
    sources: dict[str, str | None] = {}
    notes: list[Finding] = []
    taken_by = ''
    rank = {topic: number for number, topic in enumerate(case.topics)}
    for source in sorted(config.sources, key=lambda source: rank.get(source.topic, len(rank))):
        if source.topic == NAVSAT_TOPIC and navsat is not None:
            sources[source.name] = None
        elif source.topic in topics:
            sources[source.name] = topics[source.topic]
        else:
            used = _stand_in(source, recording, topics, taken_by)
            sources[source.name] = used
            taken_by = source.name
            notes.append(OTHER_TOPIC(source.name, wanted=source.topic, used=used))
    command = topics.get(_COMMAND_TOPIC) if config.control_mask.any() else None
    if command is not None and not isinstance(recording.messages[command], TwistArray):
        command = None
    return Routing(sources, fix, heading, command, tuple(notes))


def _stand_in(
    source: SourceConfig, recording: Recording, topics: Mapping[str, str], taken_by: str
) -> str:
    """Return the recording's IMU for an input whose topic it has not; once per recording."""
    if source.topic == NAVSAT_TOPIC:
        raise JudgeError(
            f'{source.name}: {source.topic} is not in {recording.path}; give the parameters of '
            'navsat_transform_node, which makes it from the fixes, or take the front end enu'
        )
    if source.kind == 'imu' and 'imu' in recording.roles and not taken_by:
        return recording.roles['imu']
    taken = f' and its IMU already stands in for {taken_by}' if taken_by else ''
    has_imu = any(isinstance(one, ImuArray) for one in recording.messages.values())
    remedy = f'--topic {source.name}=... names one'
    if source.kind == 'imu' and not has_imu:
        remedy = 'none is an IMU, without which this judge cannot be used'
    if source.kind == 'imu' and has_imu:
        _check_not_noise_free(recording, ImuArray, f'{source.name} needs an IMU')
    why = recording.why_missing(source.topic, 'imu' if source.kind == 'imu' else '')
    raise JudgeError(
        f'{source.name}: topic {source.topic} is not in {recording.path}'
        f'{why or did_you_mean(source.topic, topics)}{taken}; '
        f'it has {", ".join(sorted(topics)) or "nothing"}; {remedy}'
    )


def _for_navsat(
    recording: Recording,
    topics: Mapping[str, str],
    wanted: str,
    role: str,
    kind: type[MessageArray],
    needs: str,
    hint: str = '',
) -> str:
    """Return the topic that the case names, else that of the role; it must hold such messages."""
    topic = topics.get(wanted) if wanted else recording.roles.get(role)
    if topic is None or not isinstance(recording.messages[topic], kind):
        same = [name for name, array in recording.messages.items() if isinstance(array, kind)]
        if not wanted:
            _check_not_noise_free(recording, kind, needs)
        if same and not wanted:
            names = ', '.join(same)
            has = 'several' if len(same) > 1 else 'none with that role'
            raise JudgeError(
                f'{recording.path}: {needs}, the recording has {has}; --topic {role}=... must '
                f'name one of {names}{hint}'
            )
        where = f' on {wanted}, as the case says' if wanted else ''
        name = wanted or DEFAULT_TOPICS[role]
        if why := recording.why_missing(name, role):
            where = f'{where}: {name}{why}'
        raise JudgeError(f'{recording.path}: {needs}, the recording has none{where}{hint}')
    return topic


def _check_not_noise_free(recording: Recording, kind: type[MessageArray], needs: str) -> None:
    """Raise JudgeError if all messages of a kind are of a simulator's noise-free sensor."""
    noise_free = {recording.roles.get(role) for role in IDEAL_ROLES.values()}
    same = {name for name, array in recording.messages.items() if isinstance(array, kind)}
    if same and same <= noise_free:
        raise JudgeError(
            f'{recording.path}: {needs}, the recording has noise-free ones only '
            f'({", ".join(sorted(same))}); make sensors with `sim2real simulate --truth` first'
        )


def delayed(
    recording: Recording, routing: Routing, config: FilterConfig, latency_ns: Mapping[str, int]
) -> tuple[Recording, int]:
    """Let messages arrive later than they do in a recording, by topic, ns.

    Returns the recording with other times of arrival, and how long the odometry/gps of
    navsat_transform travels to the filter. A topic may also be named as the filter names it, where
    the recording's IMU stands in. JudgeError for a topic that the judge does not hear.
    """
    heard = _heard(routing, config)
    made = NAVSAT_TOPIC if None in routing.sources.values() else ''
    messages, travel_ns = dict(recording.messages), 0
    for name, later_ns in latency_ns.items():
        if name == made:
            travel_ns = later_ns
        elif name in heard:
            array = messages[heard[name]]
            messages[heard[name]] = dataclasses.replace(
                array, arrival_ns=array.arrival_ns + later_ns
            )
        else:
            raise _unheard('latency', name, {*heard, *filter(None, [made])})
    return dataclasses.replace(recording, messages=messages), travel_ns


def restated(
    recording: Recording, routing: Routing, config: FilterConfig, factors: Mapping[str, float]
) -> Recording:
    """Let messages state other covariances than they do in a recording: by topic, so many times.

    Where an IMU says that it has no such quantity it says so still. Topics and errors are those of
    `delayed`.
    """
    heard, messages = _heard(routing, config), dict(recording.messages)
    for name, factor in factors.items():
        if name not in heard:
            raise _unheard('covariance', name, heard)
        array = messages[heard[name]]
        stated = {
            field.name: np.where(values[:, :1, :1] < 0.0, values, factor * values)
            for field in dataclasses.fields(array)
            if field.name.endswith('_covariance')
            for values in [getattr(array, field.name)]
        }
        messages[heard[name]] = dataclasses.replace(array, **stated)
    return dataclasses.replace(recording, messages=messages)


def _heard(routing: Routing, config: FilterConfig) -> dict[str, str]:
    """Return the topics of a recording by name, and by that which the filter has for them."""
    heard = {topic_name(topic): topic for _, topic in routing.takers}
    for source in config.sources:
        topic = routing.sources[source.name]
        if topic is not None:
            heard.setdefault(source.topic, topic)
    return heard


def _unheard(option: str, name: str, known: Collection[str]) -> JudgeError:
    return JudgeError(
        f'{option}: topic {name} is not heard by the judge; must be one of '
        f'{", ".join(sorted(known))}'
    )
