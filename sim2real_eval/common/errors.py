# SPDX-License-Identifier: Apache-2.0
"""Errors about recordings, judges and fits."""

from __future__ import annotations

from sim_sensors.core.errors import Sim2RealError


class RecordingError(Sim2RealError):
    """A recording cannot be read, used or written.

    The message is one line: file or folder, topic or key, what is wrong and what is allowed.
    """


class JudgeError(Sim2RealError):
    """The judge cannot run on this recording with this configuration."""


class FitError(Sim2RealError):
    """A model cannot be fitted to these data."""
