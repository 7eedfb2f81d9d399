# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""evaluation_node: VEPD of real bags, judged live on a graph.

docs/reference/ros/evaluation_node.md describes topics, parameters and the written files.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rclpy
from nav_msgs.msg import Odometry
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import String

from sim2real_eval.cli.study_screen import print_study
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.external.publishers import (
    GONE_AFTER_S,
    OtherPublisherError,
    identifiers_of,
    refuse_other_publishers,
)
from sim2real_eval.recording.recording import Recording
from sim2real_eval.report.study_report import finish_study
from sim2real_eval.study.folder import discard_study, hold_study
from sim2real_eval.study.identity import run_identity
from sim2real_eval.study.outcome import describe_failures
from sim2real_eval.study.recordings import StudyRecording
from sim2real_eval.study.run import RunKey
from sim2real_eval.study.run_plan import Judging, PlannedRun, RunPlan
from sim2real_eval.study.run_store import RunStore
from sim2real_eval.study.runner import conclude
from sim_sensors.core.errors import Sim2RealError, one_line
from sim_sensors.ros.diagnostics import Reporter
from sim_sensors.ros.parameters import ParameterNode
from sim_sensors.ros.truth_topics import ODOMETRY_TOPIC
from .evaluation.run import Pace, Pass, Stop, Stopped, Tally, first_difference
from .evaluation.study import LiveStudy

_NAME = 'evaluation_node'
_POLL_S = 0.02
_DELIVERY = Duration(seconds=2)
_PATIENCE_S = GONE_AFTER_S + 15.0
"""Time for which another publisher may stay, s: the user reads the message and ends it."""


class EvaluationNode(ParameterNode):
    """Node that evaluates recordings one after another and publishes its progress.

    `stop` is checked between runs and often during them. Sim2RealError for a wrong parameter, a
    missing recording, an existing result, or a judge that is not installed.
    """

    def __init__(self, stop: Stop, **options: Any) -> None:
        super().__init__(_NAME, automatically_declare_parameters_from_overrides=True, **options)
        self.study = LiveStudy.from_node(self)
        self.tally = Tally(
            self.study.judge.label,
            [recording.name for recording in self.study.plan.recordings],
            [twin.label for twin in self.study.plan.file.twins],
            self.study.plan.file.options.repetitions,
        )
        self.folder = Path(self.study.settings.out)
        self._store = RunStore(self.folder)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self)
        # The conductor spins this node thousands of times, so that it has nothing else to do.
        # Arguments of the process, such as another name, are for the evaluation node.
        self._replay = Node(
            'replay_node',
            namespace=self.get_namespace(),
            context=self.context,
            use_global_arguments=False,
            start_parameter_services=False,
        )
        self._replay_executor = SingleThreadedExecutor(context=self.context)
        self._replay_executor.add_node(self._replay)
        self._last_spin = 0.0
        self._stop = stop
        # This executor is spun during all waits.
        self._replay.create_timer(
            _POLL_S, stop.check, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )
        self._truth_topic = self.resolve_topic_name(ODOMETRY_TOPIC)
        self._truth: Publisher | None = None
        self._truth_identifiers: set[bytes] = set()
        self._patience_s = _PATIENCE_S
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._vepd = self.create_publisher(String, '~/vepd', latched)
        self._reporter = Reporter(self, lambda: self.tally.status(self.get_fully_qualified_name()))

    def destroy_node(self) -> None:
        """Remove the node, and the node that replays for it, from the graph."""
        self._replay.destroy_node()
        super().destroy_node()

    def evaluate(self) -> None:
        """Evaluate all recordings; the tally has the failures, also those after `Stopped`."""
        self.publish_progress()
        try:
            for recording in self.study.plan.recordings:
                try:
                    self._evaluate_recording(recording)
                    self.tally.complete()
                except (Sim2RealError, OSError) as error:
                    self.tally.fail(_error_text(error))
                    self.get_logger().error(f'left out: {self.tally.failures[-1].message}')
                self.tally.running = ''
                self.publish_progress()
        finally:
            self.tally.interrupt()
            self.tally.running = ''
            self.tally.finished = True
            self.publish_progress()

    def _evaluate_recording(self, study_recording: StudyRecording) -> None:
        file = self.study.plan.file
        plan = RunPlan(study_recording.read(), file.twins, Judging(self.study.setup, file.options))
        name = plan.maker.real.name
        exact = self.study.settings.judge == 'judge_node'
        first_real: JudgedRun | None = None
        has_real = False
        for run in plan.twins:
            self._stop.check()
            # An evaluation that was stopped before may have stored both runs.
            real_run, simulated_run = (
                self._store.run(self._key(study_recording, planned))
                for planned in (plan.real, run)
            )
            if real_run is not None and simulated_run is not None:
                if not has_real:
                    self.tally.add(real_run)
                self.tally.add(simulated_run)
                has_real = True
                continue
            label = run.model if run.repetition == 1 else f'{run.model} {run.repetition}'
            self.tally.running = f'{name}, {label}'
            self.publish_progress()
            wall_start = time.monotonic()
            real, simulated, recording, pace = self._play_alone(plan, run)
            if first_real is None:
                first_real = real
                if not has_real:
                    self._store_run(study_recording, plan, plan.real, plan.maker.real, real)
                has_real = True
            elif difference := first_difference(first_real, real, exact=exact):
                self._warn(
                    f'{name}: the estimates of the real side differ with {label}: {difference}'
                )
            rmse = self._store_run(study_recording, plan, run, recording, simulated, pace)
            self.publish_progress()
            self.get_logger().info(
                f'{self.tally.done} of {self.tally.total}: {name}, {label}: RMSE '
                f'{rmse:.4f} m/s in {time.monotonic() - wall_start:.1f} s, '
                f'{pace.factor:.1f} times real time'
            )

    def _warn(self, note: str) -> None:
        self.tally.notes.append(note)
        self.get_logger().warning(note)

    def _play_alone(
        self, plan: RunPlan, run: PlannedRun
    ) -> tuple[JudgedRun, JudgedRun, Recording, Pace]:
        """Play a run, and once more if another node publishes one of its topics; see `_play`."""
        try:
            played = self._play(plan, run)
        except OtherPublisherError as error:
            if not self._patience_s:
                raise
            self._warn(f'{self.tally.running} is repeated: {error}')
            topic = error.topic
        else:
            self._patience_s = _PATIENCE_S
            return played
        # The handler has ended, whose traceback would keep the nodes of the first run.
        self._wait_for_end(topic)
        return self._play(plan, run)

    def _play(
        self, plan: RunPlan, run: PlannedRun
    ) -> tuple[JudgedRun, JudgedRun, Recording, Pace]:
        """Return the real and the simulated run, the simulated recording, and the pace.

        OtherPublisherError if another node publishes one of the topics.
        """
        with Pass(
            node=self._replay,
            executor=self._replay_executor,
            truth=self._claim_truth(),
            setup=self.study.setup,
            plan=plan,
            run=run,
            rate_factor=self.study.settings.rate_factor,
            poll=self._poll,
        ) as played:
            played.play()
            return (*played.judged_runs(), played.recording(), played.pace)

    def _claim_truth(self) -> Publisher:
        """Return the publisher of the truth, whose existence keeps other evaluations waiting.

        OtherPublisherError if another node publishes the truth.
        """
        if self._truth is None:
            refuse_other_publishers(self._replay, self._truth_topic)
            self._truth = self._replay.create_publisher(
                Odometry, self._truth_topic, QoSProfile(depth=100)
            )
            self._truth_identifiers = identifiers_of(self._replay, self._truth_topic)
        return self._truth

    def _wait_for_end(self, topic: str) -> None:
        """Wait until no other node publishes the truth and a topic; give up after a while.

        One of two evaluations that began at the same time gives way.
        """
        foreign = identifiers_of(self._replay, self._truth_topic) - self._truth_identifiers
        if self._truth is not None and foreign and min(foreign) < min(self._truth_identifiers):
            self._replay.destroy_publisher(self._truth)
            self._truth = None
        end = time.monotonic() + self._patience_s
        while time.monotonic() < end:
            try:
                for awaited in (self._truth_topic, topic):
                    refuse_other_publishers(self._replay, awaited)
                return
            except OtherPublisherError:
                self._replay_executor.spin_once(timeout_sec=_POLL_S)
                self._poll()
        # The next recordings do not wait for a node that stays.
        self._patience_s = 0.0

    def _key(self, recording: StudyRecording, run: PlannedRun) -> RunKey:
        return RunKey(self.study.judge.label, recording.name, run.model, run.repetition)

    def _store_run(
        self,
        study_recording: StudyRecording,
        plan: RunPlan,
        run: PlannedRun,
        recording: Recording,
        judged: JudgedRun,
        pace: Pace | None = None,
    ) -> float:
        """Score a run, store it and count it; return its RMSE."""
        key = self._key(study_recording, run)
        scored_run, signals = plan.evaluate(run, self.study.setup, recording, judged, key, '')
        identity = run_identity(study_recording, self.study.judge, run.twin)
        self._store.save(dataclasses.replace(scored_run, identity=identity), signals)
        self.tally.add(scored_run, pace)
        return scored_run.values['rmse']

    def _poll(self) -> None:
        """Spin this node now and then, so that it answers requests."""
        self._stop.check()
        if time.monotonic() > self._last_spin + _POLL_S:
            self._executor.spin_once(timeout_sec=0.0)
            self._last_spin = time.monotonic()

    def publish_progress(self) -> None:
        """Publish the progress, and the VEPD so far."""
        self._vepd.publish(String(data=self.tally.to_json()))
        self._reporter.report()

    def write(self) -> int:
        """Write and print the result; return the exit status."""
        outcome = conclude(self.study.plan, self.folder, self._store, self.tally.failures)
        report = finish_study(outcome, self.folder)
        failures = describe_failures(outcome.record)
        for failure in failures:
            _print_error(f'left out: {failure}')
        print_study(outcome, report, self.folder)
        return 1 if failures else 0

    def wait_for_subscribers(self) -> None:
        """Wait until the subscribers have received the last message."""
        self._vepd.wait_for_all_acked(_DELIVERY)


def main(args: Sequence[str] | None = None) -> int:
    """Run an evaluation to its end; return the exit status."""
    stop = Stop()
    with stop.listening():
        try:
            # The handlers of rclpy are not used, since its context must outlive the signal.
            rclpy.init(
                args=None if args is None else [_NAME, *args],
                signal_handler_options=SignalHandlerOptions.NO,
            )
        except RuntimeError as error:
            return _refuse(str(error))
        try:
            return _evaluate(stop)
        except (Sim2RealError, OSError) as error:
            return _refuse(_error_text(error))
        except Stopped as stopped:
            _print_error(f'{stopped.word}; nothing was written')
            return stopped.status
        finally:
            rclpy.try_shutdown()


def _evaluate(stop: Stop) -> int:
    node = EvaluationNode(stop)
    try:
        with hold_study(node.folder, node.study.plan, overwrite=node.study.settings.overwrite):
            return _evaluate_and_write(node)
    finally:
        # The threads of the middleware end with the last node; none may run at the end.
        node.destroy_node()


def _evaluate_and_write(node: EvaluationNode) -> int:
    status = 0
    try:
        node.evaluate()
    except Stopped as stopped:
        if not node.tally.complete_recordings:
            discard_study(node.folder)
            raise
        status = stopped.status
        _print_error(f'{stopped.word} before the end; complete recordings are written')
    written = node.write()
    node.wait_for_subscribers()
    return status or written


def _error_text(error: Sim2RealError | OSError) -> str:
    if isinstance(error, OSError):
        return f'{error.filename or "input or output"}: {error.strerror or error}'
    return str(error)


def _refuse(problem: str) -> int:
    _print_error(problem.splitlines()[0])
    return 2


def _print_error(problem: str) -> None:
    print(f'{_NAME}: error: {one_line(problem)}', file=sys.stderr, flush=True)


if __name__ == '__main__':
    sys.exit(main())
