# SPDX-License-Identifier: Apache-2.0
"""What goes wrong when a model is fitted."""

from __future__ import annotations

from sim_sensors.errors import Sim2RealError

__all__ = ['FitError']


class FitError(Sim2RealError):
    """A model cannot be fitted to what was given."""
