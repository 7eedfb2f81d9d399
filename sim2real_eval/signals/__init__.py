# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Signals of real sensors against those of simulated ones, each against its own truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .agreement import log_spectral_distance, wasserstein
    from .comparison import SignalComparison
    from .options import SignalOptions

__all__ = ['SignalComparison', 'SignalOptions', 'log_spectral_distance', 'wasserstein']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'options', 'comparison', 'agreement')
