# SPDX-License-Identifier: Apache-2.0
"""What a wheel study's numbers hang on and do not show."""

from __future__ import annotations

import numpy as np

from sim2real_eval.wheel_study import WheelStudy
from sim_sensors.motions import truth_of

__all__ = ['wheel_notes']

# Of the motion's time without a pose, from which on the columns "with" are those of wheels alone.
_BLIND = 0.1
# Of the road, m: more than that is no level ground.
_UNEVEN = 0.1


def wheel_notes(study: WheelStudy) -> list[str]:
    """Return what to know: a camera that was long blind, a motion that leaves the level ground.

    Parameters
    ----------
    study : WheelStudy
    """
    motion = study.setup.motion
    notes = []
    longest = max(max(variant.blind) for variant in study.variants)
    duration = motion.end - motion.start
    if longest > _BLIND * duration:
        notes.append(
            f'the camera gave no pose for up to {longest:.3g} s of {duration:.3g} s: so long the '
            'wheels are alone, also in the columns "with"'
        )
    height = truth_of(motion).position[:, 2]
    if np.ptp(height) > _UNEVEN:
        notes.append(
            f'the motion rises and falls by {np.ptp(height):.3g} m: wheels and judge know level '
            'ground alone'
        )
    return notes
