# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sensor errors from recordings in which the sensor stood still."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .allan import AllanCurve, allan_curve
    from .allan_fit import AllanFit, fit_terms
    from .calibration import Calibration
    from .noise_terms import NoiseTerms
    from .signals import Signals

__all__ = [
    'AllanCurve',
    'AllanFit',
    'Calibration',
    'NoiseTerms',
    'Signals',
    'allan_curve',
    'fit_terms',
]
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__, __all__, 'allan', 'allan_fit', 'noise_terms', 'calibration', 'signals'
    )
