# SPDX-License-Identifier: Apache-2.0
"""Parameters that all sensor models have, each declared once."""

from __future__ import annotations

from typing import Any

from sim_sensors.parameters import parameter

__all__ = ['LONGEST_DELAY', 'latency', 'lever_arm', 'sample_rate']


LONGEST_DELAY = 1e6
"""Of a message that still arrives, s."""


def sample_rate(default: float, doc: str) -> Any:
    """Declare how often a sensor measures, Hz."""
    return parameter(default, 'Hz', doc, minimum=0.0, minimum_excluded=True, read_only=True)


def lever_arm(what: str, default: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Any:
    """Declare where in the body the part of a sensor is that measures the motion, m."""
    return parameter(default, 'm', f'Position of the {what} in the body (forward, left, up).')


def latency() -> Any:
    """Declare the constant part of the delay of the messages; the rest is `Delivery`."""
    doc = 'Time from the stamp to the arrival of the message.'
    # Who gives nanoseconds is told so, before they leave the 64 bits of a stamp.
    return parameter(0.0, 's', doc, minimum=0.0, maximum=LONGEST_DELAY)
