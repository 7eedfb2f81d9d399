# SPDX-License-Identifier: Apache-2.0
"""The simulated twin of a recording: the same true motion, measured by sensor models."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim2real_eval.recording import Recording, RecordingError
from sim_sensors import gps, imu
from sim_sensors.environment import DEFAULT_ORIGIN, LocalFrame
from sim_sensors.gps import GpsModel
from sim_sensors.imu import ImuModel
from sim_sensors.measurements import FixArray, FloatArray, ImuArray, MessageArray, OdometryArray
from sim_sensors.odometry import OdometryMotion

__all__ = ['REAL_SENSOR', 'Twin', 'TwinMaker', 'truth_origin', 'within']

REAL_SENSOR = 'real'
"""Stands for a recording's own sensor where a model could be named."""


@dataclasses.dataclass(frozen=True)
class Twin:
    """Which sensors a twin has.

    Attributes
    ----------
    label : str
        Name in tables and files.
    gps : GpsModel or None
        None: the recording's own fixes stay.
    imu : ImuModel or None
        None: the recording's own IMU stays.
    """

    label: str
    gps: GpsModel | None
    imu: ImuModel | None


def within(recording: Recording, start_ns: int, end_ns: int) -> Recording:
    """Return the recording with only the messages stamped in [start, end].

    Raises
    ------
    RecordingError
        When a topic that has a role has nothing there.
    """
    messages: dict[str, MessageArray] = {}
    for topic, array in recording.messages.items():
        messages[topic] = array.take((array.stamp_ns >= start_ns) & (array.stamp_ns <= end_ns))
    for role, topic in recording.roles.items():
        if not len(messages[topic]):
            span = (end_ns - start_ns) * 1e-9
            raise RecordingError(
                f'{recording.path or recording.name}: {topic} ({role}) has no message in the '
                f'{span:.1f} s for which there is truth'
            )
    return dataclasses.replace(recording, messages=messages)


def truth_origin(truth: OdometryArray, fixes: FixArray | None) -> LocalFrame:
    """Return the local frame in which the truth's positions are, as far as the fixes tell.

    A recording does not say where its map frame lies on the Earth. The first fix and the true
    position at its stamp do, to the accuracy of that fix; velocity does not depend on it. Without
    fixes the default origin is taken.
    """
    if fixes is None or not len(fixes):
        return DEFAULT_ORIGIN
    first = int(fixes.stamp_ns[0])
    offset = np.array(
        [np.interp(first, truth.stamp_ns, truth.position[:, axis]) for axis in range(3)]
    )
    fix = [fixes.latitude[:1], fixes.longitude[:1], fixes.altitude[:1]]
    # The axes of the frame at the fix are turned against those at the origin by distance / Earth
    # radius; each pass takes that factor off the error. Six leave less than 1e-6 m over 30 km.
    frame = _frame_at(*fix)
    for _ in range(6):
        frame = _frame_at(*frame.to_geodetic(frame.to_enu(*fix) - offset))
    return frame


def _frame_at(latitude: FloatArray, longitude: FloatArray, altitude: FloatArray) -> LocalFrame:
    return LocalFrame(
        latitude_deg=float(latitude[0]),
        longitude_deg=float(longitude[0]),
        altitude_m=float(altitude[0]),
    )


class TwinMaker:
    """Simulates twins of one recording; the true motion is interpolated once.

    The recording is first cut to the time for which it has truth, so that real and simulated
    sensors are judged over the same span. A simulated sensor starts at the stamp of the first real
    message, so that both meet the judge's timers in the same phase.

    Parameters
    ----------
    recording : Recording
        With truth.
    seed : int
        Of the study.

    Attributes
    ----------
    real : Recording
        The recording, cut to its truth.
    remarks : tuple of str
        What the truth's user should know, from `OdometryMotion`.

    Raises
    ------
    RecordingError
        When there is no truth, or a sensor has no message while there is truth.
    MotionError
        When the truth is no motion, such as fewer than three samples.
    """

    def __init__(self, recording: Recording, *, seed: int) -> None:
        truth = recording.require('truth')
        assert isinstance(truth, OdometryArray)
        self._truth = truth
        self._seed = seed
        self.start_ns, self.end_ns = int(truth.stamp_ns[0]), int(truth.stamp_ns[-1])
        self._motion = OdometryMotion(truth, origin_ns=self.start_ns)
        self.real = within(recording, self.start_ns, self.end_ns)
        self.remarks = self._motion.remarks
        self._frame = truth_origin(truth, self.real.gps)

    @property
    def duration(self) -> float:
        """Time for which there is truth, s."""
        return (self.end_ns - self.start_ns) * 1e-9

    def make(self, twin: Twin, repetition: int = 1) -> Recording:
        """Return the recording with the sensors of `twin` in place of its own.

        Its other topics, such as wheel odometry, stay.

        Parameters
        ----------
        twin : Twin
            Sensors to simulate.
        repetition : int
            Another number gives another draw of the same noise; 1 is the first.
        """
        recording = self.real
        run = recording.name if repetition == 1 else f'{recording.name}#{repetition}'
        truth_base = self._truth.child_frame
        if twin.imu is not None:
            frame = recording.imu.frame if recording.imu is not None else twin.imu.frame_id
            translation, rotation = self._mounting(frame, truth_base)
            measured: ImuArray = imu.simulate(
                twin.imu.mounted(translation, rotation),
                self._motion,
                seed=self._seed,
                run=run,
                start_ns=self._first(recording.imu),
                origin_ns=self.start_ns,
            )
            measured = dataclasses.replace(measured, frame=frame)
            recording = recording.with_messages('imu', measured)
        if twin.gps is not None:
            frame = recording.gps.frame if recording.gps is not None else twin.gps.frame_id
            translation, _ = self._mounting(frame, truth_base)
            fixes: FixArray = gps.simulate(
                twin.gps.mounted(translation),
                self._motion,
                seed=self._seed,
                run=run,
                start_ns=self._first(recording.gps),
                origin_ns=self.start_ns,
                frame=self._frame,
            )
            recording = recording.with_messages('gps', dataclasses.replace(fixes, frame=frame))
        return recording

    def at_real_rates(self, twin: Twin) -> Twin:
        """Return the twin with every simulated sensor at the median rate of the real one."""
        imu_rate, gps_rate = _rate(self.real.imu), _rate(self.real.gps)
        return dataclasses.replace(
            twin,
            imu=twin.imu and dataclasses.replace(twin.imu, rate=imu_rate or twin.imu.rate),
            gps=twin.gps and dataclasses.replace(twin.gps, rate=gps_rate or twin.gps.rate),
        )

    def rate_notes(self, twin: Twin) -> tuple[str, ...]:
        """Say where a simulated sensor's rate is not that of the real one, one line each."""
        notes = []
        for name, model, array in (
            ('GPS', twin.gps, self.real.gps),
            ('IMU', twin.imu, self.real.imu),
        ):
            real = _rate(array)
            if model is not None and real is not None and abs(model.rate / real - 1.0) > 0.1:
                notes.append(
                    f'simulated {name} at {model.rate:g} Hz, real one at {real:.3g} Hz: part of '
                    'the difference is the rate; --match-rates simulates at the real rate'
                )
        return tuple(notes)

    def _first(self, array: MessageArray | None) -> int:
        return self.start_ns if array is None else int(array.stamp_ns[0])

    def _mounting(self, frame: str, base: str) -> tuple[FloatArray, FloatArray]:
        """Pose of a sensor frame in the truth's body frame; coincident when nothing is known."""
        for transform in self.real.transforms:
            if transform.child.strip('/') == frame.strip('/') and (
                transform.parent.strip('/') == base.strip('/')
            ):
                return np.array(transform.translation), np.array(transform.rotation)
        return np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])


def _rate(array: MessageArray | None) -> float | None:
    """Median rate, Hz, rounded to three digits so that jitter does not make odd periods."""
    if array is None or len(array) < 2:
        return None
    return float(f'{1e9 / float(np.median(np.diff(array.stamp_ns))):.3g}')
