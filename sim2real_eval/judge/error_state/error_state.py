# SPDX-License-Identifier: Apache-2.0
"""The error-state judge: a GNSS/INS Kalman filter that estimates the biases of its IMU.

Equations: [Sola2017], chapters 5 to 7; [Groves2013], chapter 14. docs/inertial.md has them in the
form used here.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding
from sim2real_eval.judge import findings
from sim2real_eval.judge.error_state.initial_state import (
    first_moving_interval,
    first_state,
    fixes_of_the_start,
    grid,
    merge_events,
)
from sim2real_eval.judge.error_state.loop import InertialEvents, Taken, run
from sim2real_eval.judge.estimate import Corrections, JudgedRun, PartCount
from sim2real_eval.judge.inertial.alignment import first_attitude
from sim2real_eval.judge.inertial.front_end import InertialInputs, inertial_inputs
from sim2real_eval.judge.inertial.settings import InertialJudge, InertialSettings
from sim2real_eval.judge.inertial.strapdown import (
    ATTITUDE,
    ERRORS,
    GYROSCOPE_BIAS,
    POSITION,
    VELOCITY,
)
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.measurements import FloatArray, IntArray


def skew(vectors: FloatArray) -> FloatArray:
    """Return the matrices [a] with [a] b = a x b, (n, 3, 3), of vectors, (n, 3)."""
    x, y, z = vectors.T
    zero = np.zeros_like(x)
    rows = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1)
    return rows.reshape(-1, 3, 3)


def judged_run(
    inputs: InertialInputs,
    settings: InertialSettings,
    events: InertialEvents,
    taken: Taken,
    parts: tuple[PartCount, ...],
    corrections: Corrections,
    notes: tuple[Finding, ...],
) -> JudgedRun:
    """Return the run, its states moved from the IMU to base_link with their covariances.

    The white noise of the gyroscope is in the twist and its covariance as one IMU message has it.
    """
    x, P = taken.x, taken.P
    n = len(x)
    attitude = Rotation.from_quat(x[:, 6:10]) if n else None
    R = attitude.as_matrix() if attitude is not None else np.zeros((0, 3, 3))
    back = R.transpose(0, 2, 1)
    arm = np.broadcast_to(events.base, (n, 3))
    arm_world = np.einsum('nij,nj->ni', R, arm)
    v = x[:, 3:6]
    rate = events.rate[events.out_at] - x[:, 10:13]
    identity = np.eye(3)
    p_, v_, a_, g_ = (
        slice(first, first + 3) for first in (POSITION, VELOCITY, ATTITUDE, GYROSCOPE_BIAS)
    )
    pose, twist = np.zeros((n, 6, ERRORS)), np.zeros((n, 6, ERRORS))
    pose[:, :3, p_] = identity
    pose[:, :3, a_] = -skew(arm_world)
    pose[:, 3:, a_] = identity
    twist[:, :3, v_] = back
    twist[:, :3, a_] = back @ skew(v)
    twist[:, :3, g_] = skew(arm)
    twist[:, 3:, g_] = -identity
    period = float(np.median(np.diff(inputs.imu_ns))) * 1e-9
    shaken = np.vstack([skew(events.base[None])[0], -identity])
    twist_covariance = twist @ P @ twist.transpose(0, 2, 1)
    twist_covariance += shaken @ shaken.T * settings.gyroscope_noise**2 / period

    accepted = np.concatenate([[True], taken.accepted > 0])
    orientations = np.vstack([_first_attitude(x, taken), taken.attitude])
    held = Rotation.from_quat(orientations[accepted]).apply(inputs.antenna)
    gps_covariance = np.zeros((int(np.sum(accepted)), 6, 6))
    gps_covariance[:, :3, :3] = inputs.fix_covariance[accepted]
    stamp_ns = events.time_ns[events.out_at]
    return JudgedRun(
        stamp_ns=stamp_ns,
        tick_ns=stamp_ns,
        position=x[:, :3] + arm_world,
        orientation=x[:, 6:10].copy(),
        linear_velocity=np.einsum('nij,nj->ni', back, v) + np.cross(rate, arm),
        angular_velocity=rate,
        pose_covariance=pose @ P @ pose.transpose(0, 2, 1),
        twist_covariance=twist_covariance,
        gps_stamp_ns=inputs.fix_ns[accepted],
        gps_position=inputs.fix[accepted] - held,
        gps_covariance=gps_covariance,
        parts=parts,
        notes=notes,
        corrections=corrections,
        about_axes=True,
    )


def _first_attitude(x: FloatArray, taken: Taken) -> FloatArray:
    """Attitude, (1, 4), to move the first fix by: that of the first estimate, or of a fix."""
    for known in (x[:1, 6:10], taken.attitude[:1]):
        if len(known):
            return known
    return np.array([[0.0, 0.0, 0.0, 1.0]])


class ErrorStateJudge(InertialJudge):
    """The error-state filter as a judge."""

    kind = 'error_state'

    def judge(
        self,
        recording: Recording,
        *,
        start_ns: int | None = None,
        start_heading: float | None = None,
    ) -> JudgedRun:
        """Judge a recording by `filter_inputs`; see `InertialJudge.judge`."""
        inputs = inertial_inputs(
            recording, self.parameters, start_ns=start_ns, transforms=self.transforms
        )
        return filter_inputs(
            inputs, self.parameters, start_ns=start_ns, start_heading=start_heading
        ).judged


@dataclasses.dataclass(frozen=True, eq=False)
class FilteredRun:
    """A judged run with the filter's whole state.

    Attributes
    ----------
    judged : JudgedRun
    x : (n, 16) float
        State at each estimate; see `sim2real_eval.judge.inertial.strapdown`.
    P : (n, 15, 15) float
        Covariance of its errors.
    """

    judged: JudgedRun
    x: FloatArray
    P: FloatArray


def filter_inputs(
    inputs: InertialInputs,
    settings: InertialSettings,
    *,
    start_ns: int | None = None,
    start_heading: float | None = None,
) -> FilteredRun:
    """Filter what `inertial_inputs` laid out; parameters as in `ErrorStateJudge.judge`."""
    attitude = first_attitude(inputs, settings, start_heading)
    first_ns, last_ns = int(inputs.fix_ns[0]), int(inputs.imu_ns[-1])
    origin_ns = first_ns if start_ns is None else start_ns
    out_ns = grid(origin_ns, first_ns, last_ns, settings.output_frequency)
    events = merge_events(inputs, settings, out_ns, first_fix=1)
    taken = Taken.room(events)
    x, P = first_state(inputs, attitude, settings)
    early, count = (x.copy(), P.copy()), fixes_of_the_start(inputs, settings)
    run(x, P, events, taken)
    # Until the fixes of the start have told the velocity, estimates look ahead at them.
    known_ns = int(inputs.fix_ns[count])
    ahead = int(np.searchsorted(out_ns, known_ns))
    if count and ahead:
        blind = _without_fixes(events, ahead)
        before = Taken.room(blind)
        run(*first_moving_interval(*early, events, count), blind, before)
        taken.x[:ahead], taken.P[:ahead] = before.x, before.P
    notes = [*inputs.notes, *attitude.notes, *_advice(taken, settings)]
    if ahead and count:
        looked = (known_ns - first_ns) * 1e-9
        notes.append(findings.LOOKS_AHEAD(estimates=ahead, time=looked, fixes=count + 1))
    parts, corrections = _parts(inputs, taken, events)
    judged = judged_run(inputs, settings, events, taken, parts, corrections, tuple(notes))
    return FilteredRun(judged, taken.x, taken.P)


def _without_fixes(events: InertialEvents, estimates: int) -> InertialEvents:
    """Return the events of the first estimates alone, without fixes."""
    end = int(events.out_at[estimates - 1]) + 1
    return events._replace(
        time_ns=events.time_ns[:end],
        fix_at=events.fix_at[:0],
        out_at=events.out_at[:estimates],
        hold_at=events.hold_at[events.hold_at < end],
    )


def _advice(taken: Taken, settings: InertialSettings) -> list[Finding]:
    notes = []
    m, refused = len(taken.nis), int(np.sum(taken.accepted == 0))
    forced = int(np.sum(taken.accepted == 2))
    if 2 * refused > m:
        notes.append(findings.FIXES_GATED(gate=settings.gate, refused=refused, fixes=m))
    if forced:
        notes.append(findings.GATE_TIMEOUT(timeout=settings.gate_timeout, count=forced))
    return notes


def _parts(
    inputs: InertialInputs, taken: Taken, events: InertialEvents
) -> tuple[tuple[PartCount, ...], Corrections]:
    used, refused = len(inputs.fix_ns), int(np.sum(taken.accepted == 0))
    parts = [
        PartCount(
            'gps pose',
            inputs.fix_topic,
            received=inputs.fixes_received,
            older=0,
            unusable=inputs.fixes_received - used,
            fused=used - refused,
            rejected=refused,
        )
    ]
    stamps: list[IntArray] = [events.time_ns[events.fix_at]]
    nis, states = [taken.nis], [3]
    held = len(events.hold_at)
    if held:
        parts.append(PartCount('vehicle speed', '', held, 0, 0, held, 0))
        stamps.append(events.time_ns[events.hold_at])
        nis.append(taken.hold_nis)
        states.append(int(np.sum(events.hold > 0.0)))
    sizes = [len(values) for values in nis]
    stamp_ns = np.concatenate(stamps)
    order = np.argsort(stamp_ns, kind='stable')
    return tuple(parts), Corrections(
        part=np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)[order],
        stamp_ns=stamp_ns[order],
        states=np.repeat(np.array(states, dtype=np.int64), sizes)[order],
        nis=np.concatenate(nis)[order],
    )
