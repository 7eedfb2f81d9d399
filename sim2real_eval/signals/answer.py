# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The answer of a comparison of signals: per sensor, whose errors are like the real ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from operator import attrgetter
from typing import Any

import numpy as np

from sim2real_eval.common.findings import to_records
from .comparison import SignalComparison, SignalRow
from .quantities import QUANTITIES


@dataclasses.dataclass(frozen=True)
class SensorAnswer:
    """Ranking of the models of one sensor by the similarity of their errors to the real ones.

    A distance is the mean, over the signals that all models have, of the Wasserstein distance of
    the errors over the RMSE of the real ones. Signals without real errors are left out; it and the
    ratio of RMSE are None where that leaves none.
    """

    sensor: str  # role: imu, gps or mag
    nearest: str
    distance: float | None
    rmse_ratio: float | None  # mean over the signals of simulated over real RMSE
    models: int
    next: str | None  # model that follows; None with a single one
    next_distance: float | None
    compared: int  # signals that the distance is the mean of
    signals: int
    # Signals of the nearest whose errors or spectra differ significantly; None where there are too
    # few runs to tell.
    different: tuple[str, ...] | None


def sensor_answers(comparison: SignalComparison) -> list[SensorAnswer]:
    """Return the answer for each kind of sensor whose signals were compared."""
    answers = []
    for sensor in dict.fromkeys(quantity.sensor for quantity in QUANTITIES):
        labels = {
            label
            for quantity in QUANTITIES
            if quantity.sensor == sensor
            for label in quantity.labels()
        }
        models: dict[str, list[SignalRow]] = {}
        for row in comparison.rows:
            if row.signal in labels:
                models.setdefault(row.model, []).append(row)
        if not models:
            continue
        common = set.intersection(
            *({row.signal for row in rows if row.real.rmse > 0.0} for rows in models.values())
        )
        distances = {
            model: _mean_over_real(rows, 'error_distance', common)
            for model, rows in models.items()
        }
        order = sorted(distances, key=lambda model: (_sorting(distances[model]), model))
        nearest, after = order[0], order[1] if len(order) > 1 else None
        rows = models[nearest]
        answers.append(
            SensorAnswer(
                sensor=sensor,
                nearest=nearest,
                distance=distances[nearest],
                rmse_ratio=_mean_over_real(rows, 'simulated.rmse', common),
                models=len(models),
                next=after,
                next_distance=None if after is None else distances[after],
                compared=len(common),
                signals=len(rows),
                different=None
                if any(row.p_adjusted is None for row in rows)
                else tuple(row.signal for row in rows if row.verdict == 'different'),
            )
        )
    return answers


def comparison_record(comparison: SignalComparison) -> dict[str, Any]:
    """Return answer, options, notes and rows as plain values."""
    return {
        'answer': [dataclasses.asdict(answer) for answer in sensor_answers(comparison)],
        'options': comparison.options.to_mapping(),
        'notes': to_records(comparison.notes),
        'rows': [dataclasses.asdict(row) for row in comparison.rows],
        'features': [dataclasses.asdict(row) for row in comparison.features],
    }


def _mean_over_real(rows: Iterable[SignalRow], name: str, signals: set[str]) -> float | None:
    value_of = attrgetter(name)
    shares = [value_of(row) / row.real.rmse for row in rows if row.signal in signals]
    return float(np.mean(shares)) if shares else None


def _sorting(distance: float | None) -> float:
    return np.inf if distance is None else distance
