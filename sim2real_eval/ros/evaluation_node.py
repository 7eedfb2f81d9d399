# SPDX-License-Identifier: Apache-2.0
"""evaluation_node: real bags in, VEPD out, judged live on a graph.

See docs/reference/ros/evaluation_node.md for topics, parameters and what is written.
"""

from __future__ import annotations

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
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import String

from sim2real_eval.cli.study_tables import print_study
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.recording.recording import Recording
from sim2real_eval.report.study_report import finish_study
from sim2real_eval.study.outcome import RunStore
from sim2real_eval.study.recordings import StudyRecording
from sim2real_eval.study.run import RunKey, describe_failures
from sim2real_eval.study.run_plan import Judging, PlannedRun, RunPlan
from sim2real_eval.study.runner import conclude, discard_study, hold_study
from sim_sensors.core.errors import Sim2RealError, one_line
from sim_sensors.ros.diagnostics import Reporter
from sim_sensors.ros.truth_topics import ODOMETRY_TOPIC
from .evaluation.run import Pass, first_difference
from .evaluation.study import Study
from .evaluation.tally import Pace, Stop, Stopped, Tally

_NAME = 'evaluation_node'
_POLL_S = 0.02
_DELIVERY = Duration(seconds=2)


class EvaluationNode(Node):
    """Evaluates recordings one after the other, and tells how far it is.

    `stop` is looked at between runs, and often in them. A wrong parameter, a recording that is
    not there, a result that is, or a judge that is not installed is an error.
    """

    def __init__(self, stop: Stop, **options: Any) -> None:
        super().__init__(_NAME, automatically_declare_parameters_from_overrides=True, **options)
        self.study = Study.of(self)
        self.tally = Tally(
            self.study.judge.label,
            [one.name for one in self.study.plan.recordings],
            [twin.label for twin in self.study.plan.file.twins],
            self.study.plan.file.options.repetitions,
        )
        self.folder = Path(self.study.settings.out)
        self._store = RunStore(self.folder)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self)
        # What leads the judges waits for them thousands of times: it has nothing else to look at.
        # Arguments of this process, such as another name, are for the node that was asked for.
        self._replay = Node(
            'replay_node',
            namespace=self.get_namespace(),
            context=self.context,
            use_global_arguments=False,
            start_parameter_services=False,
        )
        self._replay_executor = SingleThreadedExecutor(context=self.context)
        self._replay_executor.add_node(self._replay)
        self._looked = 0.0
        self._stop = stop
        # This executor is spun wherever there is anything to wait for.
        self._replay.create_timer(
            _POLL_S, stop.check, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )
        self._truth = self._replay.create_publisher(
            Odometry, self.resolve_topic_name(ODOMETRY_TOPIC), QoSProfile(depth=100)
        )
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._vepd = self.create_publisher(String, '~/vepd', latched)
        self._reporter = Reporter(self, lambda: self.tally.status(self.get_fully_qualified_name()))

    def destroy_node(self) -> None:
        """Take it off the graph, with the node that replays for it."""
        self._replay.destroy_node()
        super().destroy_node()

    def evaluate(self) -> None:
        """Run everything; what fails, or is not complete when `Stopped`, is in the tally."""
        self.tell()
        try:
            for one in self.study.plan.recordings:
                try:
                    self._recording(one)
                    self.tally.complete()
                except (Sim2RealError, OSError) as error:
                    self.tally.fail(_problem(error))
                    self.get_logger().error(f'left out: {self.tally.failures[-1].told}')
                self.tally.running = ''
                self.tell()
        finally:
            self.tally.interrupt()
            self.tally.running = ''
            self.tally.finished = True
            self.tell()

    def _recording(self, one: StudyRecording) -> None:
        file = self.study.plan.file
        plan = RunPlan(one.read(), file.twins, Judging(self.study.setup, file.options))
        name = plan.maker.real.name
        exact = self.study.settings.judge == 'judge_node'
        first: JudgedRun | None = None
        told = False
        for run in plan.twins:
            self._stop.check()
            # What an evaluation that was stopped has left need not be played again.
            known = [self._store.run(self._key(one, each)) for each in (plan.real, run)]
            if known[0] is not None and known[1] is not None:
                for found in known[told:]:
                    assert found is not None
                    self.tally.add(found)
                told = True
                continue
            label = run.model if run.repetition == 1 else f'{run.model} {run.repetition}'
            self.tally.running = f'{name}, {label}'
            self.tell()
            began = time.monotonic()
            with Pass(
                node=self._replay,
                executor=self._replay_executor,
                truth=self._truth,
                setup=self.study.setup,
                plan=plan,
                run=run,
                rate_factor=self.study.settings.rate_factor,
                poll=self._poll,
            ) as played:
                played.play()
                real, simulated = played.judged()
                recording = played.recording()
            if first is None:
                first = real
                if not told:
                    self._keep(one, plan, plan.real, plan.maker.real, real)
                told = True
            elif difference := first_difference(first, real, exact=exact):
                note = f'{name}: the real side was judged otherwise with {label}: {difference}'
                self.tally.notes.append(note)
                self.get_logger().warning(note)
            rmse = self._keep(one, plan, run, recording, simulated, played.pace)
            self.tell()
            self.get_logger().info(
                f'{self.tally.done} of {self.tally.total}: {name}, {label}: RMSE '
                f'{rmse:.4f} m/s in {time.monotonic() - began:.1f} s, '
                f'{played.pace.factor:.1f} times real time'
            )

    def _key(self, one: StudyRecording, run: PlannedRun) -> RunKey:
        return RunKey(self.study.judge.label, one.name, run.model, run.repetition)

    def _keep(
        self,
        one: StudyRecording,
        plan: RunPlan,
        run: PlannedRun,
        recording: Recording,
        judged: JudgedRun,
        pace: Pace | None = None,
    ) -> float:
        """Score a run, store it and count it; return its RMSE."""
        key = self._key(one, run)
        found, signals = plan.kept(run, self.study.setup, recording, judged, key, '')
        self._store.save(found, signals)
        self.tally.add(found, pace)
        return found.values['rmse']

    def _poll(self) -> None:
        """Answer whoever asks this node, now and then."""
        self._stop.check()
        if time.monotonic() > self._looked + _POLL_S:
            self._executor.spin_once(timeout_sec=0.0)
            self._looked = time.monotonic()

    def tell(self) -> None:
        """Publish how far it is, and the VEPD so far."""
        self._vepd.publish(String(data=self.tally.to_json()))
        self._reporter.report()

    def write(self) -> int:
        """Write and print the result, an error when there is none; return the exit status."""
        outcome = conclude(self.study.plan, self.folder, self._store, self.tally.failures)
        report = finish_study(outcome, self.folder)
        failures = describe_failures(outcome.record)
        for failure in failures:
            _complain(f'left out: {failure}')
        print_study(outcome, report, self.folder)
        return 1 if failures else 0

    def wait_for_subscribers(self) -> None:
        """Give the last message time to reach those who listen."""
        self._vepd.wait_for_all_acked(_DELIVERY)


def main(args: Sequence[str] | None = None) -> int:
    """Run an evaluation to its end; return the exit status."""
    stop = Stop()
    with stop.listening():
        try:
            # No handlers of rclpy: its context has to outlive the signal, to end everything.
            rclpy.init(
                args=None if args is None else [_NAME, *args],
                signal_handler_options=SignalHandlerOptions.NO,
            )
        except RuntimeError as error:
            return _refuse(str(error))
        try:
            return _evaluate(stop)
        except (Sim2RealError, OSError) as error:
            return _refuse(_problem(error))
        except Stopped as stopped:
            _complain(f'{stopped.word}; nothing was written')
            return stopped.status
        finally:
            rclpy.try_shutdown()


def _evaluate(stop: Stop) -> int:
    node, status = EvaluationNode(stop), 0
    with hold_study(node.folder, node.study.plan, overwrite=node.study.settings.overwrite):
        try:
            node.evaluate()
        except Stopped as stopped:
            if not node.tally.complete_recordings:
                discard_study(node.folder)
                raise
            status = stopped.status
            _complain(f'{stopped.word} before the end; what is complete is written')
        written = node.write()
        node.wait_for_subscribers()
    return status or written


def _problem(error: Sim2RealError | OSError) -> str:
    if isinstance(error, OSError):
        return f'{error.filename or "input or output"}: {error.strerror or error}'
    return str(error)


def _refuse(problem: str) -> int:
    _complain(problem.splitlines()[0])
    return 2


def _complain(problem: str) -> None:
    print(f'{_NAME}: error: {one_line(problem)}', file=sys.stderr, flush=True)


if __name__ == '__main__':
    sys.exit(main())
