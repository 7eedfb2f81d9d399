# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a judge's set-up."""

from __future__ import annotations

from sim_sensors.errors import Sim2RealError

__all__ = ['JudgeError']


class JudgeError(Sim2RealError):
    """The judge cannot be run on this recording with this configuration."""
