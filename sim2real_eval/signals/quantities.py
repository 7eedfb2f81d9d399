# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Quantities that sensors measure, in the order of the tables."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Quantity:
    """A physical quantity that a sensor measures, with its `name` in files.

    `axes` are the names of its columns; a single column has an empty name. `sensor` is the role of
    its messages. Errors of a `circular` quantity, an angle, are wrapped.
    """

    name: str
    unit: str
    axes: tuple[str, ...]
    sensor: str
    circular: bool = False

    def labels(self) -> tuple[str, ...]:
        """Return the names of the columns, such as `angular_rate_x`."""
        return tuple(f'{self.name}_{axis}' if axis else self.name for axis in self.axes)


QUANTITIES: tuple[Quantity, ...] = (
    Quantity('angular_rate', 'rad/s', ('x', 'y', 'z'), 'imu'),
    Quantity('specific_force', 'm/s^2', ('x', 'y', 'z'), 'imu'),
    Quantity('yaw', 'rad', ('',), 'imu', circular=True),
    Quantity('position', 'm', ('x', 'y', 'z'), 'gps'),
    Quantity('magnetic_field', 'T', ('x', 'y', 'z'), 'mag'),
)
