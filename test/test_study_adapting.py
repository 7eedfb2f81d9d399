# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Options are derived from the real recordings unless they are given or refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_examples import segments
from study_file_examples import write_study_file

from sim2real_eval import simulate
from sim2real_eval.common.findings import RecordingError
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.recording.reading import RecordingSource
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.options import ADAPTED, StudyOptions
from sim2real_eval.study.recordings import adapt_options, read_contents, recordings_from_sources
from sim2real_eval.study.run_plan import Judging, RunPlan
from sim2real_eval.study.study_file import StudyFile
from sim2real_eval.study.variants import StudyJudge
from sim_sensors import motion_of
from sim_sensors.core.errors import ParameterError
from sim_sensors.gps.gps import load_gps

NAMES = ('clean', 'paper_released')
JUDGES = [StudyJudge(name, 'embedded', JudgeSetup.load(name)) for name in NAMES]
TWINS = [Twin('airsim', load_gps('airsim'), None)]


def read(folder: Path, changes: dict[str, object]) -> StudyFile:
    return StudyFile.read(write_study_file(folder, changes))


def test_all_options_are_derived_once_from_clips_of_a_car(real_dir: Path) -> None:
    """The car drives at up to 14 m/s, truth and fixes have 4 Hz, the IMU has no orientation."""
    drive = recordings_from_sources(
        [RecordingSource(str(path)) for path in segments(real_dir, (0, 1, 10))]
    )
    options, notes = adapt_options(StudyOptions(), drive, TWINS, JUDGES)
    assert (options.metric.rate, options.metric.warmup, options.match_rates) == (4.0, 5.0, True)
    # These two are decided by each judge.
    assert options.adapt == 'start_heading,off_ticks'
    words = {note.code: note.words for note in notes}
    assert words['study.start_heading'] == words['study.off_ticks'] == {'judges': 'clean'}
    assert len(notes) == 5
    again, _ = adapt_options(options, drive, TWINS, JUDGES)
    assert again == options
    assert adapt_options(options, drive, TWINS, JUDGES[1:])[0].adapt == 'none'


def test_explicit_options_and_options_excluded_from_adaptation_are_unchanged(
    real_dir: Path,
) -> None:
    (path,) = segments(real_dir, (1,))
    drive = recordings_from_sources([RecordingSource(str(path))])
    chosen = StudyOptions(metric=MetricOptions(rate=9.0, warmup=1.0))
    options, notes = adapt_options(chosen, drive, TWINS, JUDGES)
    assert options.metric == chosen.metric
    assert not {note.code for note in notes} & {'study.rate', 'study.warmup'}
    refused = StudyOptions().without_deriving(ADAPTED)
    assert adapt_options(refused, drive, TWINS, JUDGES) == (refused, [])


def test_keys_of_a_study_file_set_options_and_exclude_them_from_adaptation(tmp_path: Path) -> None:
    file = read(tmp_path, {'start_heading': False, 'metric': {'warmup': 0}})
    assert file.options.adapts == ('off_ticks', 'match_rates', 'rate')
    assert read(tmp_path, {'adapt': 'none'}).options.adapts == ()
    with pytest.raises(
        ParameterError, match="'heading' is not allowed; must be all, none, or a list of"
    ):
        StudyOptions(adapt='heading')


def test_a_broken_recording_fails_when_it_is_needed(tmp_path: Path) -> None:
    poses = ''.join(f'{k / 10 + 1} {k} 0 0 0 0 0 1\n' for k in range(30))
    for name, text in (('whole.tum', poses), ('broken.tum', '1 2')):
        (tmp_path / name).write_text(text)
    paths = [tmp_path / f'{name}.tum' for name in ('whole', 'broken')]
    recordings = recordings_from_sources([RecordingSource(str(path)) for path in paths])
    whole, broken = read_contents(recordings)
    assert (whole, broken) == recordings
    (tmp_path / 'whole.tum').unlink()
    assert len(whole.read().truth or ()) == 30
    with pytest.raises(RecordingError, match=r'broken\.tum'):
        broken.read()


def test_rounded_stamps_do_not_delay_fixes_by_a_tick() -> None:
    """Stamps 64 ns before or after a tick; a missed tick is 20 ms, or 0.24 m of a car."""
    lap = {'speed': 12.0, 'length': 120.0, 'width': 60.0}
    motion = motion_of('figure_eight', duration=20.0, parameters=lap)
    measured = simulate(motion, gps='zed_f9p_rtk', imu='chrono')
    fixes, judge = measured.gps, JudgeSetup.load('clean')

    def stamped(stamps: np.ndarray) -> Recording:
        moved = dataclasses.replace(fixes, stamp_ns=stamps, arrival_ns=stamps)
        return measured.with_messages('gps', moved)

    drive = stamped(fixes.stamp_ns + 15_000_000)
    rounded = stamped(drive.gps.stamp_ns + np.where(np.arange(len(fixes)) % 2, -64, 64))

    def plan(recording: Recording, **options: Any) -> RunPlan:
        return RunPlan(recording, (), Judging(judge, StudyOptions(**options)))

    def rmse(recording: Recording, **options: Any) -> float:
        run_plan = plan(recording, **options)
        return run_plan.vepd_score(run_plan.real, run_plan.judge(run_plan.real)).rmse

    begin = plan(drive).maker.start_ns
    assert plan(drive).start_of(judge).start_ns == begin
    assert plan(rounded).start_of(judge).start_ns == begin + 10_000
    assert plan(rounded, adapt='none').start_of(judge).start_ns == begin
    assert abs(rmse(rounded, adapt='none') - rmse(drive, adapt='none')) > 0.3
    assert abs(rmse(rounded) - rmse(drive, off_ticks=True)) < 1e-5
    # The finding appears only if the late start is refused.
    codes = [
        {note.code for note in variant.judge(variant.real).notes}
        for variant in (plan(rounded, adapt='none'), plan(rounded))
    ]
    assert ['rl.fixes_on_ticks' in some for some in codes] == [True, False]
    # A late start does not move timers that a case sets.
    clock = judge.case.clock
    pinned = dataclasses.replace(
        clock, filter_origin_ns=begin, navsat_origin_ns=begin + 20_000_000
    )
    pinned_judge = dataclasses.replace(judge, case=dataclasses.replace(judge.case, clock=pinned))
    assert plan(rounded).start_of(pinned_judge).start_ns == begin


def test_only_a_judge_with_the_yaw_of_the_imu_gets_the_true_heading() -> None:
    drive = simulate(motion_of('circle', duration=5.0), gps='baseline', imu='chrono')
    clean, other = (judge.setup for judge in JUDGES)
    for first in (clean, other):
        plan = RunPlan(drive, (), Judging(first))
        assert plan.start_of(clean).start_heading is not None
        assert plan.start_of(other).start_heading is None
