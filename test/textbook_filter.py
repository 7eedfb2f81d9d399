# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A textbook filter on dense matrices: what the compiled loops of the judge are held to."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from sim2real_eval.judge.robot_localization.state import (
    INITIALISED,
    LAST_NS,
    PITCH,
    ROLL,
    VX,
    YAW,
    Filter,
    N,
    new_filter,
)

ANGLES = slice(ROLL, VX)


def transfer(x: np.ndarray, dt: float) -> np.ndarray:
    """Motion over dt with constant rates and accelerations; complex x gives derivatives."""
    roll, pitch, yaw = x[ANGLES]
    ones, zero = np.ones_like(roll), np.zeros_like(roll)
    sr, cr, sp, cp = np.sin(roll), np.cos(roll), np.sin(pitch), np.cos(pitch)
    Rz = np.array([[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]])
    Ry = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    Rx = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    E = np.array([[ones, sr * sp / cp, cr * sp / cp], [zero, cr, -sr], [zero, sr / cp, cr / cp]])
    v, w, a = x[6:9], x[9:12], x[12:15]
    moved = x.copy()
    moved[:3] += Rz @ Ry @ Rx @ (v * dt + 0.5 * a * dt * dt)
    moved[ANGLES] += E @ w * dt
    moved[6:9] += a * dt
    return moved


def jacobian(x: np.ndarray, dt: float) -> np.ndarray:
    """Complex-step derivative of the motion, exact to rounding."""
    F = np.empty((N, N))
    for column in range(N):
        step = x.astype(complex)
        step[column] += 1e-30j
        F[:, column] = transfer(step, dt).imag / 1e-30
    return F


def wrapped(angle: np.ndarray) -> np.ndarray:
    return np.arctan2(np.sin(angle), np.cos(angle))


def textbook_predict(
    x: np.ndarray, P: np.ndarray, Q: np.ndarray, dt: float
) -> tuple[np.ndarray, np.ndarray]:
    F = jacobian(x, dt)
    moved = transfer(x, dt)
    moved[ANGLES] = wrapped(moved[ANGLES])
    return moved, F @ P @ F.T + dt * Q


def textbook_correct(
    x: np.ndarray, P: np.ndarray, index: np.ndarray, z: np.ndarray, R: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    H = np.eye(N)[index]
    R = R.copy()
    np.fill_diagonal(R, np.maximum(np.abs(np.diag(R)), 1e-9))
    nu = z - x[index]
    angle = (index >= ROLL) & (index <= YAW)
    nu[angle] = wrapped(nu[angle])
    K = np.linalg.solve(H @ P @ H.T + R, H @ P).T
    corrected = x + K @ nu
    corrected[ANGLES] = wrapped(corrected[ANGLES])
    I_KH = np.eye(N) - K @ H
    return corrected, I_KH @ P @ I_KH.T + K @ R @ K.T


def filter_at(x: np.ndarray, P: np.ndarray, last_ns: int = 0) -> Filter:
    flt = new_filter(np.array(x, dtype=float), np.array(P, dtype=float))
    flt.times[INITIALISED], flt.times[LAST_NS] = 1, last_ns
    return flt


def random_state(rng: np.random.Generator) -> np.ndarray:
    x = rng.normal(size=N) * 3.0
    x[ROLL], x[YAW] = rng.uniform(-math.pi, math.pi, 2)
    x[PITCH] = rng.uniform(-1.4, 1.4)
    return x


def random_covariance(rng: np.random.Generator, size: int, decades: float = 4.0) -> np.ndarray:
    """Positive definite matrix with deviations over several decades."""
    exponent = rng.uniform(-0.5 * decades, 0.5 * decades, size)
    factor = rng.normal(size=(size, size)) * 10.0 ** exponent[:, None]
    return factor @ factor.T + 1e-9 * np.eye(size)


def loosened(covariance: np.ndarray) -> np.ndarray:
    """Halve all correlations."""
    return 0.5 * (covariance + np.diag(np.diag(covariance)))


def relative(actual: np.ndarray, expected: np.ndarray) -> float:
    """Largest error of a covariance entry relative to the deviations of its row and column."""
    deviation = np.sqrt(np.diag(expected))
    return float((np.abs(actual - expected) / np.outer(deviation, deviation)).max())


seeds = st.integers(0, 2**32 - 1)
