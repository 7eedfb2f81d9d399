# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""robot_localization's nodes, embedded: offline, live and exactly repeatable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .configuration import FilterConfig, NavsatConfig
    from .live import LiveJudge
    from .replay_options import Options, ReplayOptions

__all__ = ['FilterConfig', 'LiveJudge', 'NavsatConfig', 'Options', 'ReplayOptions']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'configuration', 'replay_options', 'live')
