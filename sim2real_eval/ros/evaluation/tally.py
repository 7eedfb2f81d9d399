# SPDX-License-Identifier: Apache-2.0
"""Progress of an evaluation: finished runs, VEPD so far, failures; and its interruption."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import signal
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus

from sim2real_eval.common.findings import to_records
from sim2real_eval.metrics.scores import POOLED, RunScore, VepdRow, vepd_table
from sim2real_eval.study.outcome import StudyFailure, StudyRun
from sim_sensors.ros.diagnostics import diagnostic

_ROW_FIELDS = ('model', 'scenario', 'n_real', 'n_sim', 'w_rmse', 'w_entropy', 'vepd')
_RUN_FIELDS = ('rmse', 'entropy_difference', 'forward_rmse', 'duration', 'estimates', 'fixes_used')


@dataclasses.dataclass(frozen=True)
class Pace:
    """Duration of one run, and wall time that it took, s."""

    run_s: float
    wall_s: float

    @property
    def factor(self) -> float:
        """Real-time factor."""
        return self.run_s / self.wall_s if self.wall_s > 0.0 else 0.0


class Tally:
    """Results of the runs of an evaluation, recording by recording.

    A recording is part of the result when all its runs are done, so that all models are compared
    on the same recordings; until then its runs count in the running VEPD only.

    Parameters
    ----------
    judge : str
        Label of the judge.
    recordings : sequence of str
        Names in the order of evaluation.
    models : sequence of str
        Labels of the twins.
    repetitions : int
        Runs of each twin per recording.
    """

    def __init__(
        self, judge: str, recordings: Sequence[str], models: Sequence[str], repetitions: int
    ) -> None:
        self._judge = judge
        self._recordings = list(recordings)
        self._models = list(models)
        self._per_recording = len(models) * repetitions
        self._outcomes: list[list[StudyRun] | StudyFailure] = []
        self._current: list[StudyRun] = []
        self._last: dict[str, Any] | None = None
        self._pace: Pace | None = None
        self.done = 0  # number of judged simulated runs
        self.total = self._per_recording * len(self._recordings)
        self.running = ''  # current run; empty between runs
        self.finished = False  # whether no more runs follow
        self.notes: list[str] = []  # about the evaluation as a whole

    @property
    def current(self) -> str | None:
        """Current or next recording; None after the last."""
        remaining = self._recordings[len(self._outcomes) :]
        return remaining[0] if remaining else None

    def add(self, run: StudyRun, pace: Pace | None = None) -> None:
        """Add a run of the current recording; simulated runs have a `pace`."""
        self._current.append(run)
        if run.is_real:
            return
        self.done += 1
        self._pace = pace
        real = self._current[0]
        self._last = {
            'recording': run.key.recording,
            'scenario': run.scenario,
            'model': run.key.model,
            'repetition': run.key.repetition,
            'real': _scores(real),
            'simulated': _scores(run),
            'notes': to_records(real.notes + run.notes),
        }
        if pace is not None:
            self._last['wall_s'] = pace.wall_s
            self._last['real_time_factor'] = pace.factor

    def complete(self) -> None:
        """Close the current recording, whose runs are all done."""
        self._outcomes.append(self._current)
        self._current = []

    def fail(self, reason: str) -> None:
        """Close the current recording, which could not be evaluated."""
        recording = self.current
        assert recording is not None
        self._outcomes.append(StudyFailure(self._judge, recording, '', reason))
        self._current = []

    def interrupt(self) -> None:
        """Close all remaining recordings of an evaluation that was stopped."""
        while self.current is not None:
            done = sum(not run.is_real for run in self._current)
            self.fail(f'stopped after {done} of {self._per_recording} runs')

    @property
    def complete_recordings(self) -> int:
        """Number of recordings in the result."""
        return sum(not isinstance(outcome, StudyFailure) for outcome in self._outcomes)

    @property
    def failures(self) -> list[StudyFailure]:
        """Recordings that are not in the result, with the reason."""
        return [outcome for outcome in self._outcomes if isinstance(outcome, StudyFailure)]

    def rows(self) -> list[VepdRow]:
        """Return the VEPD of each model so far, against the real runs of the same recordings.

        Ranks are meaningless here, since some models have more runs than others.
        """
        runs = [
            run
            for outcome in [*self._outcomes, self._current]
            if not isinstance(outcome, StudyFailure)
            for run in outcome
        ]
        rows: list[VepdRow] = []
        for model in self._models:
            simulated = [run for run in runs if run.key.model == model]
            names = {run.key.recording for run in simulated}
            real = [run for run in runs if run.is_real and run.key.recording in names]
            if simulated:
                rows += vepd_table(_by_scenario(real), {model: _by_scenario(simulated)})
        return rows

    def to_json(self) -> str:
        """Return everything as one line of JSON."""
        return json.dumps(
            {
                'done': self.done,
                'total': self.total,
                'finished': self.finished,
                'running': self.running,
                'vepd': [
                    {name: getattr(row, name) for name in _ROW_FIELDS} for row in self.rows()
                ],
                'last': self._last,
                'failures': [
                    {'recording': failure.recording, 'reason': failure.reason}
                    for failure in self.failures
                ],
                'notes': self.notes,
            },
            ensure_ascii=False,
        )

    def status(self, name: str) -> DiagnosticStatus:
        """Return the diagnostic status: ERROR with a failure, WARN with a note, otherwise OK."""
        failures = self.failures
        notes = list(self.notes)
        if self._last is not None:
            notes += [note['text'] for note in self._last['notes']]
        level, message = DiagnosticStatus.OK, self.running or 'between runs'
        if self.finished:
            message = 'finished'
        if failures:
            level, message = DiagnosticStatus.ERROR, f'left out: {failures[-1].told}'
        elif notes:
            level, message = DiagnosticStatus.WARN, '; '.join(notes)
        values: list[tuple[str, object]] = [
            ('runs done', self.done),
            ('runs', self.total),
            ('running', self.running),
            ('recordings left out', len(failures)),
        ]
        if self._pace is not None:
            values.append(('real-time factor', f'{self._pace.factor:.3g}'))
        values += [
            (f'VEPD {row.model}', f'{row.vepd:.6g}')
            for row in self.rows()
            if row.scenario == POOLED
        ]
        return diagnostic(f'{name}: evaluation', level, message, values)


def _by_scenario(runs: Sequence[StudyRun]) -> dict[str, list[RunScore]]:
    scores: dict[str, list[RunScore]] = {}
    for run in runs:
        scores.setdefault(run.scenario, []).append(run.score)
    return scores


def _scores(run: StudyRun) -> dict[str, float]:
    return {name: run.values[name] for name in _RUN_FIELDS}


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """Raised when a signal has asked the process to stop."""

    def __init__(self, number: int) -> None:
        self.status = 128 + number
        self.word = 'interrupted' if number == signal.SIGINT else 'terminated'
        super().__init__(self.word)


class Stop:
    """Request to stop by SIGINT or SIGTERM, which `check` raises as an exception.

    An exception in a signal handler may interrupt the start of a process, or be lost where Python
    drops exceptions, such as after a fork. Only a second signal raises at once.
    """

    def __init__(self) -> None:
        self._number: int | None = None

    def check(self) -> None:
        """Raise Stopped if the process was asked to stop."""
        if self._number is not None:
            raise Stopped(self._number)

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Handle the signals inside the block.

        SIGINT is handled even in a background process, which ignores it by default, since
        `ros2 launch` sends it.
        """
        before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.check()
        self._number = number
