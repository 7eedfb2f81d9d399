# SPDX-License-Identifier: Apache-2.0
"""What following the waypoints of a recording may find."""

from __future__ import annotations

from sim2real_eval.common.findings import routine

WAYPOINTS = routine(
    'waypoints.repaired', '{problem!s}', 'Waypoints that no vehicle can follow are left out.'
)
