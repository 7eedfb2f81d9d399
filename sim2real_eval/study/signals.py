# SPDX-License-Identifier: Apache-2.0
"""What a judge estimated in one run, and what was true, over time."""

from __future__ import annotations

import dataclasses

from sim_sensors.measurements import FloatArray

__all__ = ['EstimateSignals']


@dataclasses.dataclass(frozen=True, eq=False)
class EstimateSignals:
    """Estimate and truth of one run; times in seconds since the first stamp of the truth.

    Attributes
    ----------
    time : (n,) float
        Of the estimates.
    position, true_position : (n, 3) float
        Metres, in the judge's world frame; the truth laid into it as for NEES, NaN where there is
        none.
    orientation : (n, 4) float
        Quaternions x y z w, body to world.
    velocity : (n, 3) float
        m/s, body frame.
    position_sigma, velocity_sigma : (n, 3) float
        Standard deviations that the judge states, axes as those of position and velocity.
    true_time : (m,) float
        Of the truth, at its own rate.
    true_velocity : (m, 3) float
        m/s, body frame.
    true_orientation : (m, 4) float
        Quaternions x y z w, body to the truth's world.
    """

    time: FloatArray
    position: FloatArray
    true_position: FloatArray
    orientation: FloatArray
    velocity: FloatArray
    position_sigma: FloatArray
    velocity_sigma: FloatArray
    true_time: FloatArray
    true_velocity: FloatArray
    true_orientation: FloatArray
