# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Roughness classes of roads ([ISO8608]); quick to import for the options of a command."""

from __future__ import annotations

REFERENCE_FREQUENCY = 0.1
"""Reference spatial frequency n_0, cycles/m."""

ROUGHNESS = {name: 16e-6 * 4.0**k for k, name in enumerate('ABCD')}
"""Roughness G_d(n_0), m^3, by class: the geometric means of [ISO8608], table C.1.

Rougher classes are omitted, because the car on springs gets stuck from class E on.
"""

SMOOTH = 'smooth'
"""Name of a perfectly plane road."""

ROADS = (SMOOTH, *ROUGHNESS)
"""Allowed road names."""
