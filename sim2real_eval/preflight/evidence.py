# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Evidence of a recording: its sensors beside what they should have measured."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from sim2real_eval.recording.corrections import CORRECTIONS, ImuCorrection, correct_recording
from sim2real_eval.recording.fields import complete_messages
from sim2real_eval.recording.metadata import FrameTree
from sim2real_eval.recording.recording import IDEAL_ROLES, Recording
from sim2real_eval.recording.truth import select_valid_fixes
from sim2real_eval.simulation.twin import find_span
from sim2real_eval.simulation.twin_maker import TwinMaker, ideal_imu_of_motion
from sim_sensors.core.blocks import BLOCK, blocks, is_steady, seconds, sum_by_blocks
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import (
    FixArray,
    FloatArray,
    ImuArray,
    MessageArray,
    OdometryArray,
)
from sim_sensors.imu.imu import IdealMeasurement
from sim_sensors.motion.trajectory import Motion
from sim_sensors.motion.truth_intervals import TruthIntervals
from sim_sensors.sensor.catalogue import KINDS
from sim_sensors.world.geodesy import STANDARD_GRAVITY
from .track import Track, make_track

# Formats by which corrections are rounded; others have six digits.
_FORMATS = {
    'delay': '.3f', 'turn': '.1f', 'heading': '.1f', 'body_yaw': '.1f', 'rotation': '.4g',
    'rate_bias': '.4f', 'std': '.2g', 'acceleration_std': '.2g', 'rate_std': '.2g',
    'orientation_std': '.2g',
}  # fmt: skip
_DOUBTS_ABOUT_TRUTH = {'orientation', 'steps', 'slow truth', 'height'}
_DERIVED = (
    'maker', 'velocities', 'imu', 'imu_time', 'ideal', 'exact', 'up', 'fixes', 'track',
    'truth_interval', 'truth_has_attitude',
)  # fmt: skip
"""Properties that are computed once for the recording as corrected so far."""
_UNCHANGED_BY_VALUES = {'ideal', 'imu_time', 'maker', 'truth_interval', 'truth_has_attitude'}
"""Derived properties that do not depend on the values of an IMU; for hours they are slow."""
T = TypeVar('T')
IdealReader = Callable[[slice], IdealMeasurement]
MIN_FIXES = 8
MIN_IMU_MESSAGES = 64


class Rows:
    """Rows (n, k) that are computed when a slice of them is read.

    Parameters
    ----------
    compute : callable
        Returns the rows of a slice.
    count : int
        Number of rows.
    """

    def __init__(self, compute: Callable[[slice], FloatArray], count: int) -> None:
        self._compute = compute
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, rows: slice) -> FloatArray:
        return self._compute(rows)


class Ideal(NamedTuple):
    """Error-free measurement of an IMU.

    The orientation is computed when it is read, because for two hours at 1 kHz it takes 230 MB.
    """

    rate: FloatArray  # (n, 3) rad/s
    force: FloatArray  # (n, 3) m/s^2
    orientation: FloatArray | Rows  # (n, 4) x y z w, in the world


class Evidence:
    """A recording as corrected so far, and the series that checks compare.

    A check that finds a cause calls `correct`, so that later checks see no symptoms of it.

    Parameters
    ----------
    recording : Recording
        Recording to check.
    base : str
        Body frame.
    noise_free : bool
        Whether `imu` and `fixes` are those of the noise-free sensors of a simulator.
    maker : TwinMaker, optional
        Maker of the twins of this recording, if there is one already.

    Attributes
    ----------
    doubtful : set of str
        Quantities that are wrong and cannot be corrected; checks that need them are skipped.
    """

    def __init__(
        self,
        recording: Recording,
        base: str = 'base_link',
        *,
        noise_free: bool = False,
        maker: TwinMaker | None = None,
    ) -> None:
        self.recording = self._original = recording
        self._original_maker = maker
        self.base = base
        self.noise_free = noise_free
        self._changes: dict[str, Any] = {}
        self._results: dict[Any, Any] = {}
        self._added_lever_arm = np.zeros(3)
        self.doubtful: set[str] = set()

    def once(self, compute: Callable[[Evidence], T]) -> T:
        """Return `compute(self)`, computed once for the present corrections and doubts."""
        key = compute, frozenset(self.doubtful)
        if key not in self._results:
            self._results[key] = compute(self)
        result: T = self._results[key]
        return result

    def role(self, kind: str) -> str:
        """Return the role that is checked: `kind`, or that of its noise-free sensor."""
        return IDEAL_ROLES.get(kind, kind) if self.noise_free else kind

    def topic(self, kind: str) -> str:
        """Return the topic of `role(kind)`; empty if there is none."""
        return self.recording.roles.get(self.role(kind), '')

    def with_correction(self, kind: str, **changes: Any) -> Evidence:
        """Return new evidence with one more correction of a role."""
        role = self.role(kind)
        corrected = correct_recording(self.recording, {role: CORRECTIONS[role](**changes)})
        return Evidence(corrected, self.base, noise_free=self.noise_free)

    def of_noise_free(self) -> Evidence:
        """Return evidence of the noise-free sensors, beside the truth as corrected here."""
        other = Evidence(self.recording, self.base, noise_free=True)
        other.doubtful = self.doubtful & _DOUBTS_ABOUT_TRUTH
        return other

    @property
    def corrections(self) -> dict[str, dict[str, Any]]:
        """Corrections that recording.yaml should contain in total, by role and key.

        Values that were set before stay as they are, and the others are rounded as in remedies.
        Empty if nothing was corrected.
        """
        if not self._changes:
            return {}
        original = self._original.corrections

        def rounded(role: str, key: str, value: Any) -> Any:
            is_set = role in original and value == original[role].to_mapping()[key]
            return value if is_set else _rounded(value, _FORMATS.get(key, '.6g'))

        return {
            role: {key: rounded(role, key, value) for key, value in correction.changes.items()}
            for role, correction in self.recording.corrections.items()
            if correction.changes
        }

    @property
    def changes(self) -> dict[str, Any]:
        """Corrections by role that were added here, rounded as in remedies."""
        totals = self.corrections
        rounded = {}
        for role, change in self._changes.items():
            if role in self._original.corrections:
                rounded[role] = change
            elif role in totals:
                rounded[role] = CORRECTIONS[role].from_mapping(totals[role], role)
        return rounded

    @property
    def lever_arms(self) -> dict[str, list[float]]:
        """Entry `lever_arms` of recording.yaml, m; empty if no lever arm was added."""
        if not self._added_lever_arm.any() or self.fixes is None:
            return {}
        return {'gps': np.round(self.gps_lever_arm(), 2).tolist()}

    def correct(self, kind: str, **changes: Any) -> Any:
        """Correct the messages of `role(kind)`; see `CORRECTIONS`.

        Returns
        -------
        correction
            Total correction of the role, with that of recording.yaml.
        """
        role = self.role(kind)
        make = CORRECTIONS[role]
        self._changes[role] = self._changes.get(role, make()).followed_by(make(**changes))
        only_values = kind == 'imu' and 'delay' not in changes
        unchanged = _UNCHANGED_BY_VALUES if only_values else set()
        if self.noise_free:
            unchanged = unchanged - {'maker'}
        self._results.clear()
        for name in _DERIVED:
            if name not in unchanged:
                vars(self).pop(name, None)
        self.recording = self._corrected_recording()
        return self.recording.corrections[role]

    def _corrected_recording(self) -> Recording:
        """Return the recording as corrected so far; only the stamps of an IMU are corrected.

        Its values are corrected when they are read, see `measured`: a copy of two hours at 1 kHz
        takes 350 MB.
        """
        original = self._original
        applied = {
            role: ImuCorrection(delay=change.delay)
            if isinstance(change, ImuCorrection)
            else change
            for role, change in self._changes.items()
        }
        total = {
            role: original.corrections.get(role, type(change)()).followed_by(change)
            for role, change in self._changes.items()
            if role in original.roles
        }
        recording = correct_recording(original, applied)
        return dataclasses.replace(recording, corrections={**recording.corrections, **total})

    @cached_property
    def maker(self) -> TwinMaker | None:
        """Maker of twins of the recording; None without a truth that is a motion."""
        if self.recording.truth is None or 'truth' in self.doubtful:
            return None
        if self._original_maker is not None and self.recording is self._original:
            return self._original_maker
        try:
            return TwinMaker(self.recording, seed=0, base_frame=self.base)
        except Sim2RealError:
            return None

    @property
    def truth(self) -> OdometryArray | None:
        """Truth of the base frame."""
        return None if self.maker is None else self.maker.truth

    @cached_property
    def truth_interval(self) -> float:
        """Median time between two samples of the truth, s; 0 without truth."""
        truth = self.truth
        return 0.0 if truth is None or len(truth) < 2 else float(np.median(intervals(truth)))

    @cached_property
    def truth_has_attitude(self) -> bool:
        """Whether roll or pitch of the truth change by more than 0.1 deg."""
        truth = self.truth
        if truth is None:
            return False
        x, y, z, w = truth.orientation.T
        up = np.stack([2.0 * (x * z - w * y), 2.0 * (y * z + w * x)])
        return float(np.ptp(up, axis=1).max()) > math.radians(0.1)

    @cached_property
    def velocities(self) -> TruthIntervals | None:
        """Velocities of the truth between its samples; None if it has none."""
        truth = self.truth
        if truth is None or not truth.linear_velocity.any() or len(truth) < 4:
            return None
        return TruthIntervals.from_odometry(truth)

    @cached_property
    def imu(self) -> ImuArray | None:
        """IMU, during the truth if there is one."""
        imu = self.during_truth(self.recording.messages.get(self.topic('imu')))
        imu = complete_messages(imu) if isinstance(imu, ImuArray) else None
        return imu if imu is not None and len(imu) >= MIN_IMU_MESSAGES else None

    @cached_property
    def imu_time(self) -> FloatArray:
        """Times of the IMU, s since the truth began."""
        assert self.imu is not None
        start = self.imu.stamp_ns[0] if self.maker is None else self.maker.start_ns
        return seconds(self.imu.stamp_ns, start)

    def measured(self, field: str) -> FloatArray | Rows:
        """Return a field of the messages of the IMU as corrected so far, (n, ...)."""
        imu = self.imu
        assert imu is not None
        values: FloatArray = getattr(imu, field)
        change = self._changes.get(self.role('imu'))
        if change is None:
            return values
        # The stamps are corrected already.
        change = dataclasses.replace(change, delay=0.0)

        def correct(rows: slice) -> FloatArray:
            corrected: FloatArray = getattr(change.apply(imu.take(rows)), field)
            return corrected

        if is_steady(values):
            return np.broadcast_to(correct(slice(1))[0], values.shape)
        return Rows(correct, len(imu))

    @cached_property
    def ideal(self) -> Ideal | None:
        """Error-free measurement of the IMU; None without truth or mounting."""
        return None if self.maker is None else self._ideal_on(self.maker.motion)

    @cached_property
    def exact(self) -> Ideal | None:
        """`ideal` on the motion that a noise-free IMU measured; None without such an IMU."""
        if self.noise_free or self.maker is None or IDEAL_ROLES['imu'] not in self.recording.roles:
            return None
        try:
            return self._ideal_on(self.maker.motion_for(KINDS.get('imu')))
        except Sim2RealError:
            return None

    def _ideal_on(self, motion: Motion) -> Ideal | None:
        read_ideal = self.ideal_reader(motion)
        if read_ideal is None:
            return None
        count = len(self.imu_time)
        if count <= BLOCK:
            whole = read_ideal(slice(None))
            return Ideal(whole.rate, whole.force, whole.orientation)
        rate, force = np.empty((count, 3)), np.empty((count, 3))
        for rows in blocks(count):
            part = read_ideal(rows)
            rate[rows], force[rows] = part.rate, part.force
        return Ideal(rate, force, Rows(lambda rows: read_ideal(rows).orientation, count))

    def ideal_reader(self, motion: Motion | None = None) -> IdealReader | None:
        """Return a function that computes the error-free measurement of a slice of the IMU.

        The motion is that of the truth by default. None without IMU, truth or mounting.
        """
        if self.imu is None or self.maker is None:
            return None
        try:
            mounting = self.maker.mounting(self.imu.frame)
        except Sim2RealError:
            return None
        time, gravity = self.imu_time, STANDARD_GRAVITY
        motion = motion or self.maker.motion
        if motion is not self.maker.motion:
            # The gravity with which the motion of a noise-free IMU was made.
            gravity = self.maker.world.gravity
        return lambda rows: ideal_imu_of_motion(motion, mounting, time[rows], gravity)

    @cached_property
    def up(self) -> FloatArray:
        """Mean specific force that the IMU should measure, (3,) m/s^2, in its frame."""
        if self.ideal is not None:
            return mean_row(self.ideal.force)
        transforms = self.recording.transforms
        frame = '' if self.imu is None else self.imu.frame
        try:
            tree = FrameTree(transforms, assume_identity=not transforms)
            rotation, _ = tree.lookup(self.base, frame, 'IMU')
        except Sim2RealError:
            rotation = np.eye(3)
        return np.asarray(STANDARD_GRAVITY * rotation[2])

    @cached_property
    def fixes(self) -> FixArray | None:
        """Fixes with a position, during the truth if there is one."""
        messages = self.during_truth(self.recording.messages.get(self.topic('gps')))
        fixes = select_valid_fixes(messages) if isinstance(messages, FixArray) else None
        return fixes if fixes is not None and len(fixes) >= MIN_FIXES else None

    def during_truth(self, messages: MessageArray | None) -> MessageArray | None:
        """Return the messages during the truth; all of them without truth."""
        if messages is None or self.maker is None:
            return messages
        return messages.take(find_span(messages.stamp_ns, self.maker.start_ns, self.maker.end_ns))

    @cached_property
    def track(self) -> Track | None:
        """Fixes beside the truth; None if the truth moves by less than 2 m."""
        return None if self.fixes is None else self.track_of(self.fixes)

    def track_of(self, fixes: FixArray) -> Track | None:
        """Return the track of other fixes, which have the stamps of `self.fixes`."""
        truth, maker = self.truth, self.maker
        if truth is None or maker is None or len(truth) < MIN_FIXES:
            return None
        try:
            return make_track(fixes, truth, self.gps_lever_arm())
        except Sim2RealError:
            return None

    def gps_lever_arm(self) -> FloatArray:
        """Return the position of the antenna in the base frame, (3,) m.

        Sim2RealError without a transform to the frame of the fixes.
        """
        assert self.fixes is not None
        assert self.maker is not None
        lever_arm, _ = self.maker.mounting(self.fixes.frame)
        return np.asarray(lever_arm) + self._added_lever_arm

    def add_gps_lever_arm(self, added: complex) -> None:
        """Add a lever arm, forward + i left, m, to that of the recording."""
        self._added_lever_arm = self._added_lever_arm + np.array([added.real, added.imag, 0.0])
        vars(self).pop('track', None)


def _rounded(value: Any, form: str) -> Any:
    if isinstance(value, list):
        return [_rounded(element, form) for element in value]
    # Adding 0.0 turns -0.0 into 0.0.
    return float(format(value, form)) + 0.0 if isinstance(value, float) else value


def circular_deviation(length: float) -> float:
    """Return the circular standard deviation of angles, deg, from their mean resultant length."""
    return math.degrees(math.sqrt(-2.0 * math.log(min(max(length, 1e-3), 1.0))))


def intervals(array: MessageArray) -> FloatArray:
    """Return the time from each sample to the next, s."""
    return np.asarray(np.diff(array.stamp_ns) * 1e-9)


def mean_row(rows: FloatArray | Rows) -> FloatArray:
    """Return the mean of rows, (n, k)."""
    return np.asarray(sum_by_blocks(np.asarray, rows) / len(rows))
