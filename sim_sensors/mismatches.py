# SPDX-License-Identifier: Apache-2.0
"""Features that a tracker takes for one another."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from sim_sensors.measurements import IntArray
from sim_sensors.parameters import Parameters, parameter
from sim_sensors.seeding import stream

__all__ = ['MismatchProcess', 'Mismatches']


@dataclasses.dataclass(frozen=True)
class Mismatches(Parameters):
    """Share of the frames that are affected, and of their correspondences that are wrong.

    Both are probabilities of random events ([Ligorio2015], section 2.1.6): each
    frame is affected or not, and in one that is each correspondence is wrong or not. Those that
    are take each other's places in a cycle in random order, so that none of them is right after
    all; one alone stays right. So of n correspondences n f p (1 - (1 - p)^(n - 1)) are wrong on
    average, f and p being the shares. A frame's mismatches are forgotten with the next frame.
    """

    frames: float = parameter(
        0.0, '1', 'Share of the frames with mismatches.', minimum=0.0, maximum=1.0
    )
    features: float = parameter(
        0.0,
        '1',
        'Share of the correspondences of such a frame that are wrong.',
        minimum=0.0,
        maximum=1.0,
    )

    def start(self, seed: int, run: str, sensor: str) -> MismatchProcess:
        """Return the mismatches of one camera; see `sim_sensors.seeding.stream`."""
        return MismatchProcess(self, stream(seed, run, sensor, 'mismatch'))


class MismatchProcess:
    """Mismatches, frame by frame.

    Parameters
    ----------
    mismatches : Mismatches
        Their shares.
    rng : numpy.random.Generator
        Stream of this source alone.
    """

    def __init__(self, mismatches: Mismatches, rng: np.random.Generator) -> None:
        self._mismatches, self._rng = mismatches, rng

    def mix(self, tracked: NDArray[np.bool_]) -> IntArray:
        """Return what each feature of a scene is taken to be at in the next frame.

        Parameters
        ----------
        tracked : (n,) bool
            Which of the scene's features are seen in this frame and were in the one before.

        Returns
        -------
        (n,) int64
            Index of the feature at whose place each is reported: its own where it is right.
        """
        # Drawn for all, whatever is seen, so that draws of later frames depend on none of it.
        frame = self._rng.random()
        uniform, order = self._rng.random((2, len(tracked)))
        places = np.arange(len(tracked))
        if frame < self._mismatches.frames:
            wrong = np.flatnonzero(tracked & (uniform < self._mismatches.features))
            wrong = wrong[np.argsort(order[wrong], kind='stable')]
            places[wrong] = np.roll(wrong, 1)
        return places
