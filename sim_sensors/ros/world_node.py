# SPDX-License-Identifier: Apache-2.0
"""What the nodes of sensors share that measure a world beside the motion."""

from __future__ import annotations

import abc
import functools
from typing import Any

from sim_sensors.ros.sensor_node import SensorNode
from sim_sensors.world.world import World, load_world

__all__ = ['WorldNode']


class WorldNode(SensorNode, abc.ABC):
    """A sensor that measures the world which its parameter `world` names."""

    @functools.cached_property
    def world(self) -> World:
        """What is measured, read once.

        A sensor is switched on anew by a reset, a gap or a changed parameter; its file may be
        another one by then, or gone.
        """
        return load_world(self.declared.get().world)

    def world_arguments(self) -> dict[str, Any]:
        """Return that world."""
        return {'world': self.world}
