# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Surroundings of the sensors: geodesy, gravity, magnetic field and landmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .earth import EarthField, Gravity, normal_gravity
    from .geodesy import LocalFrame
    from .world import Tags, World, load_world

__all__ = ['EarthField', 'Gravity', 'LocalFrame', 'Tags', 'World', 'load_world', 'normal_gravity']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'world', 'geodesy', 'earth')
