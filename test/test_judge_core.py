# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The filter against traces of robot_localization's filter core, event by event."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from judge_examples import read_rows
from recording_examples import REFERENCE

from sim2real_eval.judge.robot_localization.configuration import DEFAULT_PROCESS_NOISE
from sim2real_eval.judge.robot_localization.filter import (
    advance,
    build_dynamics,
    process,
    sigma_weights,
)
from sim2real_eval.judge.robot_localization.state import (
    CONTROL_NS,
    INITIALISED,
    LAST_NS,
    Dynamics,
    N,
    new_filter,
)

VISIBLE = ('control', 'dynamic_3d', 'gating_angles', 'late_gaps_ticks', 'masks_fullcov')
TRACES = REFERENCE.glob('judge/core/*/expected_ekf.csv.gz')
CASES = sorted({*VISIBLE, *(path.parent.name for path in TRACES)})


def numbers(row: list[str]) -> np.ndarray:
    """Fields as floats; an empty field was not measured."""
    return np.array([float(field) if field else np.nan for field in row])


def matrix(entries: list[float] | None, default: np.ndarray) -> np.ndarray:
    return default if entries is None else np.array(entries, dtype=float).reshape(N, N)


def read_dynamics(config: dict[str, Any], weights: np.ndarray | None) -> Dynamics:
    control = config['control']
    limits = np.zeros((4, 6))
    if control:
        names = ('acceleration_limits', 'acceleration_gains')
        names += ('deceleration_limits', 'deceleration_gains')
        limits = np.array([control[name] for name in names], dtype=float)
    return build_dynamics(
        matrix(config['process_noise_covariance'], np.diag(DEFAULT_PROCESS_NOISE)),
        dynamic=bool(config['dynamic_process_noise_covariance']),
        control_mask=np.array([float(c) for c in control['mask']]) if control else np.zeros(6),
        control_limits=limits,
        control_timeout_ns=round(control['timeout_s'] * 1e9) if control else 0,
        weights=weights,
    )


class Rounding:
    """Bounds of rounding errors of a filter, event by event, from its conditioning.

    Each event adds N products. States are rounded to eps times the largest state so far,
    covariances to eps D_i D_j with D the largest standard deviations so far. The gain errs by
    eps (D / d)^2, with d the deviation now, and the state by eps D^2 / d. After k events the
    bound is k times as large; the worst trace is at a seventh of it.
    """

    def __init__(self) -> None:
        self._events, self._state = 0, 0.0
        self._deviation = np.zeros(N)

    def after(self, x: np.ndarray, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds of state, (N,), and covariance, (N, N), after one event more."""
        self._events += 1
        now = np.sqrt(np.diag(P))
        self._state = max(self._state, np.abs(x).max())
        self._deviation = np.maximum(self._deviation, now)
        share = self._events * N * np.finfo(float).eps
        spread = self._deviation**2 / now
        return share * np.maximum(self._state, spread), share * np.outer(*2 * (self._deviation,))


def follow(
    folder: Path, kind: str, weights: np.ndarray | None
) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the place, actual and expected state and covariance after each event of a trace."""
    config = yaml.safe_load((folder / 'config.yaml').read_text(encoding='utf-8'))
    header, events = read_rows(folder / 'measurements.csv.gz')
    assert header[:4] == ['event', 'stamp_ns', 'topic', 'threshold']
    _, expected = read_rows(folder / f'expected_{kind}.csv.gz')
    assert len(events) == len(expected) > 100
    dyn = read_dynamics(config, weights)
    flt = new_filter(np.zeros(N), matrix(config['initial_estimate_covariance'], 1e-9 * np.eye(N)))
    event_kinds = set()
    for number, (row, after) in enumerate(zip(events, expected, strict=True)):
        event, stamp_ns = row[0], int(row[1])
        assert stamp_ns == int(after[1])
        happened = event
        if event == 'meas':
            measured = np.array([field in ('1', 'True', 'true', '1.0') for field in row[4:19]])
            z, R = numbers(row[19:34]), numbers(row[34:259]).reshape(N, N)
            if flt.times[INITIALISED]:
                measured &= np.isfinite(z)
            index = np.flatnonzero(measured)
            block = np.ascontiguousarray(R[np.ix_(index, index)])
            process(flt, dyn, stamp_ns, index, len(index), z[index], block, float(row[3]))
        elif event == 'predict':
            advance(flt, dyn, stamp_ns)
        elif event == 'tick':
            if stamp_ns - flt.times[LAST_NS] >= round(config['sensor_timeout_s'] * 1e9):
                advance(flt, dyn, stamp_ns)
                happened = 'tick_predict'
        else:
            assert event == 'control'
            flt.command[:] = numbers(row[19:25])
            flt.times[CONTROL_NS] = stamp_ns
        assert after[0] == happened
        event_kinds.add(happened)
        values = numbers(after[2 : 2 + N + N * N])
        where = f'{folder.name}, event {number} ({happened} at {stamp_ns})'
        yield where, flt.x[:N], values[:N], flt.P[:N, :N], values[N:].reshape(N, N)
    assert 'meas' in event_kinds


def core(reference_dir: Path, case: str, kind: str) -> Path:
    folder = reference_dir / 'judge' / 'core' / case
    if not (folder / f'expected_{kind}.csv.gz').exists():
        pytest.skip(f'no trace {folder}')
    return folder


@pytest.mark.parametrize('case', CASES)
def test_the_extended_filter_equals_the_original_core_after_every_event(
    reference_dir: Path, case: str, record_property: Callable[[str, object], None]
) -> None:
    """State and all 225 covariances agree to rounding after each of some 250 events."""
    folder, rounding = core(reference_dir, case, 'ekf'), Rounding()
    worst = 0.0
    for where, x, expected_x, P, expected_P in follow(folder, 'ekf', None):
        state, covariance = rounding.after(expected_x, expected_P)
        assert np.all(np.abs(x - expected_x) <= state), f'robot_localization: {where}'
        assert np.all(np.abs(P - expected_P) <= covariance), f'robot_localization: {where}'
        worst = max(worst, float(np.abs(x - expected_x).max()))
    record_property('state', worst)


@pytest.mark.parametrize('case', CASES)
def test_the_unscented_filter_equals_the_original_core_after_every_event(
    reference_dir: Path, case: str, record_property: Callable[[str, object], None]
) -> None:
    """To rounding, and to ten times the effect of a change of the input in its last place."""
    folder, rounding = core(reference_dir, case, 'ukf'), Rounding()
    config = yaml.safe_load((folder / 'config.yaml').read_text(encoding='utf-8'))
    distinct = config['filters']['ukf']
    least = distinct['rounding_sensitivity']
    weights = sigma_weights(distinct['alpha'], distinct['kappa'], distinct['beta'])
    worst = 0.0
    for where, x, expected_x, P, expected_P in follow(folder, 'ukf', weights):
        state, covariance = rounding.after(expected_x, expected_P)
        assert np.all(np.abs(x - expected_x) <= 10.0 * least['state'] + state), where
        assert np.all(np.abs(P - expected_P) <= 10.0 * least['covariance'] + covariance), where
        worst = max(worst, float(np.abs(x - expected_x).max()))
    record_property('state', worst)
