# SPDX-License-Identifier: Apache-2.0
"""The filter of the embedded judge with its queue, driven part by part and tick by tick."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sim2real_eval.judge.estimate import LiveEstimate, PartCount, part_counts, quaternions
from sim2real_eval.judge.robot_localization.configuration import FilterConfig
from sim2real_eval.judge.robot_localization.filter import (
    INITIALISED,
    LAST_NS,
    NO_STAMP,
    dynamics_of,
    new_filter,
)
from sim2real_eval.judge.robot_localization.output import new_output
from sim2real_eval.judge.robot_localization.parts import PartName, Parts, new_part_state
from sim2real_eval.judge.robot_localization.queue import (
    grown,
    history_ns,
    larger_history,
    measurements,
    new_history,
    new_queue,
)
from sim2real_eval.judge.robot_localization.replay import (
    Timing,
    deliver,
    filter_tick,
    receive_command,
)
from sim2real_eval.judge.robot_localization.state import ROLL, VX, N
from sim_sensors.core.measurements import FloatArray

__all__ = ['LiveFilter']

_FIRST_QUEUE = 256


class LiveFilter:
    """Runs the kernels of the batch loop on the state of ekf_node or ukf_node.

    Parameters
    ----------
    config : FilterConfig
    parts : Parts
        Configuration of all parts, which the owner may change from one message to the next.
    names : sequence of PartName
        Of the parts.
    textbook : bool
        Whether an unscented filter is the textbook's.
    """

    def __init__(
        self, config: FilterConfig, parts: Parts, names: Sequence[PartName], *, textbook: bool
    ) -> None:
        self.config = config
        self._parts = parts
        self._names = names
        self._dynamics = dynamics_of(config, textbook=textbook)
        self._scratch = (np.zeros(N, dtype=np.int64), np.zeros(N), np.zeros((N, N)))
        self._timing = Timing(
            0, 1, 0, 0, 1, 0, 0, int(config.sensor_timeout * 1e9), history_ns(config),
            config.predict_to_current_time, config.permit_corrected_publication,
            np.array([-1, -1], dtype=np.int64),
        )  # fmt: skip
        self.reset()

    def reset(self) -> None:
        """Forget every message, as a node that has just been started."""
        self._memory = new_part_state(len(self._names), NO_STAMP)
        self._filter = new_filter(self.config.initial_state, self.config.initial_covariance)
        self._discard_measurements()
        self._out = new_output(1, 0, len(self._names))
        self._last_published = NO_STAMP

    def _discard_measurements(self) -> None:
        self._queue = new_queue(_FIRST_QUEUE)
        self._history = new_history(_FIRST_QUEUE if self._timing.history >= 0 else 0)

    def warm_up(self) -> None:
        """Run the compiled kernels once, on what has to be reset afterwards."""
        if self._names:
            self.deliver(0, 0, np.zeros(7), np.zeros((6, 6)), False)
        self.tick(1)

    @property
    def x(self) -> FloatArray:
        """State now, (15,)."""
        return self._filter.x

    @property
    def initialised(self) -> bool:
        """Whether a measurement was processed; before, ticks do nothing."""
        return bool(self._filter.times[INITIALISED])

    @property
    def counts(self) -> tuple[PartCount, ...]:
        """What became of each part of each input since the start or reset."""
        return part_counts(self._names, self._out.counts, self._parts.threshold)

    def deliver(
        self, p: int, stamp_ns: int, value: FloatArray, cov: FloatArray, attitude: bool
    ) -> None:
        """Take a message part; parameters as in `preparation.prepare`."""
        if self._queue.size[1] == 0:
            self._queue = grown(self._queue)
        deliver(
            self._parts, self._memory, self._filter, self._queue, self._out.counts, p, stamp_ns,
            value, cov, attitude,
        )  # fmt: skip

    def command(self, stamp_ns: int, twist: FloatArray) -> None:
        """Take a velocity command, linear and angular, (6,), which acts from its stamp."""
        receive_command(self._memory, self._filter, stamp_ns, twist)

    def tick(self, now_ns: int) -> LiveEstimate | None:
        """Run the timer once; return what it publishes."""
        self._out.n[0] = 0
        if self._timing.history >= 0:
            self._make_room()
        self._last_published = filter_tick(
            self._parts, self._memory, self._filter, self._dynamics, self._timing, self._queue,
            self._history, self._out, self._last_published, now_ns, *self._scratch,
        )  # fmt: skip
        if self._out.n[0] == 0:
            return None
        x = self._out.x[0]
        return LiveEstimate(
            stamp_ns=int(self._out.stamp_ns[0]),
            tick_ns=now_ns,
            position=x[:3].copy(),
            orientation=quaternions(x[None, ROLL:VX])[0],
            linear_velocity=x[VX : VX + 3].copy(),
            angular_velocity=x[VX + 3 : VX + 6].copy(),
            pose_covariance=self._out.pose_covariance[0].copy(),
            twist_covariance=self._out.twist_covariance[0].copy(),
        )

    @property
    def published_pose(self) -> FloatArray:
        """Position and roll, pitch, yaw of what was published last, (6,)."""
        return self._out.x[0, :6]

    def begin_increments_anew(self, p: int) -> None:
        """Forget the previous pose of a differential part."""
        self._memory.seen[p] = 0

    def continue_from(
        self, pose: FloatArray, covariance: FloatArray, stamp_ns: int, now_ns: int
    ) -> None:
        """Continue from a pose at rest; what is older is not taken any more.

        Parameters
        ----------
        pose : (6,) float
            Position and roll, pitch, yaw in the world.
        covariance : (6, 6) float
            Of the pose; that of velocities and accelerations becomes zero, as they do.
        stamp_ns : int
            Of the pose.
        now_ns : int
            Becomes the last measurement time.
        """
        x, P = self._filter.x, self._filter.P
        x[:], P[:] = 0.0, 0.0
        x[:6], P[:6, :6] = pose, covariance
        self._filter.times[LAST_NS] = now_ns
        self._memory.seen[:] = 0
        self._memory.stamp_ns[:] = stamp_ns + 1
        self._discard_measurements()

    def _make_room(self) -> None:
        """Let all that may go back into the queue, or from it into the history, have its place."""
        queued, kept = int(self._queue.size[0]), measurements(self._history)
        while len(self._queue.heap) < queued + kept:
            self._queue = grown(self._queue)
        while len(self._history.state_ns) < queued + kept:
            self._history = larger_history(self._history)
