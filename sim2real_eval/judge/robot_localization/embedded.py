# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The embedded judge: ekf_node and navsat_transform_node on a recording, offline."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim2real_eval.common.findings import Finding, JudgeError
from sim2real_eval.judge.estimate import (
    Corrections,
    JudgedRun,
    part_counts,
    quaternions_from_angles,
)
from sim2real_eval.recording.checks import NOTHING_MEASURED
from sim2real_eval.recording.metadata import FrameTree
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.truth import select_valid_fixes
from sim_sensors.core.blocks import BLOCK
from sim_sensors.core.measurements import FixArray, ImuArray, IntArray, MessageParts, TwistArray
from .advice import (
    NO_FIX_IN_MESSAGES,
    datum_advice,
    divergence,
    front_end_advice,
    input_advice,
    motion_advice,
    mounting_advice,
    part_advice,
    tick_advice,
    twist_advice,
    zone_advice,
)
from .configuration import FilterConfig, NavsatConfig, with_front_end
from .covariances import apply_covariances
from .filter import dynamics_of
from .fixes import FilteredGps, plane_of
from .inputs import Inputs, build_inputs
from .navsat import new_navsat_state
from .parts import new_memory
from .queue import history_ns, new_history, new_queue
from .replay import new_scratch, replay
from .replay_options import Clock, Grids, ReplayOptions
from .state import ROLL, VX, Timing, new_filter, new_output, with_room
from .topics import Routing, delay_messages, route

_FIRST_CAPACITY = 1024
# 28 h at 100 Hz, a file of 7 GB. More ticks mean that clock and messages have different epochs.
_MAX_TICKS = 10_000_000


def judge(
    recording: Recording,
    config: FilterConfig,
    navsat: NavsatConfig | None = None,
    case: ReplayOptions | None = None,
) -> JudgedRun:
    """Estimate the motion in a recording as robot_localization would.

    Parameters
    ----------
    recording : Recording
        Recording with the topics of the configuration. A missing IMU or fix topic is replaced by
        the recording's imu or gps.
    config : FilterConfig
    navsat : NavsatConfig or None
        Parameters of navsat_transform_node, which then publishes `odometry/gps`.
    case : ReplayOptions or None
        Clock, timers and delivery order; None for the defaults.

    Raises
    ------
    JudgeError
        When the recording lacks what the configuration needs.
    """
    case = case or ReplayOptions()
    navsat = with_front_end(navsat, case.front_end)
    return judge_prepared(prepare(recording, config, navsat, case), config, navsat)


@dataclasses.dataclass(frozen=True, eq=False)
class PreparedRecording:
    """Inputs of the event loop from a recording."""

    inputs: Inputs
    timing: Timing
    notes: tuple[Finding, ...]  # findings before the run
    textbook: bool  # unscented filter of the textbook, not of robot_localization
    senders: frozenset[str]  # inputs that have messages


def prepare(
    recording: Recording, config: FilterConfig, navsat: NavsatConfig | None, case: ReplayOptions
) -> PreparedRecording:
    """Prepare the inputs of `judge`; parameters and errors as there."""
    navsat = with_front_end(navsat, case.front_end)
    routing = route(recording, config, navsat, case)
    notes = [*config.notes, *(navsat.notes if navsat else ()), *routing.notes]
    recording, travel_ns = delay_messages(recording, routing, config, case.latency_ns)
    recording = apply_covariances(recording, routing, config, case)
    sources = {
        name: None if topic is None else recording.messages[topic]
        for name, topic in routing.sources.items()
    }
    fixes = None
    if routing.fix is not None and navsat is not None:
        fixes = _fixes(recording, routing.fix, navsat, notes)
    headings = None if routing.heading is None else recording.messages[routing.heading]
    commands = None if routing.command is None else recording.messages[routing.command]
    assert headings is None or isinstance(headings, ImuArray)
    assert commands is None or isinstance(commands, TwistArray)
    transforms = recording.transforms
    if case.transforms is not None:
        transforms, replaced = case.transforms.merge_with(transforms)
        notes += [*case.transforms.notes, *replaced]
    frames = FrameTree(transforms, assume_identity=not transforms)
    inputs = build_inputs(config, navsat, sources, fixes, headings, commands, frames, case.correct)
    bounds = _arrival_bounds(inputs, recording, routing)
    if bounds is None:
        silent = (str(note) for note in recording.notes if note.kind is NOTHING_MEASURED)
        hint = next(silent, 'check its topics')
        raise JudgeError(f'{recording.path}: has no message for the judge; {hint}')
    notes += frames.assumptions
    notes += input_advice(config, navsat, sources, headings, case.correct)
    notes += twist_advice(config, sources, turned=bool(transforms))
    if navsat is not None and fixes is not None:
        notes += datum_advice(navsat, fixes)
    notes += mounting_advice(inputs.parts, inputs.names, sources)
    timing = _timing(config, navsat, case.clock, inputs.navsat_part, bounds, travel_ns)
    if navsat is not None and fixes is not None:
        notes += tick_advice(navsat, fixes.arrival_ns, timing)
    senders = frozenset(
        name for name, array in sources.items() if array is not None and len(array)
    )
    return PreparedRecording(
        inputs, timing, tuple(notes), textbook='unscented' in case.correct, senders=senders
    )


def _arrival_bounds(
    inputs: Inputs, recording: Recording, routing: Routing
) -> tuple[int, int] | None:
    """Return the first arrival that counts, and the last arrival of any message of an input.

    A node also receives, and waits after, messages that it refuses.
    """
    bounds = inputs.arrivals.bounds()
    if bounds is None:
        return None
    last = [
        int(recording.messages[topic].arrival_ns.max()) + recording.late_ns.get(topic, 0)
        for _, topic in routing.topic_inputs
        if len(recording.messages[topic])
    ]
    return bounds[0], max(bounds[1], *last)


def _fixes(
    recording: Recording, topic: str, navsat: NavsatConfig, notes: list[Finding]
) -> FixArray:
    array = recording.messages[topic]
    assert isinstance(array, FixArray)
    valid = select_valid_fixes(array)
    if len(valid) < len(array):
        dropped = len(array) - len(valid)
        notes.append(NO_FIX_IN_MESSAGES(navsat.title, dropped=dropped, received=len(array)))
    is_inside = plane_of(navsat, valid).contains(valid.latitude, valid.longitude)
    if is_inside.all():
        return valid
    notes += zone_advice(navsat, valid, is_inside)
    return valid.take(is_inside)


def _timing(
    config: FilterConfig,
    navsat: NavsatConfig | None,
    clock: Clock,
    navsat_part: IntArray,
    bounds: tuple[int, int],
    travel_ns: int,
) -> Timing:
    first, last = bounds
    grids = Grids(config, navsat, first, clock)
    start, period = grids.start_ns, grids.filter.period_ns
    end = last + travel_ns + clock.run_on_ns
    if end < start or (end - start) // period > _MAX_TICKS:
        raise JudgeError(
            f'clock from {start} to {end} ns with a tick every {period} ns is not allowed; must '
            f'be at most {_MAX_TICKS} ticks. Messages arrive from {first} to {last} ns'
        )
    return Timing(
        start=start,
        step=clock.step_ns,
        end=end,
        filter_origin=grids.filter.origin_ns,
        filter_period=period,
        navsat_origin=start if grids.navsat is None else grids.navsat.origin_ns,
        navsat_period=0 if grids.navsat is None else grids.navsat.period_ns,
        sensor_timeout=int(config.sensor_timeout * 1e9),
        history=history_ns(config),
        predict_to_current_time=config.predict_to_current_time,
        permit_corrected_publication=config.permit_corrected_publication,
        navsat_part=navsat_part,
        navsat_latency=travel_ns,
    )


def judge_prepared(
    prepared: PreparedRecording, config: FilterConfig, navsat: NavsatConfig | None
) -> JudgedRun:
    """Run the judge on a prepared recording; see `judge`.

    Only process noise covariance and initial state of the configuration may differ from those with
    which the recording was prepared.
    """
    inputs, timing, notes = prepared.inputs, prepared.timing, list(prepared.notes)
    ticks = (timing.end - timing.start) // timing.filter_period + 2
    dynamics = dynamics_of(config, textbook=prepared.textbook)
    capacity = _FIRST_CAPACITY
    fixes = len(inputs.navsat.fixes)
    # Estimated corrections per measurement: with a history some are repeated.
    room = 2 if timing.history >= 0 else 1
    filtered_gps = 0
    if navsat is not None and navsat.publish_filtered_gps and timing.navsat_period > 0:
        filtered_gps = max(timing.end - timing.navsat_origin, 0) // timing.navsat_period + 2
    while True:
        out = new_output(ticks, fixes, len(inputs.names), filtered_gps)
        navsat_state = new_navsat_state()
        memory = new_memory(
            len(inputs.names), config.release.previous_tick_ns(timing.filter_origin)
        )
        flt = new_filter(config.initial_state, config.initial_covariance)
        queue, scratch = new_queue(capacity), new_scratch(timing)
        history = new_history(capacity if timing.history >= 0 else 0)
        columns = MessageParts[Corrections]()
        for end, messages in inputs.arrivals.spans(timing):
            # Measurements may wait from previous spans; a fix is a pose and a twist.
            waiting = max(len(messages.part), BLOCK) + int(queue.size.queued)
            max_corrections = room * 2 * waiting
            out = with_room(out, max_corrections)
            full = replay(
                messages, inputs.parts, memory, flt, dynamics, timing._replace(end=end),
                inputs.navsat, navsat_state, queue, history, out, scratch,
            )  # fmt: skip
            if full or out.n[2] > max_corrections:
                break
            rows = out.corrections[: out.n[2]]
            columns.add(
                Corrections(
                    rows['part'].astype(np.int16), rows['stamp_ns'].copy(),
                    rows['states'].astype(np.int16), rows['nis'].copy(),
                    rows['determinant'].copy(),
                )
            )  # fmt: skip
        else:
            break
        # Repeat the run with a larger queue and history, or more space for corrections.
        if full:
            capacity *= 8
        else:
            room *= 2
    n, g, _, f = out.n.tolist()
    corrections = columns.concatenate()
    parts = part_counts(inputs.names, out.counts, inputs.parts['threshold'], corrections)
    notes += part_advice(parts, int(out.stamp_ns[0]) if n else None, prepared.senders)
    notes += motion_advice(out.stamp_ns[:n], out.x[:n, :3], out.x[:n, VX : VX + 3])
    if navsat is not None:
        notes += front_end_advice(config, navsat, navsat_state, fixes=fixes, used=g)
    x, pose_covariance = out.x[:n], out.pose_covariance[:n]
    fix = out.gps_fix[:g]
    filtered, plane = None, inputs.plane
    if f and plane is not None:
        row = out.filtered[:f, 0]
        filtered = FilteredGps(
            navsat_state, plane, config.base_link_frame,
            out.stamp_ns[row], out.filtered[:f, 1],
            x[row, :3], pose_covariance[row, :3, :3],
        )  # fmt: skip
    run = JudgedRun(
        stamp_ns=out.stamp_ns[:n],
        tick_ns=out.tick_ns[:n],
        position=x[:, :3].copy(),
        orientation=quaternions_from_angles(x[:, ROLL:VX]),
        linear_velocity=x[:, VX : VX + 3].copy(),
        angular_velocity=x[:, VX + 3 : VX + 6].copy(),
        pose_covariance=pose_covariance,
        twist_covariance=out.twist_covariance[:n],
        gps_stamp_ns=inputs.navsat.fixes['stamp_ns'][fix],
        gps_position=out.gps_position[:g].copy(),
        gps_covariance=out.gps_covariance[:g].copy(),
        parts=parts,
        notes=tuple(notes),
        corrections=corrections,
        filtered_gps=filtered,
        divergence=divergence(config.sigma_points is not None, prepared.textbook),
    )
    diverged = run.divergence_findings
    return dataclasses.replace(run, notes=(*diverged, *run.notes)) if diverged else run
