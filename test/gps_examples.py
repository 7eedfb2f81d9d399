# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Receivers at rest, shared by the tests of GPS models."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim_sensors.motion.scenarios import Standstill

# Bound of statistical comparisons in standard errors: 7e-6 per comparison.
SIGMAS = 4.5


def upstream(noise):
    return dataclasses.replace(noise, variant='as_upstream')


def still(model, n, rate=None):
    """Measure n fixes at rest at the origin."""
    times = np.arange(n) / (rate or model.rate)
    return model.start(1, 'a').measure(Standstill(duration=times[-1] + 1.0).at(times))


def ensemble(noise, steps, runs=400):
    """Errors of many receivers after each of the steps, `(runs, len(steps), 3)`."""
    dt = np.concatenate([[0.0], np.asarray(steps, dtype=np.float64)])
    return np.stack([noise.start(k, 'a', 'gps').advance(dt)[1:] for k in range(runs)])


def lag_one(x):
    return (x[1:] * x[:-1]).mean(0) / (x * x).mean(0)


def variances(fixes):
    return fixes.position_covariance[:, [0, 1, 2], [0, 1, 2]]
