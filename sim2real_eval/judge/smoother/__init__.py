# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The smoother judge: a GTSAM factor graph over the whole recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .smoother import SmootherJudge

__all__ = ['SmootherJudge']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'smoother')
