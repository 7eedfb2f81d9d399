# SPDX-License-Identifier: Apache-2.0
"""What the checks of a recording share: its sensors beside what they should have measured."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from sim2real_eval.recording.corrections import CORRECTIONS, ImuCorrection, correct_recording
from sim2real_eval.recording.fields import complete_messages
from sim2real_eval.recording.metadata import FrameTree
from sim2real_eval.recording.recording import IDEAL_ROLES, Recording
from sim2real_eval.recording.truth import local_frame_at_first_fix, select_valid_fixes
from sim2real_eval.simulation.twin import find_span
from sim2real_eval.simulation.twin_maker import TwinMaker, ideal_imu_of_motion
from sim_sensors.core import rotations
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
from sim_sensors.sensor.catalogue import KINDS
from sim_sensors.world.geodesy import STANDARD_GRAVITY
from .delays import EXPLAINED, Delayed, find_delay

# How the values of corrections are rounded; others have six digits.
_FORMS = {
    'delay': '.3f', 'turn': '.1f', 'heading': '.1f', 'body_yaw': '.1f', 'rotation': '.4g',
    'rate_bias': '.4f', 'std': '.2g', 'acceleration_std': '.2g', 'rate_std': '.2g',
}  # fmt: skip
# Doubts about the truth, which concern whatever is held against it.
_OF_TRUTH = {'orientation', 'steps', 'slow truth'}
IdealReader = Callable[[slice], IdealMeasurement]
LEAST_FIXES = 8
LEAST_IMU = 64
_WINDOW_S = 2.0
"""Time over which fixes are differenced: slow errors of a receiver, tens of seconds long, cancel,
and what is left is nearly independent from one window to the next."""


@dataclasses.dataclass(frozen=True)
class Track:
    """Steps of the fixes over 2 s, (n,) complex m (east + i north), and those of the truth."""

    stamps: FloatArray
    measured: FloatArray
    truth: Callable[[FloatArray], FloatArray]
    span: float
    step: int

    @cached_property
    def near(self) -> Delayed:
        """Turn, scale and delay, of some seconds, that take the truth to the fixes.

        Fitted once more without steps that are ten robust deviations off: jumps of either.
        """
        return self._fit()

    @cached_property
    def in_mirror(self) -> Delayed:
        """The same, the truth seen in a mirror."""
        return self._fit(mirrored=True)

    @cached_property
    def fitted(self) -> Delayed:
        """The same as `near` with any delay. A track in a mirror may be one that is later."""
        return self.near if self.in_mirror.explained > EXPLAINED else self._fit(longer=True)

    def _fit(self, *, mirrored: bool = False, longer: bool = False) -> Delayed:
        own = self.measured[self.step :] - self.measured[: -self.step]

        def steps(delay: float) -> FloatArray:
            found = self.truth(self.stamps - delay)
            found = np.conj(found) if mirrored else found
            return found[self.step :] - found[: -self.step]

        first = find_delay(own, steps, self.span, _WINDOW_S, longer=longer)
        true = steps(first.seconds)
        left = np.abs(own - first.gain * true)
        kept = left <= 10.0 * float(np.median(left))
        # What rests most of the time leaves its motion out where the fit is wrong: no jumps.
        moves = float(np.sum(np.abs(true[kept]) ** 2)) > 0.5 * float(np.sum(np.abs(true) ** 2))
        if kept.all() or kept.mean() < 0.5 or not moves:
            return first
        return find_delay(
            own[kept], lambda delay: steps(delay)[kept], self.span, _WINDOW_S, longer=longer
        )


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

    The orientation is computed when it is read, as for two hours at 1 kHz it takes 230 MB.
    """

    rate: FloatArray  # (n, 3) rad/s
    force: FloatArray  # (n, 3) m/s^2
    orientation: Rows  # (n, 4) x y z w, in the world


class Evidence:
    """A recording, and what follows from it, computed when it is asked for.

    A check that finds a cause puts it right with `correct`, so that the checks after it see no
    symptoms of that cause.

    Parameters
    ----------
    maker : TwinMaker, optional
        Of the recording as it is given, where there is one already.

    Attributes
    ----------
    recording : Recording
        As corrected so far.
    base : str
        Body frame.
    noise_free : bool
        Whether `imu` and `fixes` are of the noise-free sensors of a simulator.
    doubtful : set of str
        What was found wrong and nothing puts right: checks that depend on it are skipped.
    """

    def __init__(
        self,
        recording: Recording,
        base: str = 'base_link',
        *,
        noise_free: bool = False,
        maker: TwinMaker | None = None,
    ) -> None:
        self.recording = self._given = recording
        self._maker = maker
        self.base = base
        self.noise_free = noise_free
        self._found: dict[str, Any] = {}
        self.doubtful: set[str] = set()

    def role(self, kind: str) -> str:
        """Return the role that is looked at: `kind`, or that of its noise-free sensor."""
        return IDEAL_ROLES.get(kind, kind) if self.noise_free else kind

    def topic(self, kind: str) -> str:
        """Return the topic of `role`; empty where there is none."""
        return self.recording.roles.get(self.role(kind), '')

    def tried(self, kind: str, **changes: Any) -> Evidence:
        """Return new evidence, of the messages of a role corrected so."""
        role = self.role(kind)
        right = correct_recording(self.recording, {role: CORRECTIONS[role](**changes)})
        return Evidence(right, self.base, noise_free=self.noise_free)

    def of_noise_free(self) -> Evidence:
        """Return evidence of the noise-free sensors, beside the truth as it is corrected here."""
        other = Evidence(self.recording, self.base, noise_free=True)
        other.doubtful = self.doubtful & _OF_TRUTH
        return other

    @property
    def corrections(self) -> dict[str, dict[str, Any]]:
        """What recording.yaml should hold, by role and key; empty where nothing was found.

        What was found is rounded as in remedies, what was set already stays as it is.
        """
        total, given = self.recording.corrections if self._found else {}, self._given.corrections

        def right(role: str, key: str, value: Any) -> Any:
            same = role in given and value == given[role].to_mapping()[key]
            return value if same else _rounded(value, _FORMS.get(key, '.6g'))

        return {
            role: {key: right(role, key, value) for key, value in one.changes.items()}
            for role, one in total.items()
            if one.changes
        }

    def correct(self, kind: str, **changes: Any) -> Any:
        """Put the messages of `role` right; see `CORRECTIONS`.

        What is found one after the other is one correction. It is returned together with what
        recording.yaml has already corrected: what should stand there in total.
        """
        role = self.role(kind)
        make = CORRECTIONS[role]
        self._found[role] = self._found.get(role, make()).followed_by(make(**changes))
        # What an IMU should measure does not depend on what it did; over hours it takes long.
        kept = {'ideal', 'imu_time'} if kind == 'imu' and 'delay' not in changes else set()
        if kept and not self.noise_free:
            kept.add('maker')
        for name, one in vars(Evidence).items():
            if isinstance(one, cached_property) and name not in kept:
                vars(self).pop(name, None)
        self.recording = self._corrected_recording()
        return self.recording.corrections[role]

    def _corrected_recording(self) -> Recording:
        """Return the recording as corrected so far; of an IMU only the stamps.

        Its values are corrected when they are read, see `measured`: a second IMU of two hours at
        1 kHz takes 350 MB.
        """
        given = self._given
        applied = {
            role: ImuCorrection(delay=one.delay) if isinstance(one, ImuCorrection) else one
            for role, one in self._found.items()
        }
        total = {
            role: given.corrections.get(role, type(one)()).followed_by(one)
            for role, one in self._found.items()
            if role in given.roles
        }
        recording = correct_recording(given, applied)
        return dataclasses.replace(recording, corrections={**recording.corrections, **total})

    @cached_property
    def maker(self) -> TwinMaker | None:
        """The recording beside its truth; None without a truth that is a motion."""
        if self.recording.truth is None or 'truth' in self.doubtful:
            return None
        if self._maker is not None and self.recording is self._given:
            return self._maker
        try:
            return TwinMaker(self.recording, seed=0, base_frame=self.base)
        except Sim2RealError:
            return None

    @property
    def truth(self) -> OdometryArray | None:
        """The truth of the base frame."""
        return None if self.maker is None else self.maker.truth

    @cached_property
    def velocities(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray] | None:
        """Of the intervals of the truth their lengths, differences of positions, and recorded
        velocities as they are and turned to the world; None where none are recorded.
        """
        truth = self.truth
        if truth is None or not truth.linear_velocity.any() or len(truth) < 4:
            return None
        steps = intervals(truth)
        moved = np.diff(truth.position, axis=0) / steps[:, None]
        world = rotations.rotate(truth.orientation, truth.linear_velocity)
        own, world = (
            0.5 * (velocity[1:] + velocity[:-1]) for velocity in (truth.linear_velocity, world)
        )
        return steps, moved, own, world

    @cached_property
    def imu(self) -> ImuArray | None:
        """The IMU, while there is truth, if there is any."""
        imu = self._messages('imu')
        imu = complete_messages(imu) if isinstance(imu, ImuArray) else None
        return imu if imu is not None and len(imu) >= LEAST_IMU else None

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
        correction = self._found.get(self.role('imu'))
        if correction is None:
            return values
        # The stamps are corrected already.
        correction = dataclasses.replace(correction, delay=0.0)

        def correct(rows: slice) -> FloatArray:
            corrected: FloatArray = getattr(correction.apply(imu.take(rows)), field)
            return corrected

        if is_steady(values):
            return np.broadcast_to(correct(slice(1))[0], values.shape)
        return Rows(correct, len(imu))

    @cached_property
    def ideal(self) -> Ideal | None:
        """What the IMU should have measured; None without truth or mounting."""
        return None if self.maker is None else self._ideal_on(self.maker.motion)

    @cached_property
    def exact(self) -> Ideal | None:
        """The same on the motion that a noise-free IMU measured; None without one."""
        if self.noise_free or self.maker is None or IDEAL_ROLES['imu'] not in self.recording.roles:
            return None
        try:
            return self._ideal_on(self.maker.motion_for(KINDS.get('imu')))
        except Sim2RealError:
            return None

    def _ideal_on(self, moving: Motion) -> Ideal | None:
        part_of = self.ideal_reader(moving)
        if part_of is None:
            return None
        count = len(self.imu_time)
        rate, force = np.empty((count, 3)), np.empty((count, 3))
        for rows in blocks(count):
            part = part_of(rows)
            rate[rows], force[rows] = part.rate, part.force
        return Ideal(rate, force, Rows(lambda rows: part_of(rows).orientation, count))

    def ideal_reader(self, moving: Motion | None = None) -> IdealReader | None:
        """Return a function of a slice that computes what the IMU should have measured then.

        The motion is by default that of the truth. None without IMU, truth or mounting.
        """
        if self.imu is None or self.maker is None:
            return None
        try:
            place = self.maker.mounting(self.imu.frame)
        except Sim2RealError:
            return None
        time, gravity = self.imu_time, STANDARD_GRAVITY
        motion = self.maker.motion if moving is None else moving
        if motion is not self.maker.motion:
            # With the gravity that the motion of a noise-free IMU was made with.
            gravity = self.maker.world.gravity
        return lambda rows: ideal_imu_of_motion(motion, place, time[rows], gravity)

    @cached_property
    def up(self) -> FloatArray:
        """Where the mean specific force should point, (3,) m/s^2, in the frame of the IMU."""
        if self.ideal is not None:
            return mean_row(self.ideal.force)
        transforms, frame = self.recording.transforms, '' if self.imu is None else self.imu.frame
        try:
            tree = FrameTree(transforms, assume_identity=not transforms)
            turn, _ = tree.lookup(self.base, frame, 'IMU')
        except Sim2RealError:
            turn = np.eye(3)
        return np.asarray(STANDARD_GRAVITY * turn[2])

    @cached_property
    def fixes(self) -> FixArray | None:
        """The fixes, while there is truth, if there is any, that have a position."""
        fixes = self._messages('gps')
        fixes = select_valid_fixes(fixes) if isinstance(fixes, FixArray) else None
        return fixes if fixes is not None and len(fixes) >= LEAST_FIXES else None

    def _messages(self, kind: str) -> MessageArray | None:
        found = self.recording.messages.get(self.topic(kind))
        if found is None or self.maker is None:
            return found
        return found.take(find_span(found.stamp_ns, self.maker.start_ns, self.maker.end_ns))

    @cached_property
    def track(self) -> Track | None:
        """The fixes beside the truth; None where that moves by less than 2 m."""
        fixes, truth = self.fixes, self.truth
        if fixes is None or truth is None or len(truth) < LEAST_FIXES:
            return None
        if float(np.hypot(*np.ptp(truth.position[:, :2], axis=0))) < 2.0:
            return None
        frame = local_frame_at_first_fix(fixes)
        east, north, _ = frame.to_enu(fixes.latitude, fixes.longitude, fixes.altitude).T
        start = truth.stamp_ns[0]
        time, stamps = (seconds(one.stamp_ns, start) for one in (truth, fixes))
        period = float(np.median(np.diff(stamps)))
        step = min(max(round(_WINDOW_S / max(period, 1e-3)), 1), len(stamps) // 2)
        assert self.maker is not None
        try:
            arm, _ = self.maker.mounting(fixes.frame)
        except Sim2RealError:
            return None
        arms = np.tile(arm, (len(truth), 1))
        antenna = truth.position + rotations.rotate(truth.orientation, arms)
        x, y = np.ascontiguousarray(antenna[:, :2].T)

        def at(times: FloatArray) -> FloatArray:
            found = np.interp(times, time, x) + 1j * np.interp(times, time, y)
            return np.asarray(found)

        measured: Any = east + 1j * north
        return Track(stamps, measured, at, float(stamps[-1] - stamps[0]), step)


def _rounded(value: Any, form: str) -> Any:
    if isinstance(value, list):
        return [_rounded(one, form) for one in value]
    return float(format(value, form)) + 0.0 if isinstance(value, float) else value


def intervals(array: MessageArray) -> FloatArray:
    """Return the time from each sample to the next, s."""
    return np.asarray(np.diff(array.stamp_ns) * 1e-9)


def mean_row(rows: FloatArray | Rows) -> FloatArray:
    """Return the mean of rows, (n, k)."""
    return np.asarray(sum_by_blocks(np.asarray, rows) / len(rows))


def block_means(
    function: Callable[..., FloatArray],
    time: FloatArray,
    length: float,
    *values: FloatArray | Rows,
) -> FloatArray:
    """Return the means of `function(*values)`, (n, k), over blocks of time of a length, s.

    Rows do not depend on each other. They are computed where they are needed, as together they may
    be too many for memory.
    """
    number = np.empty(len(time), np.intp)
    for part in blocks(len(time)):
        number[part] = np.floor((time[part] - time[0]) / length)
    starts = np.append(0, np.flatnonzero(number[1:] != number[:-1]) + 1)
    edges = np.append(starts, len(time))
    cuts = np.searchsorted(starts, np.arange(BLOCK, len(time), BLOCK), side='right')
    sums = []
    for low, high in itertools.pairwise([0, *cuts.tolist(), len(starts)]):
        if low < high:
            first, end = edges[low], edges[high]
            rows = function(*(each[first:end] for each in values))
            sums.append(np.add.reduceat(rows, starts[low:high] - first, axis=0))
    means: FloatArray = np.concatenate(sums) / np.diff(edges)[:, None]
    return means
