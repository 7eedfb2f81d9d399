# SPDX-License-Identifier: Apache-2.0
"""What real recordings demand is set, as plain values, unless it is given or refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_examples import segments
from study_file_examples import write_study_file

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.common.workers import Workers
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.recording.reading import Source
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.adapting import adapted
from sim2real_eval.study.judges import StudyJudge
from sim2real_eval.study.options import StudyOptions
from sim2real_eval.study.recordings import begin_reading, of_sources
from sim2real_eval.study.study_file import StudyFile
from sim_sensors.core.errors import ParameterError
from sim_sensors.gps.gps import load_gps

NAMES = ('clean', 'paper_released')
JUDGES = [StudyJudge(name, 'embedded', JudgeSetup.load(name)) for name in NAMES]
TWINS = [Twin('airsim', load_gps('airsim'), None)]


def read(folder: Path, changes: dict[str, object]) -> StudyFile:
    return StudyFile.read(write_study_file(folder, changes))


def test_a_drive_cut_into_clips_gets_what_it_demands_and_nothing_once_more(real_dir: Path) -> None:
    """A car at up to 14 m/s, truth and fixes at 4 Hz, an IMU without orientation."""
    drive = of_sources([Source(str(path)) for path in segments(real_dir, (0, 1, 10))])
    options, told = adapted(StudyOptions(), drive, TWINS, JUDGES)
    assert (options.metric.rate, options.metric.warmup, options.match_rates) == (4.0, 5.0, True)
    # Only of a judge that takes yaw from the IMU.
    assert options.adapt == 'start_heading'
    assert {one.code: one.words for one in told}['study.start_heading'] == {'judges': 'clean'}
    assert len(told) == 4
    # The values in force, given again, are the same study.
    again, _ = adapted(options, drive, TWINS, JUDGES)
    assert again == options
    assert adapted(options, drive, TWINS, JUDGES[1:])[0].adapt == 'none'


def test_what_is_given_or_refused_stays(real_dir: Path) -> None:
    drive = of_sources([Source(str(path)) for path in segments(real_dir, (1,))])
    given = StudyOptions(metric=MetricOptions(rate=9.0, warmup=1.0))
    options, told = adapted(given, drive, TWINS, JUDGES)
    assert options.metric == given.metric
    assert {one.code for one in told} == {'study.matched_rates', 'study.start_heading'}
    refused = StudyOptions().given(['warmup', 'rate', 'match_rates', 'start_heading'])
    assert refused.adapt == 'none'
    assert adapted(refused, drive, TWINS, JUDGES) == (refused, [])


def test_a_study_file_gives_and_refuses_by_its_keys(tmp_path: Path) -> None:
    file = read(tmp_path, {'start_heading': False, 'metric': {'warmup': 0}})
    assert file.options.adapts == ('match_rates', 'rate')
    assert read(tmp_path, {'adapt': 'none'}).options.adapts == ()
    with pytest.raises(ParameterError, match="'heading' is not allowed; must be all, none, or of"):
        StudyOptions(adapt='heading')


def test_recordings_are_read_once_and_a_broken_one_fails_where_it_is_needed(
    tmp_path: Path,
) -> None:
    poses = ''.join(f'{k / 10 + 1} {k} 0 0 0 0 0 1\n' for k in range(30))
    for name, text in (('whole.tum', poses), ('broken.tum', '1 2')):
        (tmp_path / name).write_text(text)
    given = of_sources([Source(str(tmp_path / f'{name}.tum')) for name in ('whole', 'broken')])
    whole, broken = begin_reading(given, Workers())()
    assert (whole, broken) == given
    (tmp_path / 'whole.tum').unlink()
    assert len(whole.read().truth or ()) == 30
    with pytest.raises(RecordingError, match=r'broken\.tum'):
        broken.read()
