# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""One judged run of a study: its key, its numbers and its signals."""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from sim2real_eval.common.findings import Finding, to_records
from sim2real_eval.metrics.options import REAL
from sim2real_eval.metrics.scores import RunScore
from sim_sensors.core.measurements import FloatArray
from .run_values import RunValues


class RunKey(NamedTuple):
    """Key of a run in its study."""

    judge: str  # label of the judge
    recording: str  # name of the recording whose motion it follows; runs that share it are paired
    model: str  # `real` or the label of a simulated variant
    repetition: int  # from 1; 1 for the real run


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class StudyRun:
    """Numbers of one judged run; its signals are in a file, see `StudyOutcome.signals`.

    Attributes
    ----------
    key : RunKey
    scenario : str
        Name of the scenario, such as `circle`.
    group : str
        Label that recordings share, such as a surface or a condition; may be empty.
    values : mapping
        Numbers by name. Every run has those of `RunScore`, `forward_rmse` (m/s), `estimates` and
        `fixes_used`. Others, such as `position_rmse`, are missing where they cannot be computed.
        Names that end in `_again` are from a second replay.
    notes : tuple of Finding
        Findings, the most important first.
    identity : mapping
        Digests of code and inputs, which only the file of the run holds; see `run_identity`.
    """

    key: RunKey
    scenario: str
    group: str
    values: Mapping[str, float]
    notes: tuple[Finding, ...] = ()
    identity: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def is_real(self) -> bool:
        """Whether its sensors are the recorded ones."""
        return self.key.model == REAL

    @property
    def score(self) -> RunScore:
        """Score that VEPD compares."""
        values: dict[str, Any] = {
            field.name: self.values[field.name] for field in dataclasses.fields(RunScore)
        }
        return RunScore(**{**values, 'n_samples': int(values['n_samples'])})

    @classmethod
    def from_mapping(cls, key: RunKey, mapping: Mapping[str, Any]) -> StudyRun:
        """Return the run that `to_mapping` wrote."""
        notes = tuple(_shared_finding(json.dumps(note)) for note in mapping['notes'])
        scenario, group = (sys.intern(mapping[name]) for name in ('scenario', 'group'))
        identity = _shared_identity(tuple(mapping.get('identity', {}).items()))
        return cls(key, scenario, group, RunValues(mapping['values']), notes, identity)

    def to_mapping(self) -> dict[str, Any]:
        """Return everything except key and identity as plain values."""
        return {
            'scenario': self.scenario,
            'group': self.group,
            'values': dict(self.values),
            'notes': to_records(self.notes),
        }


@functools.lru_cache(maxsize=1024)
def _shared_identity(items: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return an identity as a mapping; the runs of a recording share one object."""
    return dict(items)


@functools.lru_cache(maxsize=4096)
def _shared_finding(record_json: str) -> Finding:
    """Return the finding of a JSON record; runs with equal findings share one object."""
    return Finding.from_record(json.loads(record_json))


@dataclasses.dataclass(frozen=True, eq=False)
class EstimateSignals:
    """Estimate and ground truth of one run; times in seconds since the first true stamp.

    Positions are in the judge's world frame, velocities in the body frame. Orientations are
    quaternions x y z w, from body to world. Standard deviations are those that the judge states.
    """

    time: FloatArray  # (n,), of the estimates
    position: FloatArray  # (n, 3), m
    true_position: FloatArray  # (n, 3), m, aligned as for NEES; NaN where unknown
    orientation: FloatArray  # (n, 4)
    velocity: FloatArray  # (n, 3), m/s
    position_sigma: FloatArray  # (n, 3), m
    velocity_sigma: FloatArray  # (n, 3), m/s
    true_time: FloatArray  # (m,), of the ground truth
    true_velocity: FloatArray  # (m, 3), m/s
    true_orientation: FloatArray  # (m, 4), body to the world of the ground truth
