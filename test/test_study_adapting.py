# SPDX-License-Identifier: Apache-2.0
"""What real recordings demand is set, as plain values, unless it is given or refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_examples import segments
from study_file_examples import write_study_file

from sim2real_eval import simulate
from sim2real_eval.common.errors import RecordingError
from sim2real_eval.common.workers import Workers
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.recording.reading import Source
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.adapting import adapt_options
from sim2real_eval.study.judges import StudyJudge
from sim2real_eval.study.options import ADAPTED, StudyOptions
from sim2real_eval.study.recordings import begin_reading, recordings_from_sources
from sim2real_eval.study.run_plan import Judging, RunPlan
from sim2real_eval.study.study_file import StudyFile
from sim_sensors import motion_of
from sim_sensors.core.errors import ParameterError
from sim_sensors.gps.gps import load_gps

NAMES = ('clean', 'paper_released')
JUDGES = [StudyJudge(name, 'embedded', JudgeSetup.load(name)) for name in NAMES]
TWINS = [Twin('airsim', load_gps('airsim'), None)]


def read(folder: Path, changes: dict[str, object]) -> StudyFile:
    return StudyFile.read(write_study_file(folder, changes))


def test_a_drive_cut_into_clips_gets_what_it_demands_and_nothing_once_more(real_dir: Path) -> None:
    """A car at up to 14 m/s, truth and fixes at 4 Hz, an IMU without orientation."""
    drive = recordings_from_sources([Source(str(path)) for path in segments(real_dir, (0, 1, 10))])
    options, told = adapt_options(StudyOptions(), drive, TWINS, JUDGES)
    assert (options.metric.rate, options.metric.warmup, options.match_rates) == (4.0, 5.0, True)
    # Only of a judge that takes yaw from the IMU, and of one with ticks that fixes are stamped on.
    assert options.adapt == 'start_heading,off_ticks'
    words = {one.code: one.words for one in told}
    assert words['study.start_heading'] == words['study.off_ticks'] == {'judges': 'clean'}
    assert len(told) == 5
    # The values in force, given again, are the same study.
    again, _ = adapt_options(options, drive, TWINS, JUDGES)
    assert again == options
    assert adapt_options(options, drive, TWINS, JUDGES[1:])[0].adapt == 'none'


def test_what_is_given_or_refused_stays(real_dir: Path) -> None:
    drive = recordings_from_sources([Source(str(path)) for path in segments(real_dir, (1,))])
    given = StudyOptions(metric=MetricOptions(rate=9.0, warmup=1.0))
    options, told = adapt_options(given, drive, TWINS, JUDGES)
    assert options.metric == given.metric
    assert {one.code for one in told} == {
        'study.matched_rates', 'study.start_heading', 'study.off_ticks'
    }  # fmt: skip
    refused = StudyOptions().given(ADAPTED)
    assert refused.adapt == 'none'
    assert adapt_options(refused, drive, TWINS, JUDGES) == (refused, [])


def test_a_study_file_gives_and_refuses_by_its_keys(tmp_path: Path) -> None:
    file = read(tmp_path, {'start_heading': False, 'metric': {'warmup': 0}})
    assert file.options.adapts == ('off_ticks', 'match_rates', 'rate')
    assert read(tmp_path, {'adapt': 'none'}).options.adapts == ()
    with pytest.raises(ParameterError, match="'heading' is not allowed; must be all, none, or of"):
        StudyOptions(adapt='heading')


def test_recordings_are_read_once_and_a_broken_one_fails_where_it_is_needed(
    tmp_path: Path,
) -> None:
    poses = ''.join(f'{k / 10 + 1} {k} 0 0 0 0 0 1\n' for k in range(30))
    for name, text in (('whole.tum', poses), ('broken.tum', '1 2')):
        (tmp_path / name).write_text(text)
    given = recordings_from_sources([Source(str(tmp_path / f'{name}.tum')) for name in ('whole', 'broken')])
    whole, broken = begin_reading(given, Workers())()
    assert (whole, broken) == given
    (tmp_path / 'whole.tum').unlink()
    assert len(whole.read().truth or ()) == 30
    with pytest.raises(RecordingError, match=r'broken\.tum'):
        broken.read()


def test_rounding_does_not_decide_which_fixes_wait_for_a_tick() -> None:
    """Stamps that were doubles lie 64 ns before or after a tick of navsat_transform, 15 ms after
    one of the filter: fixes that miss it wait 20 ms more, in which a car drives 0.24 m.
    """
    lap = {'speed': 12.0, 'length': 120.0, 'width': 60.0}
    motion = motion_of('figure_eight', duration=20.0, parameters=lap)
    measured = simulate(motion, gps='zed_f9p_rtk', imu='chrono')
    fixes, judge = measured.gps, JudgeSetup.load('clean')
    assert fixes is not None

    def stamped(stamps: np.ndarray) -> Recording:
        moved = dataclasses.replace(fixes, stamp_ns=stamps, arrival_ns=stamps)
        return measured.with_messages('gps', moved)

    drive = stamped(fixes.stamp_ns + 15_000_000)
    rounded = stamped(drive.gps.stamp_ns + np.where(np.arange(len(fixes)) % 2, -64, 64))

    def plan(recording: Recording, **options: Any) -> RunPlan:
        return RunPlan(recording, (), Judging(judge, StudyOptions(**options)))

    def rmse(recording: Recording, **options: Any) -> float:
        one = plan(recording, **options)
        return one.vepd_score(one.real, one.judge(one.real)).rmse

    begin = plan(drive).maker.start_ns
    assert plan(drive).start_of(judge).start_ns == begin
    assert plan(rounded).start_of(judge).start_ns == begin + 10_000
    assert plan(rounded, adapt='none').start_of(judge).start_ns == begin
    assert abs(rmse(rounded, adapt='none') - rmse(drive, adapt='none')) > 0.3
    assert abs(rmse(rounded) - rmse(drive, off_ticks=True)) < 1e-5
    # Told where it is refused, and gone where not.
    told = [
        {note.code for note in one.judge(one.real).notes}
        for one in (plan(rounded, adapt='none'), plan(rounded))
    ]
    assert ['rl.fixes_on_ticks' in codes for codes in told] == [True, False]
    # Where a case sets the timers, a late start moves none of them.
    clock = judge.case.clock
    pinned = dataclasses.replace(
        clock, filter_origin_ns=begin, navsat_origin_ns=begin + 20_000_000
    )
    own = dataclasses.replace(judge, case=dataclasses.replace(judge.case, clock=pinned))
    assert plan(rounded).start_of(own).start_ns == begin


def test_each_judge_starts_as_it_needs_whichever_comes_first() -> None:
    """One takes yaw from the IMU, which has none; the other does not."""
    drive = simulate(motion_of('circle', duration=5.0), gps='baseline', imu='chrono')
    clean, other = (one.setup for one in JUDGES)
    for first in (clean, other):
        plan = RunPlan(drive, (), Judging(first))
        assert plan.start_of(clean).start_heading is not None
        assert plan.start_of(other).start_heading is None
