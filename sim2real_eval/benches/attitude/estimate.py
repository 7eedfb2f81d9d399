# SPDX-License-Identifier: Apache-2.0
"""An attitude over time, estimated by the quaternion filter, with its covariance."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from sim2real_eval.benches.attitude.events import NAMES, AttitudeEvents, AttitudeInput, events_of
from sim2real_eval.benches.attitude.filter import AttitudeError, filter_events, xi_matrices
from sim2real_eval.benches.attitude.settings import AttitudeSettings
from sim2real_eval.metrics.normalised_squares import Squares
from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray, IntArray


@dataclasses.dataclass(frozen=True, eq=False)
class AttitudeEstimate:
    """What the filter thinks after all samples of a stamp.

    Attributes
    ----------
    stamp_ns : (n,) int64
        Strictly increasing.
    quaternion : (n, 4)
        State: x y z w, world to body.
    covariance : (n, 4, 4)
        Of the state.
    innovations : tuple of Squares
        NIS of each sensor; three degrees of freedom each, since a quaternion has no more.
    """

    stamp_ns: IntArray
    quaternion: FloatArray
    covariance: FloatArray
    innovations: tuple[Squares, ...]

    def __len__(self) -> int:
        return len(self.stamp_ns)

    @property
    def orientation(self) -> FloatArray:
        """Quaternions x y z w, `(n, 4)`, body to world."""
        return rotations.conjugate(self.quaternion)

    @property
    def rotation_covariance(self) -> FloatArray:
        """Covariance `(n, 3, 3)` rad^2 of a small rotation about the body's axes: 4 Xi^T P Xi."""
        xi = xi_matrices(self.quaternion)
        found: FloatArray = 4.0 * np.swapaxes(xi, 1, 2) @ self.covariance @ xi
        return found


def estimate_attitude(
    given: AttitudeInput,
    first: ArrayLike,
    *,
    gravity: float,
    field: ArrayLike = (0.0, 0.0, 0.0),
    settings: AttitudeSettings | None = None,
) -> AttitudeEstimate:
    """Run the filter over the sensors of one run.

    Parameters
    ----------
    given : AttitudeInput
    first : (4,)
        Orientation at the first sample of the IMU, x y z w, body to world; off by
        `settings.initial_std` about each axis.
    gravity : float
        m/s^2.
    field : (3,)
        Magnetic field that the filter expects, T, world.
    settings : AttitudeSettings, optional

    Raises
    ------
    AttitudeError
        When there are too few samples, no noise is known, or the estimate is not finite.
    """
    settings = settings or AttitudeSettings()
    events = events_of(given, settings)
    return estimate_events(
        events, first, gravity=gravity, field=field, initial_std=settings.initial_std
    )


def estimate_events(
    events: AttitudeEvents,
    first: ArrayLike,
    *,
    gravity: float,
    field: ArrayLike,
    initial_std: float,
) -> AttitudeEstimate:
    """Run the filter over samples that are in their order already; see `estimate_attitude`.

    Raises
    ------
    AttitudeError
        When the estimate is not finite.
    """
    quaternion = rotations.conjugate(np.asarray(first, dtype=np.float64)[None])
    xi = xi_matrices(quaternion)[0]
    states, covariances, nis = filter_events(
        events.kind,
        events.dt,
        events.rate,
        events.values,
        events.covariance,
        events.density,
        np.array([0.0, 0.0, gravity]),
        np.asarray(field, dtype=np.float64),
        np.ascontiguousarray(quaternion[0]),
        0.25 * initial_std**2 * xi @ xi.T,
    )
    if not np.isfinite(states).all():
        raise AttitudeError(
            'the estimate is not finite; the covariances that the sensors state must be positive '
            'definite'
        )
    last = np.append(events.stamp_ns[1:] != events.stamp_ns[:-1], True)
    innovations = tuple(
        Squares(
            f'NIS {name}',
            events.stamp_ns[events.kind == kind],
            nis[events.kind == kind],
            np.full(int((events.kind == kind).sum()), 3),
            correlated=False,
        )
        for kind, name in NAMES.items()
        if (events.kind == kind).any()
    )
    return AttitudeEstimate(events.stamp_ns[last], states[last], covariances[last], innovations)
