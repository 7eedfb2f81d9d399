# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Stochastic processes of sensor errors, and the errors of three axes measured together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .processes import Flicker, GaussMarkov, RandomWalk, White

__all__ = ['Flicker', 'GaussMarkov', 'RandomWalk', 'White']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'processes')
