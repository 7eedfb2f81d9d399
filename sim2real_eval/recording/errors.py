# SPDX-License-Identifier: Apache-2.0
"""The one error of this package."""

from __future__ import annotations

from sim_sensors.errors import Sim2RealError

__all__ = ['RecordingError']


class RecordingError(Sim2RealError):
    """A recording cannot be read, trusted or written.

    The message is one line: file or folder, topic or key, what was found and what is allowed.
    """
