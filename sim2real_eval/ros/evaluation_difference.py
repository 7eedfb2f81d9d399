# SPDX-License-Identifier: Apache-2.0
"""Whether two judges that were given the same messages said the same."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim2real_eval.judge import JudgedRun
from sim2real_eval.judge.judged import Corrections

__all__ = ['first_difference']

# Velocities, in m/s and rad/s, are what is scored. Positions are the sum of many, and covariances
# of what is not observed grow without bound, so these may differ by a part of their size, too.
_VELOCITIES = ('linear_velocity', 'angular_velocity')
_VELOCITY_TOLERANCE = 1e-4
_TOLERANCE = 1e-3


def first_difference(one: JudgedRun, other: JudgedRun, *, exact: bool) -> str | None:
    """Name the first field in which two runs differ; None when they are alike.

    Parameters
    ----------
    one, other : JudgedRun
    exact : bool
        Every bit and every note counts, as with judge_node. Otherwise stamps and counts do, but
        velocities may lie 1e-4 m/s or rad/s apart, other numbers 1e-3 and a thousandth of
        themselves.
    """
    for field in dataclasses.fields(JudgedRun):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, Corrections) or field.name == 'filtered_gps':
            # Of the embedded judge, whose measurements both runs had; and what follows from the
            # positions, which are compared.
            continue
        if not isinstance(a, np.ndarray):
            # Notes about a real node's numbers hold numbers too.
            if a != b and (exact or field.name != 'notes'):
                return f'{field.name} differ'
        elif a.shape != b.shape:
            return f'{field.name}: {len(a)} and {len(b)} rows'
        elif a.tobytes() != b.tobytes() and (exact or not _near(field.name, a, b)):
            return f'{field.name}: up to {np.abs(a - b).max():.3g} apart'
    return None


def _near(name: str, a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype.kind == 'i':
        return False
    if name in _VELOCITIES:
        return np.allclose(a, b, rtol=0.0, atol=_VELOCITY_TOLERANCE)
    return np.allclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE)
