# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Pre-flight of recordings before they are used: units, axes, clocks, mounting, covariances.

1. `evidence` holds a recording as corrected so far, with the series that checks compare: fixes
   beside the truth (`track`), and an IMU beside its error-free measurement.
2. `checks` lists the checks, causes before symptoms. The causes of one symptom are hypotheses that
   compete: a check fits a model for each of them, and the likelihood chooses. If two hypotheses
   are equally likely, the finding names both, and nothing is corrected.

   - `messages`, `stuck`: topics, rates, gaps, lost samples, frozen and saturated sensors
   - `clocks`, `delays`: other clocks, clock rates, delays
   - `positions`, `velocities`: axes, turn, scale, lever arm and jumps of truth and fixes
   - `inertial`, `accelerometer`, `orientation`, `witnesses`: unit, sign, mounting, scale and bias
     of an IMU
   - `covariances`, `independence`: stated errors, and a truth that shares those of the fixes
   - `inputs`: other velocities that a judge fuses

3. A cause becomes one finding of `findings`. The check corrects the evidence, so that later checks
   see no symptoms; without a correction it adds a doubt, and checks that depend on it are skipped.
4. `remedies` applies all corrections to the recording in memory and repeats every check. A
   correction that leaves its finding, or makes a check worse, is withheld.
5. `vehicle` pools the corrections of several recordings: a constant of the vehicle has one value.
   `entries` prints it for recording.yaml, or writes it there.

`outcome` holds the results of one recording.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .checks import CHECKS, check
    from .outcome import Preflight

__all__ = ['CHECKS', 'Preflight', 'check']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'checks', 'outcome')
