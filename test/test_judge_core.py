# SPDX-License-Identifier: Apache-2.0
"""The filter against traces of robot_localization's filter core, event by event."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from judge_examples import read_rows
from recording_examples import REFERENCE

from sim2real_eval.judge.configuration import DEFAULT_PROCESS_NOISE
from sim2real_eval.judge.correction import advance, process
from sim2real_eval.judge.filter import (
    CONTROL_NS,
    INITIALISED,
    LAST_NS,
    Dynamics,
    new_filter,
    padded,
)
from sim2real_eval.judge.state import N

VISIBLE = ('control', 'dynamic_3d', 'gating_angles', 'late_gaps_ticks', 'masks_fullcov')
CASES = sorted(
    {*VISIBLE, *(path.parent.name for path in REFERENCE.glob('judge/core/*/expected_ekf.csv.gz'))}
)
TOLERANCE = 1e-9
SMALL = 1e-3


def numbers(row: list[str]) -> np.ndarray:
    """Fields as floats; an empty one is a value that is not measured."""
    return np.array([float(field) if field else np.nan for field in row])


def matrix(entries: list[float] | None, default: np.ndarray) -> np.ndarray:
    return default if entries is None else np.array(entries, dtype=float).reshape(N, N)


def read_dynamics(config: dict[str, Any]) -> Dynamics:
    control = config['control']
    limits = np.zeros((4, 6))
    if control:
        names = ('acceleration_limits', 'acceleration_gains')
        names += ('deceleration_limits', 'deceleration_gains')
        limits = np.array([control[name] for name in names], dtype=float)
    return Dynamics(
        Q=padded(matrix(config['process_noise_covariance'], np.diag(DEFAULT_PROCESS_NOISE))),
        dynamic=bool(config['dynamic_process_noise_covariance']),
        control_mask=np.array([float(c) for c in control['mask']]) if control else np.zeros(6),
        control_limits=limits,
        control_timeout_ns=round(control['timeout_s'] * 1e9) if control else 0,
    )


def state_error(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest relative error; of what is below 1e-3 (m, rad, m/s, ...) the error over 1e-3."""
    return float((np.abs(found - expected) / np.maximum(np.abs(expected), SMALL)).max())


def covariance_error(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest relative error; a correlation below 1e-3 counts as 1e-3 (P_ij over the deviations
    of i and j), since it is a difference of larger numbers.
    """
    deviation = np.sqrt(np.diag(expected))
    scale = np.maximum(np.abs(expected), SMALL * np.outer(deviation, deviation))
    return float((np.abs(found - expected) / scale).max())


@pytest.mark.parametrize('case', CASES)
def test_state_and_covariance_follow_the_core_after_every_event(
    reference_dir: Path, case: str
) -> None:
    """State and all 225 covariances agree to 1e-9 relative after each of some 250 events."""
    folder = reference_dir / 'judge' / 'core' / case
    if not (folder / 'expected_ekf.csv.gz').exists():
        pytest.skip(f'no trace {folder}')
    config = yaml.safe_load((folder / 'config.yaml').read_text(encoding='utf-8'))
    header, events = read_rows(folder / 'measurements.csv.gz')
    assert header[:4] == ['event', 'stamp_ns', 'topic', 'threshold']
    assert header[4].startswith('m_')
    assert header[19].startswith('z_')
    _, expected = read_rows(folder / 'expected_ekf.csv.gz')
    assert len(events) == len(expected) > 100

    dyn = read_dynamics(config)
    initial = matrix(config['initial_estimate_covariance'], 1e-9 * np.eye(N))
    flt = new_filter(np.zeros(N), initial)
    seen = set()
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
        seen.add(happened)
        values = numbers(after[2 : 2 + N + N * N])
        where = f'{case}, event {number} ({happened} at {stamp_ns})'
        assert state_error(flt.state, values[:N]) < TOLERANCE, where
        assert covariance_error(flt.covariance, values[N:].reshape(N, N)) < TOLERANCE, where
    assert 'meas' in seen
