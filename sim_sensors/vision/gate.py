# SPDX-License-Identifier: Apache-2.0
"""Which poses from tags are accepted."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core.measurements import FloatArray, IntArray, PoseArray
from sim_sensors.core.parameters import Parameters, parameter
from sim_sensors.sensor.delivery import Channel


@dataclasses.dataclass(frozen=True)
class Gate(Parameters):
    """Refuses poses that are likely wrong; by default as Team 3176 did [FRC3176].

    Theirs compares a jump with the estimate of the robot, which a sensor does not have; this one
    compares it with the newest pose that was accepted, plus the way that the robot can have gone
    since.
    """

    enabled: bool = parameter(True, '', 'False: every pose is accepted.')
    single_tag_only: bool = parameter(
        True, '', 'True: poses from several tags are accepted whatever they say.'
    )
    max_height: float = parameter(1.0, 'm', 'Largest |z| of the body; 0: any.', minimum=0.0)
    max_distance: float = parameter(
        7.0, 'm', 'Largest mean distance of the tags; 0: any.', minimum=0.0
    )
    max_jump: float = parameter(
        1.0, 'm', 'Largest jump from the newest pose that was accepted; 0: any.', minimum=0.0
    )
    top_speed: float = parameter(
        5.0, 'm/s', 'Speed of the robot, by which the allowed jump grows with time.', minimum=0.0
    )

    def start(self) -> GateState:
        """Return a gate that has seen nothing."""
        return GateState(self)


class GateState:
    """A gate as poses come; it remembers the newest that it accepted."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._newest: tuple[float, FloatArray] | None = None

    def accepted(
        self, times: FloatArray, position: FloatArray, distance: FloatArray, count: IntArray
    ) -> NDArray[np.bool_]:
        """Return which of the next poses are accepted, `(n,)`.

        Parameters
        ----------
        times : (n,)
            s.
        position : (n, 3)
            Measured, m.
        distance : (n,)
            Mean distance of the tags, m.
        count : (n,)
            Tags in view; 0: there is no pose.
        """
        gate = self._gate
        found = count > 0
        if not gate.enabled:
            return found
        asked = count == 1 if gate.single_tag_only else found
        if gate.max_height > 0.0:
            found &= ~asked | (np.abs(position[:, 2]) <= gate.max_height)
        if gate.max_distance > 0.0:
            found &= ~asked | (distance <= gate.max_distance)
        if gate.max_jump > 0.0:
            for k in np.flatnonzero(found):
                found[k] = not asked[k] or self._is_near(float(times[k]), position[k])
                if found[k]:
                    self._newest = float(times[k]), position[k].copy()
        return found

    def _is_near(self, time: float, position: FloatArray) -> bool:
        if self._newest is None:
            return True
        then, place = self._newest
        step = position - place
        jump = float(np.sqrt(step[0] * step[0] + step[1] * step[1] + step[2] * step[2]))
        return jump <= self._gate.max_jump + self._gate.top_speed * (time - then)


# What a vision system tells of its pose, and the channel that leaves out what is not
# accepted.

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
