# SPDX-License-Identifier: Apache-2.0
"""What may be asked of the judge beside the nodes' own parameters, in case.yaml or on a line."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sim2real_eval.judge.configuration import topic_name
from sim2real_eval.judge.transform_file import TransformFile
from sim_sensors.errors import ParameterError

if TYPE_CHECKING:
    from sim2real_eval.judge.clock import ReplayOptions

__all__ = ['CORRECTIONS', 'FRONT_ENDS', 'Options', 'corrections', 'front_end', 'latency_ns']

CORRECTIONS = ('gravity', 'differential', 'unscented')
"""Deviations of robot_localization that can be corrected."""

FRONT_ENDS = ('navsat_transform', 'enu')
"""What turns fixes into odometry/gps."""

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
            near = difflib.get_close_matches(str(name), CORRECTIONS, n=1)
            hint = f'; did you mean {near[0]}?' if near else ''
            raise ParameterError(
                where, key, f'{name!r} is not allowed; must be of {", ".join(CORRECTIONS)}{hint}'
            )
    return frozenset(found)


def front_end(name: object, where: str, key: str) -> str:
    """Return the name of a front end; ParameterError for one that is none of FRONT_ENDS."""
    if not isinstance(name, str) or name not in FRONT_ENDS:
        raise ParameterError(
            where, key, f'{name!r} is not allowed; must be {" or ".join(FRONT_ENDS)}'
        )
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
