# SPDX-License-Identifier: Apache-2.0
"""Classes of roughness of the ground ([ISO8608]), quick to import for the options of a command."""

from __future__ import annotations

REFERENCE_FREQUENCY = 0.1
"""n_0, cycles/m."""

ROUGHNESS = {name: 16e-6 * 4.0**k for k, name in enumerate('ABCD')}
"""G_d(n_0), m^3, by class: the geometric means of [ISO8608], table C.1.

The car on springs gets stuck from class E on.
"""

SMOOTH = 'smooth'
"""In place of a class: a plane."""

ROADS = (SMOOTH, *ROUGHNESS)
