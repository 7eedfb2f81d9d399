# SPDX-License-Identifier: Apache-2.0
"""A true motion that wheels and a camera measure again and again: simulated or recorded."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from sim2real_eval.recording import DEFAULT_TOPICS, Recording
from sim2real_eval.twin_maker import TwinMaker
from sim_sensors.errors import MotionError
from sim_sensors.measurements import FloatArray, IntArray, OdometryArray
from sim_sensors.motions import truth_of
from sim_sensors.odometry import OdometryMotion
from sim_sensors.planar_steps import body_steps, heading_of, poses_after
from sim_sensors.rotations import rotate_back
from sim_sensors.sampling import seconds
from sim_sensors.trajectory import Motion

__all__ = ['RecordedMotion']

# Below this extent [m] a truth stands: five standard deviations of RTK noise (1 cm) either way.
_STANDSTILL = 0.1
# What a floor may have of unevenness: change of height [m] and tilt [rad].
_EVEN_HEIGHT, _EVEN_TILT = 0.1, math.radians(2.0)
# Errors below this [m] are not told.
_EVEN_ERROR = 0.001


@dataclasses.dataclass(frozen=True, eq=False)
class RecordedMotion:
    """A true motion and its record. Made by `of_motion` or `of_recording`.

    Attributes
    ----------
    recording : Recording
        Its truth alone, that of `base_link`.
    motion : OdometryMotion
        That truth, interpolated; time 0 is its first stamp.
    label : str
        Goes before the labels of the random streams, so that two recordings have noise of their
        own.
    remarks : tuple of str
        What the user should know of the truth.
    """

    recording: Recording
    motion: OdometryMotion
    label: str = ''
    remarks: tuple[str, ...] = ()

    @classmethod
    def of_motion(cls, motion: Motion, name: str) -> RecordedMotion:
        """Return a simulated motion, its truth at 100 Hz."""
        return cls._of_truth(_bare(truth_of(motion), name, name, ''))

    @classmethod
    def of_recording(cls, recording: Recording) -> RecordedMotion:
        """Return the motion of a recording's truth; nothing else of it is taken.

        Raises
        ------
        Sim2RealError
            When there is no truth, or it is no motion.
        """
        truth = recording.require('truth')
        assert isinstance(truth, OdometryArray)
        bare = _bare(truth, recording.name, recording.scenario, recording.path)
        try:
            made = cls._of_truth(dataclasses.replace(bare, transforms=recording.transforms))
        except MotionError as error:
            raise MotionError(f'{recording.path or recording.name}: {error}') from None
        return dataclasses.replace(
            made,
            label=f'{recording.name}/',
            remarks=(*recording.repairs({recording.roles['truth']}), *made.remarks),
        )

    @classmethod
    def _of_truth(cls, bare: Recording) -> RecordedMotion:
        maker = TwinMaker(bare, seed=0)
        truth = maker.truth
        if maker.motion.velocity_source == 'position':
            # The record has none, and whoever holds a judge's speed against it needs one.
            found = maker.motion.at(seconds(truth.stamp_ns, maker.start_ns))
            truth = dataclasses.replace(
                truth, linear_velocity=rotate_back(found.orientation, found.velocity)
            )
        recording = _bare(truth, bare.name, bare.scenario, bare.path)
        return cls(recording, maker.motion, remarks=maker.remarks)

    @property
    def name(self) -> str:
        """Name of the motion or the recording."""
        return self.recording.name

    @property
    def truth(self) -> OdometryArray:
        """The true motion, sampled."""
        truth = self.recording.truth
        assert truth is not None
        return truth

    @property
    def start_ns(self) -> int:
        """First stamp."""
        return int(self.truth.stamp_ns[0])

    @property
    def duration(self) -> float:
        """From the first to the last sample, s."""
        return self.motion.end - self.motion.start

    @property
    def way(self) -> float:
        """Length, m."""
        return float(np.linalg.norm(np.diff(self.truth.position, axis=0), axis=1).sum())

    @property
    def stands(self) -> bool:
        """Whether it never leaves its place in the plane, to 0.1 m."""
        return bool(np.ptp(self.truth.position[:, :2], axis=0).max() < _STANDSTILL)

    @property
    def height(self) -> float:
        """Largest less smallest height, m."""
        return float(np.ptp(self.truth.position[:, 2]))

    @property
    def tilt(self) -> float:
        """Largest angle between up and the body's own up, rad."""
        x, y = self.truth.orientation[:, 0], self.truth.orientation[:, 1]
        norm = np.linalg.norm(self.truth.orientation, axis=1)
        return float(2.0 * np.arcsin(np.minimum(np.hypot(x, y) / norm, 1.0)).max())

    @property
    def planar_error(self) -> float:
        """Rms distance of the place that wheels without any error tell from the true one, m.

        They add up steps in the plane of the body: zero on level ground.
        """
        position, orientation = self.truth.position, self.truth.orientation
        start = np.array([*position[0, :2], heading_of(orientation[0])])
        told = poses_after(start, body_steps(position, orientation))
        error = told[:, :2] - position[1:, :2]
        return float(np.sqrt(np.mean(np.sum(error**2, axis=1))))

    def notes(self) -> tuple[str, ...]:
        """Return the remarks, and what wheels cannot know of the motion."""
        uneven = []
        if self.height > _EVEN_HEIGHT:
            uneven.append(f'rises and falls by {self.height:.3g} m')
        if self.tilt > _EVEN_TILT:
            uneven.append(f'tilts by up to {math.degrees(self.tilt):.3g} degrees')
        if not uneven:
            return self.remarks
        off, error = '', self.planar_error
        if error > _EVEN_ERROR:
            off = f'; without any error of theirs x and y are {error:.2g} m (rms) off'
        return (
            f'the motion {" and ".join(uneven)}: wheels and judge know level ground alone{off}',
            *self.remarks,
        )

    def at(self, stamp_ns: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the true places `(n, 2)` in m and headings `(n,)` in rad at stamps `(n,)`.

        Before the first and after the last sample those of that sample.
        """
        time = seconds(stamp_ns, self.start_ns)
        truth = self.motion.at(np.clip(time, self.motion.start, self.motion.end))
        return truth.position[:, :2], np.array([heading_of(q) for q in truth.orientation])


def _bare(truth: OdometryArray, name: str, scenario: str, path: str) -> Recording:
    topic = DEFAULT_TOPICS['truth']
    return Recording(
        name=name, scenario=scenario, path=path, messages={topic: truth}, roles={'truth': topic}
    )
