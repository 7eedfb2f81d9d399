# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Studies with randomly drawn numbers, for tests of reports and statistics."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from sim2real_eval.metrics.options import REAL
from sim2real_eval.metrics.scores import score_run
from sim2real_eval.metrics.series import VelocitySeries
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.record import DIGEST, record_digest
from sim2real_eval.study.run import EstimateSignals, RunKey, StudyRun
from sim_sensors.core import rotations

MODELS = {'ch_gauss': 0.30, 'ch_rw': 0.05, 'airsim': 0.06}
"""Standard deviation of the velocity error of each, m/s; that of the real runs is 0.05."""


def drawn_study(
    *,
    judges: tuple[str, ...] = ('paper_released', 'clean'),
    scenarios: tuple[str, ...] = ('line', 'circle'),
    runs: int = 4,
    repetitions: int = 1,
    models: dict[str, float] | None = None,
    groups: tuple[str, ...] = ('',),
    seed: int = 0,
) -> StudyOutcome:
    """Return a study with white errors of known size; signals are kept in memory."""
    models = MODELS if models is None else models
    rng = np.random.default_rng(seed)
    runs_drawn: list[StudyRun] = []
    signals_by_key: dict[RunKey, EstimateSignals] = {}
    for judge in judges:
        for group in groups:
            for scenario in scenarios:
                for number in range(1, runs + 1):
                    recording = f'{group}{scenario}_{number}'
                    for model, sigma in {REAL: 0.05, **models}.items():
                        for repetition in range(1, (1 if model == REAL else repetitions) + 1):
                            key = RunKey(judge, recording, model, repetition)
                            signals_by_key[key] = _signals(rng, sigma, curved=scenario == 'circle')
                            runs_drawn.append(_run(key, scenario, group, signals_by_key[key]))
    record = {
        'title': 'Drawn study', 'about': 'numbers are drawn', 'seed': seed,
        'repetitions': repetitions, 'component': 'horizontal', 'metric': {}, 'synthetic': True,
        'versions': {}, 'judges': [{'label': judge} for judge in judges],
        'models': {model: {} for model in models}, 'recordings': [], 'failures': [], 'notes': [],
    }  # fmt: skip
    return StudyOutcome(record, tuple(runs_drawn), signals_by_key.__getitem__)


def _signals(rng: np.random.Generator, sigma: float, *, curved: bool) -> EstimateSignals:
    time = np.arange(0.5, 20.0, 1.0 / 35.0)
    true_time = np.arange(0.0, 20.0, 0.01)
    turn = 0.3 if curved else 0.0

    def motion(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        yaw = turn * at
        if curved:
            plan = np.stack([np.sin(yaw) / turn, (1.0 - np.cos(yaw)) / turn], axis=1)
        else:
            plan = np.stack([at, np.zeros_like(at)], axis=1)
        position = np.column_stack([plan, np.zeros_like(at)])
        return position, rotations.from_heading(yaw)

    position, orientation = motion(time)
    ahead = np.array([1.0, 0.0, 0.0])
    noise = rng.normal(0.0, sigma, (len(time), 3)) * (1.0, 1.0, 0.0)
    return EstimateSignals(
        time=time,
        position=position + rng.normal(0.0, 0.02, (len(time), 3)),
        true_position=position,
        orientation=orientation,
        velocity=ahead + noise,
        position_sigma=np.full((len(time), 3), 0.02),
        velocity_sigma=np.full((len(time), 3), 0.05),
        true_time=true_time,
        true_velocity=np.tile(ahead, (len(true_time), 1)),
        true_orientation=motion(true_time)[1],
    )


def _run(key: RunKey, scenario: str, group: str, signals: EstimateSignals) -> StudyRun:
    series = VelocitySeries(
        se_time=signals.time,
        se_vel=np.hypot(signals.velocity[:, 0], signals.velocity[:, 1]),
        gt_time=signals.true_time,
        gt_vel=np.hypot(signals.true_velocity[:, 0], signals.true_velocity[:, 1]),
        name=key.recording,
    )
    score = score_run(series)
    values = {
        **{name: float(value) for name, value in dataclasses.asdict(score).items()},
        'entropy_difference': score.entropy_difference,
        'forward_rmse': float(np.std(signals.velocity[:, 0] - 1.0)),
        'estimates': float(len(signals.time)),
        'fixes_used': 195.0,
    }
    return StudyRun(key, scenario, group, values)


def seal(record: Mapping[str, Any]) -> str:
    """Return the text of study.json for a record with runs, with the digest of its content."""
    rest = {name: value for name, value in record.items() if name != 'runs'}
    runs = record['runs']
    return json.dumps({**rest, 'runs': runs, DIGEST: record_digest(rest, runs)})
