# SPDX-License-Identifier: Apache-2.0
"""Errors of the attitude filter as printed in [Ligorio2015], to be shown beside ours.

Origin: [Ligorio2015], table 4: a box with an MTx and a webcam,
moved by hand for about 140 s before a chessboard. Its motion, field and noise are not printed, so
ours need not agree.
"""

from __future__ import annotations

import numpy as np

__all__ = ['PUBLISHED_REAL', 'PUBLISHED_SIMULATED']

PUBLISHED_SIMULATED = tuple(np.radians([0.11, 0.10, 0.12]).tolist())
"""Root mean square errors of yaw, pitch and roll with simulated sensors, rad."""

PUBLISHED_REAL = tuple(np.radians([0.53, 0.63, 0.96]).tolist())
"""With real ones."""
