# SPDX-License-Identifier: Apache-2.0
"""The 15 states of robot_localization, their order and names; constants of the compiled loops."""

from __future__ import annotations

from typing import Final

__all__ = [
    'AX',
    'AY',
    'AZ',
    'PITCH',
    'ROLL',
    'STATE_NAMES',
    'TWO_D_STATES',
    'VPITCH',
    'VROLL',
    'VX',
    'VY',
    'VYAW',
    'VZ',
    'YAW',
    'N',
    'X',
    'Y',
    'Z',
]

X: Final = 0
Y: Final = 1
Z: Final = 2
ROLL: Final = 3
PITCH: Final = 4
YAW: Final = 5
VX: Final = 6
VY: Final = 7
VZ: Final = 8
VROLL: Final = 9
VPITCH: Final = 10
VYAW: Final = 11
AX: Final = 12
AY: Final = 13
AZ: Final = 14
N: Final = 15

STATE_NAMES: Final = (
    'x',
    'y',
    'z',
    'roll',
    'pitch',
    'yaw',
    'vx',
    'vy',
    'vz',
    'vroll',
    'vpitch',
    'vyaw',
    'ax',
    'ay',
    'az',
)
"""Position and angles in the world frame, velocities and accelerations in base_link."""

TWO_D_STATES: Final = (Z, ROLL, PITCH, VZ, VROLL, VPITCH, AZ)
"""States that `two_d_mode` measures as zero."""
