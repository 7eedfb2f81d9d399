# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Measurements of the judge from single messages, and mountings of sensors."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.judge.robot_localization.configuration import FilterConfig
from sim2real_eval.judge.robot_localization.filter import select_states
from sim2real_eval.judge.robot_localization.inputs import build_inputs
from sim2real_eval.judge.robot_localization.parts import new_memory
from sim2real_eval.judge.robot_localization.preparation import prepare
from sim2real_eval.judge.robot_localization.queue import new_queue
from sim2real_eval.judge.robot_localization.state import N
from sim2real_eval.recording.metadata import FrameTree
from sim2real_eval.recording.recording import StaticTransform
from sim_sensors.core.measurements import MessageArray


class Measurement(NamedTuple):
    part: str
    states: list[int]
    z: np.ndarray
    R: np.ndarray


def prepared(
    config: FilterConfig,
    array: MessageArray,
    transforms: tuple[StaticTransform, ...] = (),
    *,
    x: np.ndarray | None = None,
    acceleration: tuple[float, float, float] = (0.0, 0.0, 0.0),
    initialised: bool = True,
    correct: Set[str] = frozenset(),
) -> list[Measurement]:
    """Return all measurements of a topic for a filter state x and an angular acceleration."""
    frames = FrameTree(transforms, assume_identity=not transforms)
    sources = {config.sources[0].name: array}
    inputs = build_inputs(config, None, sources, None, None, None, frames, correct)
    (messages,), measurement = inputs.arrivals, new_queue(1).slots[0]
    memory = new_memory(len(inputs.names))
    memory.node.rates[1] = acceleration
    index, z, R = np.zeros(N, dtype=np.int64), np.zeros(N), np.zeros((N, N))
    state = np.zeros(N) if x is None else x
    result = []
    for k in range(len(messages.part)):
        covariance = messages.covariances[messages.covariance[k]]
        p = int(messages.part[k])
        if prepare(
            inputs.parts[p], memory.parts[p], memory.node, state, int(messages.stamp_ns[k]),
            messages.value[k], covariance, messages.has_attitude[k] == 1, measurement,
        ):  # fmt: skip
            m = select_states(inputs.parts[p], measurement, initialised, index, z, R)
            name = inputs.names[p].kind
            result.append(Measurement(name, index[:m].tolist(), z[:m].copy(), R[:m, :m].copy()))
    return result


def mounted(rpy: tuple[float, float, float], offset: tuple[float, float, float] = (0, 0, 0)):
    rotation = tuple(Rotation.from_euler('xyz', rpy).as_quat().tolist())
    return (StaticTransform('base_link', 'imu_link', offset, rotation),)
