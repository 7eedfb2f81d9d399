# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Covariances of messages that a case states or multiplies."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.measurements import FloatArray, MessageArray
from .configuration import FilterConfig
from .replay_options import ReplayOptions
from .topics import Routing, not_subscribed, subscribed_topics

_FIELDS: Mapping[str, tuple[str, slice]] = {
    'position': ('pose_covariance', slice(0, 3)),
    'orientation': ('pose_covariance', slice(3, 6)),
    'velocity': ('twist_covariance', slice(0, 3)),
    'rate': ('twist_covariance', slice(3, 6)),
    'acceleration': ('linear_acceleration_covariance', slice(0, 3)),
}
"""Field of the covariance, and its rows, by quantity."""
_OWN_FIELDS = {
    'orientation': 'orientation_covariance',
    'rate': 'angular_velocity_covariance',
    'position': 'position_covariance',
}
"""Fields of an IMU or a GPS in place of these."""


def apply_covariances(
    recording: Recording, routing: Routing, config: FilterConfig, case: ReplayOptions
) -> Recording:
    """Return the recording with the covariances that a case states or multiplies."""
    topics = subscribed_topics(routing, config)
    stated = _state_deviations(recording, topics, case.deviation)
    return _scale_covariances(stated, topics, case.covariance)


def _scale_covariances(
    recording: Recording, topics: Mapping[str, str], factors: Mapping[str, float]
) -> Recording:
    """Multiply the covariances of messages by a factor per topic.

    Covariances of -1, for quantities that an IMU does not have, are kept.
    """
    messages = dict(recording.messages)
    for name, factor in factors.items():
        topic = _find_topic('covariance', name, topics)
        array = messages[topic]
        stated = {
            field.name: np.where(values[:, :1, :1] < 0.0, values, factor * values)
            for field in dataclasses.fields(array)
            if field.name.endswith('_covariance')
            for values in [getattr(array, field.name)]
        }
        messages[topic] = dataclasses.replace(array, **stated)
    return dataclasses.replace(recording, messages=messages)


def _state_deviations(
    recording: Recording, topics: Mapping[str, str], deviations: Mapping[str, Mapping[str, float]]
) -> Recording:
    """Replace covariances of messages by standard deviations, by topic and quantity.

    The other quantities of a topic keep their covariance. JudgeError for a quantity that the
    messages do not have.
    """
    messages = dict(recording.messages)
    for name, stated in deviations.items():
        topic = _find_topic('deviation', name, topics)
        for quantity, deviation in stated.items():
            messages[topic] = _with_deviation(name, messages[topic], quantity, deviation)
    return dataclasses.replace(recording, messages=messages)


def _with_deviation(
    name: str, array: MessageArray, quantity: str, deviation: float
) -> MessageArray:
    field, rows = _FIELDS[quantity]
    names = {column.name for column in dataclasses.fields(array)}
    own = _OWN_FIELDS.get(quantity)
    if own in names:
        field, rows = own, slice(0, 3)
    if field not in names:
        raise JudgeError(f'deviation.{name}: the messages have no {quantity}; remove it')
    covariance: FloatArray = np.array(getattr(array, field))
    covariance[:, rows, :] = 0.0
    covariance[:, :, rows] = 0.0
    covariance[:, rows, rows] = deviation**2 * np.eye(3)
    changes: dict[str, Any] = {field: covariance}
    return dataclasses.replace(array, **changes)


def _find_topic(option: str, name: str, topics: Mapping[str, str]) -> str:
    if name not in topics:
        raise not_subscribed(option, name, topics)
    return topics[name]
