# SPDX-License-Identifier: Apache-2.0
"""A recording fed to the live judge step by step, in the order of the reference traces."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from sim2real_eval.judge import (
    Case,
    Estimate,
    FilterConfig,
    GpsPosition,
    JudgedRun,
    LiveJudge,
    NavsatConfig,
)
from sim2real_eval.judge.configuration import NAVSAT_TOPIC, topic_name
from sim2real_eval.judge.frames import FrameTree
from sim2real_eval.recording import Recording
from sim_sensors.measurements import MessageArray


@dataclasses.dataclass
class Published:
    """What a live judge published, in order."""

    filtered: list[Estimate] = dataclasses.field(default_factory=list)
    gps: list[GpsPosition] = dataclasses.field(default_factory=list)

    def bits(self) -> bytes:
        return estimate_bits(self.filtered) + gps_bits(self.gps)


def estimate_bits(estimates: list[Any]) -> bytes:
    fields = [field.name for field in dataclasses.fields(Estimate)]
    columns = [np.array([getattr(row, name) for row in estimates]) for name in fields]
    return b''.join(column.tobytes() for column in columns)


def gps_bits(positions: list[Any]) -> bytes:
    fields = [field.name for field in dataclasses.fields(GpsPosition)]
    columns = [np.array([getattr(row, name) for row in positions]) for name in fields]
    return b''.join(column.tobytes() for column in columns)


def batch_bits(judged: JudgedRun) -> bytes:
    """Bits of a batch run, laid out as those of a live one."""
    filtered = [field.name for field in dataclasses.fields(Estimate)]
    gps = ('gps_stamp_ns', 'gps_position', 'gps_covariance')
    return b''.join(getattr(judged, name).tobytes() for name in (*filtered, *gps))


def live_judge(
    recording: Recording, config: FilterConfig, navsat: NavsatConfig | None = None
) -> LiveJudge:
    transforms = recording.transforms
    return LiveJudge(config, navsat, FrameTree(transforms, assume_identity=not transforms))


def arrivals(
    live: LiveJudge, recording: Recording, case: Case
) -> list[tuple[int, str, MessageArray]]:
    """Every message with what takes it, in order of arrival, ties in the order of the case."""
    topics = {topic_name(topic): array for topic, array in recording.messages.items()}
    rank = {topic: number for number, topic in enumerate(case.topics)}
    takers: list[tuple[str, MessageArray | None]] = [
        (source.name, topics[source.topic])
        for source in sorted(live.config.sources, key=lambda s: rank.get(s.topic, len(rank)))
        if live.navsat is None or source.topic != NAVSAT_TOPIC
    ]
    if live.navsat is not None:
        takers.append(('fix', topics.get(case.fix) or recording.gps))
        takers.append(('heading', topics.get(case.heading) or recording.imu))
    takers.append(('command', topics.get('cmd_vel')))
    events = [
        (int(array.arrival_ns[index]), taker, array.take([index]))
        for taker, array in takers
        if array is not None
        for index in range(len(array))
    ]
    return sorted(events, key=lambda event: event[0])


def give(live: LiveJudge, taker: str, message: Any) -> None:
    if taker == 'fix':
        live.see_fix(message)
    elif taker == 'heading':
        live.see_heading(message)
    elif taker == 'command':
        live.see_command(message)
    else:
        live.receive(taker, message)


def step_through(live: LiveJudge, recording: Recording, case: Case | None = None) -> Published:
    """Clock step by clock step: deliver, tick the filter if due, tick navsat_transform if due."""
    case = case or Case()
    clock, events, out = case.clock, arrivals(live, recording, case), Published()
    start = events[0][0] if clock.start_ns is None else clock.start_ns
    period = clock.filter_period_ns or int(1e9 / live.config.frequency)
    origin = start if clock.filter_origin_ns is None else clock.filter_origin_ns
    due, navsat_due, navsat_period = origin + period, 2**62, 1
    if live.navsat is not None:
        navsat_period = clock.navsat_period_ns or int(1e9 / live.navsat.frequency)
        navsat_due = navsat_period + (
            start + 20_000_000 if clock.navsat_origin_ns is None else clock.navsat_origin_ns
        )
    end, i = events[-1][0] + clock.run_on_ns, 0
    while True:
        event = min(due, navsat_due, events[i][0] if i < len(events) else 2**62)
        now = start + max(-((start - event) // clock.step_ns), 0) * clock.step_ns
        if now > end:
            return out
        while i < len(events) and events[i][0] <= now:
            give(live, events[i][1], events[i][2])
            i += 1
        if due <= now:
            due += ((now - due) // period + 1) * period
            estimate = live.tick(now)
            if estimate is not None:
                out.filtered.append(estimate)
        if navsat_due <= now:
            navsat_due += ((now - navsat_due) // navsat_period + 1) * navsat_period
            position = live.navsat_tick()
            if position is not None:
                out.gps.append(position)
