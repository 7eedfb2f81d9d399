# SPDX-License-Identifier: Apache-2.0
"""Messages that arrive later than the recording says."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from sim2real_eval.judge.configuration import NAVSAT_TOPIC, FilterConfig, topic_name
from sim2real_eval.judge.errors import JudgeError
from sim2real_eval.judge.routing import Routing
from sim2real_eval.recording import Recording

__all__ = ['delayed']


def delayed(
    recording: Recording, routing: Routing, config: FilterConfig, latency_ns: Mapping[str, int]
) -> tuple[Recording, int]:
    """Let messages arrive later than they do in a recording.

    Parameters
    ----------
    recording : Recording
    routing : Routing
        What the judge hears of it.
    config : FilterConfig
        A topic may also be named as the filter names it, where the recording's IMU stands in.
    latency_ns : mapping of str to int
        Nanoseconds by topic; that of odometry/gps is how long navsat_transform's message travels
        to the filter.

    Returns
    -------
    recording : Recording
        With other times of arrival.
    latency_ns : int
        Of navsat_transform's message.

    Raises
    ------
    JudgeError
        For a topic that the judge does not hear.
    """
    heard = {topic_name(topic): topic for _, topic in routing.takers}
    for source in config.sources:
        topic = routing.sources[source.name]
        if topic is not None:
            heard.setdefault(source.topic, topic)
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
            known = sorted({*heard, *filter(None, [made])})
            raise JudgeError(
                f'latency: topic {name} is not heard by the judge; must be one of '
                f'{", ".join(known)}'
            )
    return dataclasses.replace(recording, messages=messages), travel_ns
