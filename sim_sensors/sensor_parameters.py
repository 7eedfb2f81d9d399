# SPDX-License-Identifier: Apache-2.0
"""Parameters that all sensor models have, each declared once."""

from __future__ import annotations

from typing import Any

from sim_sensors.parameters import parameter

__all__ = ['latency', 'lever_arm', 'sample_rate']


def sample_rate(default: float, doc: str) -> Any:
    """Declare how often a sensor measures, Hz."""
    return parameter(default, 'Hz', doc, minimum=0.0, minimum_excluded=True, read_only=True)


def lever_arm(what: str, default: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Any:
    """Declare where in the body the part of a sensor is that feels the motion, m."""
    return parameter(default, 'm', f'Position of the {what} in the body (forward, left, up).')


def latency() -> Any:
    """Declare the constant part of the delay of the messages; the rest is `Delivery`."""
    return parameter(0.0, 's', 'Time from the stamp to the arrival of the message.', minimum=0.0)
