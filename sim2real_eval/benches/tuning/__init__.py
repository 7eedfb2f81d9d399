# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Tuning of the parameters of judges to recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from sim2real_eval.study.options import TuneOptions
    from .parameters import Tunable
    from .tuning import Tuning, tune

__all__ = ['Tunable', 'TuneOptions', 'Tuning', 'tune']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'parameters', 'tuning')
