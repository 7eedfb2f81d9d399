# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Check that a sensor gives the same bits for a whole and a divided trajectory."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from sim_sensors.motion.trajectory import Trajectory
from sim_sensors.sensor.sensor import SensorModel


def cut(truth: Trajectory, places: Iterable[int]) -> list[Trajectory]:
    """Return the parts of a trajectory between sorted places."""
    return [
        Trajectory(*(getattr(truth, f.name)[first:last] for f in dataclasses.fields(truth)))
        for first, last in itertools.pairwise([0, *sorted(places), len(truth)])
    ]


def assert_stepping_gives_the_same_bits(
    model: SensorModel[Any], truth: Trajectory, places: Iterable[int], **surroundings: Any
) -> tuple[Any, Any]:
    """Compare all arrays of a measurement bit by bit; return the stepped sensor and the whole."""
    whole = model.start(3, 'run', **surroundings).measure(truth)
    sensor = model.start(3, 'run', **surroundings)
    parts = [sensor.measure(part) for part in cut(truth, places)]
    for field in dataclasses.fields(whole):
        expected = getattr(whole, field.name)
        if isinstance(expected, np.ndarray):
            joined = np.concatenate([getattr(part, field.name) for part in parts])
            assert joined.tobytes() == expected.tobytes(), f'{type(model).__name__}.{field.name}'
    return sensor, whole
