# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A transfer that `sim2real transfer` or a study file asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .output import progress_rounds

if TYPE_CHECKING:
    from sim2real_eval.benches.transfer.result import Transfer
    from sim2real_eval.benches.tuning.evaluations import TuningSource
    from sim2real_eval.judge.protocol import Judge
    from sim2real_eval.report.study_report import StudyReport
    from sim2real_eval.study.options import StudyOptions, TransferOptions
    from sim2real_eval.study.outcome import StudyOutcome
    from sim2real_eval.study.plan import StudyPlan
    from sim2real_eval.study.search.engine import EvaluationStore


class TransferRequest(NamedTuple):
    """Everything that a transfer depends on."""

    judge: Judge
    method: TransferOptions
    real: Sequence[TuningSource]
    simulated: Mapping[str, Sequence[TuningSource]]
    blocks: Sequence[str]
    study: StudyOptions

    def store(self, folder: str | Path) -> EvaluationStore:
        """Return the evaluations beside a folder, from which a repetition continues."""
        from sim2real_eval.study.search.engine import EvaluationStore

        return EvaluationStore.for_folder(folder, self._identity())

    def measure(
        self, store: EvaluationStore, jobs: int, *, quiet: bool = False
    ) -> tuple[Transfer, dict[str, Any]]:
        """Measure the transfer with a progress bar; return it and its record."""
        from sim2real_eval.benches.transfer.transfer import measure_transfer
        from sim2real_eval.report.transfer import transfer_record

        with store, progress_rounds('transfer, round {}', quiet=quiet) as begin:
            transfer = measure_transfer(
                self.real, self.simulated, self.judge, self.method, blocks=self.blocks,
                seed=self.study.seed, jobs=jobs, progress=begin, store=store,
            )  # fmt: skip
        record = {
            **transfer_record(transfer, self.method),
            'study': self.study.to_mapping(),
            'simulated': {
                name: _simulated_record(sources) for name, sources in self.simulated.items()
            },
            'search': store.search,
        }
        return transfer, record

    def _identity(self) -> dict[str, Any]:
        """Return the record that identifies the search."""
        from sim2real_eval.benches.transfer.sources import RunSource
        from sim2real_eval.report.search_layout import search_identity

        sources = [*self.real, *(source for twins in self.simulated.values() for source in twins)]
        origins = {
            source.origin.name: source.origin.to_mapping()
            for source in sources
            if isinstance(source, RunSource)
        }
        return search_identity(
            'transfer', self.judge, *sources, names=list(self.simulated), method=self.method,
            blocks=self.blocks, study=self.study, origins=origins,
        )  # fmt: skip


def _simulated_record(sources: Sequence[TuningSource]) -> dict[str, Any]:
    """Return the sensor models, or the recordings of another simulator, as JSON values."""
    from sim2real_eval.benches.transfer.sources import RunSource
    from sim2real_eval.recording.reading import RecordingSource
    from sim2real_eval.report.search_layout import recording_record

    for source in sources:
        if isinstance(source, RunSource) and source.twin is not None:
            return {'sensors': source.twin.to_mapping()}
    return {
        'recordings': [
            recording_record(source, source.expected_name())
            for source in sources
            if isinstance(source, RecordingSource)
        ]
    }


def add_transfer(
    plan: StudyPlan, outcome: StudyOutcome, folder: str, jobs: int, *, quiet: bool = False
) -> StudyReport:
    """Measure the transfer that a study file asks for, unless the folder has it already.

    Returns the report of the study, written again with the transfer.
    """
    from sim2real_eval.benches.transfer.sources import study_sources
    from sim2real_eval.report.study_report import study_report
    from sim2real_eval.study.transfer_record import read_transfer

    assert plan.file.transfer is not None
    judge = plan.file.judges[0].setup
    real, simulated = study_sources(plan, judge)
    blocks = [recording.block for recording in plan.recordings if recording.has_real_run]
    request = TransferRequest(
        judge, plan.file.transfer, real, simulated, blocks, plan.file.options
    )
    record = read_transfer(folder)
    store = request.store(folder)
    if record is not None and record.get('search') == store.search:
        return study_report(outcome, folder)
    _, record = request.measure(store, jobs, quiet=quiet)
    return add_to_report(outcome, folder, record)


def add_to_report(outcome: StudyOutcome, folder: str, record: Mapping[str, Any]) -> StudyReport:
    """Write a transfer into the folder of a study, and its answer and report again."""
    from sim2real_eval.report.study_report import PAGE, study_report, write_report
    from sim2real_eval.report.transfer import add_to_study
    from sim2real_eval.study.runner import write_answer

    add_to_study(folder, record)
    write_answer(Path(folder), outcome)
    report = study_report(outcome, folder)
    write_report(report, Path(folder, PAGE))
    return report
