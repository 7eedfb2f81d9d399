# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Assignment of a recording's topics to the inputs of the judge, with order and latency."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from sim2real_eval.common.findings import Finding, JudgeError
from sim2real_eval.recording.message_types import find_type
from sim2real_eval.recording.reading import assign_subscribed_roles
from sim2real_eval.recording.recording import DEFAULT_TOPICS, IDEAL_ROLES, Recording
from sim_sensors.core.errors import did_you_mean
from sim_sensors.core.measurements import FixArray, ImuArray, MessageArray, TwistArray
from .advice import COMMANDS_OF_OTHER_TYPE, OTHER_TOPIC
from .configuration import (
    NAVSAT_TOPIC,
    FilterConfig,
    NavsatConfig,
    SourceConfig,
    topic_name,
    with_front_end,
)
from .inputs import check_type, wrong_type
from .replay_options import ReplayOptions

FIX, HEADING, COMMAND = 'fix', 'heading', 'command'
"""Inputs besides those of the filter: fixes and headings of navsat_transform, commands."""
_COMMAND_TOPIC = 'cmd_vel'


@dataclasses.dataclass(frozen=True)
class Routing:
    """Topics of a recording that the judge subscribes to."""

    # Input (`odom0`) to topic, in the order in which messages that arrive together are delivered;
    # None for the topic that navsat_transform publishes.
    sources: Mapping[str, str | None]
    # Topics of navsat_transform and of the commands; None without a subscriber.
    fix: str | None
    heading: str | None
    command: str | None
    notes: tuple[Finding, ...] = ()  # about the choice

    @property
    def topic_inputs(self) -> tuple[tuple[str, str], ...]:
        """Pairs of input and topic, in the order in which simultaneous messages are delivered."""
        further = ((FIX, self.fix), (HEADING, self.heading), (COMMAND, self.command))
        pairs = (*self.sources.items(), *further)
        return tuple((name, topic) for name, topic in pairs if topic is not None)


def route(
    recording: Recording, config: FilterConfig, navsat: NavsatConfig | None, case: ReplayOptions
) -> Routing:
    """Assign topics to inputs; the messages may still be empty.

    An IMU or fix topic that the recording lacks is replaced by its imu or gps. JudgeError when the
    recording lacks a topic that the configuration needs.
    """
    navsat = with_front_end(navsat, case.front_end)
    recording = assign_subscribed_roles(recording, [source.topic for source in config.sources])
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
            topic = topics[source.topic]
            ros_type = recording.ros_types.get(topic, '')
            check_type(source, topic, recording.messages[topic], ros_type)
            sources[source.name] = topic
        else:
            used = _stand_in(source, recording, topics, taken_by)
            sources[source.name] = used
            taken_by = source.name
            notes.append(OTHER_TOPIC(source.name, wanted=source.topic, used=used))
    command = topics.get(_COMMAND_TOPIC) if config.control_mask.any() else None
    if command is not None and not isinstance(recording.messages[command], TwistArray):
        command = None
    if command is not None and (other_type := _refused_commands(recording, command, config)):
        command = None
        notes.append(other_type)
    return Routing(sources, fix, heading, command, tuple(notes))


def _refused_commands(recording: Recording, topic: str, config: FilterConfig) -> Finding | None:
    """Return the finding about commands whose message type the filter does not subscribe to."""
    recorded = recording.ros_types.get(topic)
    if recorded is None or find_type(recorded).has_header == config.stamped_control:
        return None
    subscribed = 'TwistStamped' if config.stamped_control else 'Twist'
    return COMMANDS_OF_OTHER_TYPE(
        topic, recorded=recorded.rpartition('/')[2], subscribed=subscribed,
        stamped_control=str(not config.stamped_control).lower(),
    )  # fmt: skip


def _stand_in(
    source: SourceConfig, recording: Recording, topics: Mapping[str, str], taken_by: str
) -> str:
    """Return the recording's IMU in place of a missing topic, for one input only."""
    if source.topic == NAVSAT_TOPIC:
        raise JudgeError(
            f'{source.name}: {source.topic} is not in {recording.path}; give the parameters of '
            'navsat_transform_node, which makes it from the fixes, or take the front end enu'
        )
    for description in recording.ignored:
        topic, _, ros_type = description.removesuffix(')').partition(' (')
        if topic_name(topic) == source.topic and ros_type:
            raise wrong_type(source, topic, ros_type)
    if source.kind == 'imu' and 'imu' in recording.roles and not taken_by:
        return recording.roles['imu']
    stand_in = f' and its IMU already stands in for {taken_by}' if taken_by else ''
    has_imu = any(isinstance(array, ImuArray) for array in recording.messages.values())
    remedy = f'--topic {source.name}=... names one'
    if source.kind == 'imu' and not has_imu:
        remedy = 'none is an IMU, without which this judge cannot be used'
    if source.kind == 'imu' and has_imu:
        _check_not_noise_free(recording, ImuArray, f'{source.name} needs an IMU')
    why = recording.why_missing(source.topic, 'imu' if source.kind == 'imu' else '')
    raise JudgeError(
        f'{source.name}: topic {source.topic} is not in {recording.path}'
        f'{why or did_you_mean(source.topic, topics)}{stand_in}; '
        f'it has {", ".join(sorted(topics)) or "nothing"}; {remedy}'
    )


def _for_navsat(
    recording: Recording,
    topics: Mapping[str, str],
    requested: str,
    role: str,
    kind: type[MessageArray],
    needs: str,
    hint: str = '',
) -> str:
    """Return the topic named by the case or else that of the role; check its message type."""
    topic = topics.get(requested) if requested else recording.roles.get(role)
    if topic is None or not isinstance(recording.messages[topic], kind):
        same = [name for name, array in recording.messages.items() if isinstance(array, kind)]
        if not requested:
            _check_not_noise_free(recording, kind, needs)
        if same and not requested:
            names = ', '.join(same)
            has = 'several' if len(same) > 1 else 'none with that role'
            raise JudgeError(
                f'{recording.path}: {needs}, the recording has {has}; --topic {role}=... must '
                f'name one of {names}{hint}'
            )
        where = f' on {requested}, as the case says' if requested else ''
        name = requested or DEFAULT_TOPICS[role]
        if why := recording.why_missing(name, role):
            where = f'{where}: {name}{why}'
        has = ', '.join(recording.messages) or 'no topic'
        raise JudgeError(
            f'{recording.path}: {needs}, the recording has none{where}{hint}; it has {has}'
        )
    return topic


def _check_not_noise_free(recording: Recording, kind: type[MessageArray], needs: str) -> None:
    """Raise JudgeError if all messages of a kind come from a simulator's noise-free sensor."""
    noise_free = {recording.roles.get(role) for role in IDEAL_ROLES.values()}
    same = {name for name, array in recording.messages.items() if isinstance(array, kind)}
    if same and same <= noise_free:
        raise JudgeError(
            f'{recording.path}: {needs}, the recording has noise-free ones only '
            f'({", ".join(sorted(same))}); make sensors with `sim2real simulate --truth` first'
        )


def subscribed_topics(routing: Routing, config: FilterConfig) -> dict[str, str]:
    """Return the topics of a recording by their own names and by those of the filter."""
    subscribed = {topic_name(topic): topic for _, topic in routing.topic_inputs}
    for source in config.sources:
        topic = routing.sources[source.name]
        if topic is not None:
            subscribed.setdefault(source.topic, topic)
    return subscribed


def not_subscribed(option: str, name: str, topics: Collection[str]) -> JudgeError:
    """Return the error about a topic of an option that the judge does not subscribe to."""
    return JudgeError(
        f'{option}: topic {name} is not one that the judge subscribes to; must be one of '
        f'{", ".join(sorted(topics))}'
    )


def delay_messages(
    recording: Recording, routing: Routing, config: FilterConfig, latency_ns: Mapping[str, int]
) -> tuple[Recording, int]:
    """Delay messages by topic, ns.

    Returns the recording with other times of arrival, and the latency of navsat_transform's
    odometry/gps, ns. If the recording's IMU stands in for a topic, both names are accepted.
    JudgeError for a topic that the judge does not subscribe to.
    """
    subscribed = subscribed_topics(routing, config)
    published = NAVSAT_TOPIC if None in routing.sources.values() else ''
    messages, travel_ns = dict(recording.messages), 0
    for name, later_ns in latency_ns.items():
        if name == published:
            travel_ns = later_ns
        elif name in subscribed:
            array = messages[subscribed[name]]
            messages[subscribed[name]] = dataclasses.replace(
                array, arrival_ns=array.arrival_ns + later_ns
            )
        else:
            raise not_subscribed('latency', name, {*subscribed, *filter(None, [published])})
    return dataclasses.replace(recording, messages=messages), travel_ns
