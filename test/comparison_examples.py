# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Twins, a study of them, its outcome and folder, for tests of one comparison."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from sim2real_eval.common.workers import Workers
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.reading import RecordingSource
from sim2real_eval.recording.recording import Recording
from sim2real_eval.report.study_report import finish_study
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.options import StudyOptions
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.plan import StudyPlan
from sim2real_eval.study.recordings import recordings_from_sources
from sim2real_eval.study.run_plan import JudgedScore, Judging, RunPlan
from sim2real_eval.study.runner import run_study
from sim2real_eval.study.study_file import StudyFile
from sim2real_eval.study.variants import StudyJudge
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu

RUNS = [(f'drive_{motion}', n) for motion in ('line', 'circle') for n in (1, 2)]


def twin(gps: str | None, imu: str | None = 'chrono', label: str = '') -> Twin:
    gps_model = None if gps is None else load_gps(gps)
    imu_model = None if imu is None else load_imu(imu)
    return Twin(label or str(gps), gps_model, imu_model)


def study_of(*twins: Twin, judge: str = 'paper_released', **options: object) -> StudyFile:
    """Return a study of one judge, without recordings, to which nothing is adapted."""
    judges = (StudyJudge(judge, 'embedded', JudgeSetup.load(judge)),)
    return StudyFile('Examples', StudyOptions(**{'adapt': 'none', **options}), (), twins, judges)


def compare(folder: Path, paths: list[Path], study: StudyFile, jobs: int = 1) -> StudyOutcome:
    """Run a study of recordings, anew."""
    recordings = recordings_from_sources([RecordingSource(str(path)) for path in paths])
    plan = StudyPlan.from_file(dataclasses.replace(study, recordings=recordings))
    with Workers(jobs) as workers:
        return run_study(plan, folder, workers=workers, overwrite=folder.exists())


def compare_one(recording: Recording, study: StudyFile) -> list[JudgedScore]:
    """Judge and score one recording and its twins."""
    plan = RunPlan(recording, study.twins, Judging(study.judges[0].setup, study.options))
    return [plan.score(run, plan.judge(run)) for run in plan]


def written(folder: Path, paths: list[Path], study: StudyFile, jobs: int = 1) -> Path:
    """Run a study of recordings, with its report; return the folder."""
    finish_study(compare(folder, paths, study, jobs), folder)
    return folder
