# SPDX-License-Identifier: Apache-2.0
"""What a vision system tells of its pose, and the channel that leaves out what is not accepted."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from sim_sensors.delivery import Channel
from sim_sensors.measurements import FloatArray, IntArray, PoseArray

__all__ = ['AcceptedPoseChannel', 'VisionMeasurement']

BoolArray = NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, eq=False)
class VisionMeasurement:
    """Poses from tags, those included that are not accepted.

    Attributes
    ----------
    position : (n, 3)
        Of the body, m, world.
    orientation : (n, 4)
        Quaternion x y z w, body to world.
    covariance : (n, 6, 6)
        As stated: x y z in m^2, rotation about the world's axes in rad^2.
    distance : (n,)
        Mean distance of the camera to the tags in view, m; 0 where there is none.
    count : (n,) int
        Tags in view; 0: there is no pose, and the row holds the true one.
    accepted : (n,) bool
        Whether the pose is sent.
    flipped : (n,) bool
        Whether it is the wrong one of the two that fit a single tag.
    true_position, true_orientation : (n, 3), (n, 4)
        What there was to measure.
    """

    position: FloatArray
    orientation: FloatArray
    covariance: FloatArray
    distance: FloatArray
    count: IntArray
    accepted: BoolArray
    flipped: BoolArray
    true_position: FloatArray
    true_orientation: FloatArray

    def messages(self, stamp_ns: IntArray, frame: str) -> PoseArray:
        """Return geometry_msgs/PoseWithCovarianceStamped stamped `stamp_ns`, arriving at once."""
        return PoseArray(
            stamp_ns=stamp_ns,
            arrival_ns=stamp_ns,
            frame=frame,
            position=self.position,
            orientation=self.orientation,
            pose_covariance=self.covariance,
        )


class AcceptedPoseChannel(Channel):
    """A channel into which only accepted poses are sent.

    Parameters
    ----------
    channel : Channel
        What carries them.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._accepted_poses: BoolArray = np.zeros(0, dtype=np.bool_)

    def expect(self, accepted: BoolArray) -> None:
        """Say which of the next messages offered are accepted, `(n,)`."""
        self._accepted_poses = np.concatenate([self._accepted_poses, accepted])

    def send(self, stamp_ns: IntArray) -> tuple[IntArray, IntArray]:
        """Send those of the next messages that are accepted; see `Channel.send`."""
        n = len(stamp_ns)
        offered = np.flatnonzero(self._accepted_poses[:n])
        self._accepted_poses = self._accepted_poses[n:]
        kept, arrival_ns = self._channel.send(stamp_ns[offered])
        return offered[kept], arrival_ns
