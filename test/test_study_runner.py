# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Studies have the numbers of single comparisons; a failure drops only its own run."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call, contents
from study_file_examples import SMALL, small_plan, write_study_file

from sim2real_eval.api import simulate
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.options import REAL
from sim2real_eval.recording.reading import RecordingSource
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.report.page.tables import standings
from sim2real_eval.report.study_plots import _overlays
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.options import StudyOptions
from sim2real_eval.study.outcome import (
    Losses,
    StudyFailure,
    StudyOutcome,
    find_copies,
    scored_runs,
)
from sim2real_eval.study.run import RunKey
from sim2real_eval.study.run_plan import Judging, RunPlan, one_sided_covariances
from sim2real_eval.study.runner import run_study
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion import motion_of

Capture = pytest.CaptureFixture[str]


def recorded(folder: Path) -> list[Path]:
    """Write the stand-ins of the small study as recordings."""
    plan = small_plan(folder)
    for recording in plan.recordings:
        write_recording(recording.read(), folder / recording.name)
    return [folder / recording.name for recording in plan.recordings]


def test_a_study_of_recordings_gives_the_numbers_of_single_runs(tmp_path: Path) -> None:
    """Each recording judged and scored by itself, without processes, store and folder."""
    paths = recorded(tmp_path)
    plan = small_plan(tmp_path, {'recordings': [{'path': 'line_*'}], 'seed': 3})
    assert not plan.record['synthetic']
    outcome = run_study(plan, tmp_path / 'out')
    imu = load_imu('chrono')
    twins = [Twin(name, load_gps(name), imu) for name in ('ch_gauss', 'ch_rw')]
    judging = Judging(JudgeSetup.load('paper_released'), StudyOptions(seed=3))
    expected = []
    for path in paths:
        single = RunPlan(RecordingSource(str(path)).read(), twins, judging)
        expected += [single.score(run, single.judge(run)) for run in single]
    assert [run.score for run in outcome.runs] == [run.score for run in expected]
    assert [run.values['forward_rmse'] for run in outcome.runs] == [
        run.forward.rmse for run in expected
    ]


def test_a_second_replay_is_scored_and_kept_beside_the_first(tmp_path: Path) -> None:
    """The judge answers once more, all speeds 10 % higher; its uncertainty has both."""
    recording = small_plan(tmp_path).recordings[0].read()
    setup = JudgeSetup.load('paper_released')
    plan = RunPlan(recording, (), Judging(setup, StudyOptions(seed=3)))
    real_runs = plan.judge(plan.real)
    again = dataclasses.replace(real_runs, linear_velocity=real_runs.linear_velocity * 1.1)
    runs = [
        plan.evaluate(plan.real, setup, recording, judged, RunKey('j', 'r', REAL, 1), '')[0]
        for judged in (real_runs, again, dataclasses.replace(real_runs, again=again))
    ]
    for name in ('rmse', 'entropy_difference'):
        assert runs[2].values[name] == runs[0].values[name]
        assert runs[2].values[f'{name}_again'] == runs[1].values[name]
    pair = scored_runs(runs[2:]).again
    assert pair.tolist() == scored_runs(runs[1:2]).values.tolist()
    assert scored_runs(runs).again is None


def test_a_covariance_stated_only_by_real_or_simulated_sensors_is_reported() -> None:
    """An absent quantity (-1), or a covariance unknown on both sides, is not reported."""
    motion = motion_of('line', duration=4.0)
    stated = simulate(motion, gps='zed_f9p_rtk', imu='xsens_mtx')
    unknown = simulate(motion, gps='ch_rw', imu='webots_imu')
    imu = stated.require('imu')
    absent = dataclasses.replace(
        imu, angular_velocity_covariance=0.0 * imu.angular_velocity_covariance - 1.0
    )
    without = stated.with_messages('imu', absent)

    def report(real: Recording, simulated: Recording) -> list[tuple[str, str]]:
        notes = one_sided_covariances(real, simulated)
        return [(note.subject, note.words['quantities']) for note in notes]

    both = 'linear acceleration, angular velocity'
    fixes = ('/gps/fix', 'position')
    assert report(stated, unknown) == [('/imu/data', both), fixes]
    assert report(without, unknown) == [('/imu/data', 'linear acceleration'), fixes]
    assert report(unknown, stated)[0] == ('/imu/data', both)
    assert report(stated, stated) == report(unknown, unknown) == []


def test_the_finding_about_one_sided_covariances_is_stored_with_the_run() -> None:
    stated = simulate(motion_of('line', duration=4.0), gps='zed_f9p_rtk', imu='xsens_mtx')

    setup = JudgeSetup.load('paper_released')
    twin = Twin('ch_rw', load_gps('ch_rw'), None)
    plan = RunPlan(stated, [twin], Judging(setup, StudyOptions(seed=3)))
    key, codes = RunKey('j', 'r', 'm', 1), []
    for run in plan:
        study_run, *_ = plan.evaluate(run, setup, plan.recording(run), plan.judge(run), key, '')
        codes.append('study.covariance_one_sided' in {note.code for note in study_run.notes})
    assert codes == [False, True]


@pytest.fixture(scope='module')
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a finished study with two conditions."""
    folder = tmp_path_factory.mktemp('study')
    conditions = [
        {'label': 'open_sky'},
        {'label': 'slow', 'gps_rate': 2.0},
        {'label': 'tunnel', 'outages': [[1.0, 3.0]]},
    ]
    run_study(small_plan(folder, {'conditions': conditions}), folder / 'out')
    return folder / 'out'


def test_conditions_change_the_fixes_of_real_and_simulated_runs(study: Path) -> None:
    outcome = StudyOutcome.read(study)
    assert outcome.groups == ['open_sky', 'slow', 'tunnel']
    fixes = {
        (run.group, run.is_real): run.values['fixes_used']
        for run in outcome.runs
        if run.key.recording.startswith('line_1')
    }
    for real in (True, False):
        whole = fixes['open_sky', real]
        # Of 4 s at 10 Hz, 2 Hz leave a fix each half second, and an outage of 2 s removes 20.
        assert whole == pytest.approx(4 * 10, abs=2)
        assert fixes['slow', real] == pytest.approx(4 * 2 + 1, abs=1)
        assert fixes['tunnel', real] == pytest.approx(whole - 20, abs=1)
    # The same drive and the same draws: only the fixes that are left out make the difference.
    keys = [RunKey('paper_released', f'line_1@{group}', 'ch_rw', 1) for group in outcome.groups]
    truths = [outcome.signals(key).true_velocity for key in keys]
    np.testing.assert_array_equal(truths[0], truths[2])
    first = [outcome.signals(key) for key in keys[::2]]
    early = first[0].time < 0.9
    np.testing.assert_array_equal(first[0].velocity[early], first[1].velocity[early])


def test_drives_are_equal_for_every_group_and_not_paired_with_recordings(tmp_path: Path) -> None:
    slow = {**SMALL['recordings'][0]['stand_in'], 'vehicle': {'constant_resistance': 0.1}}
    changes = {
        'recordings': [
            {'group': 'grass', **SMALL['recordings'][0]},
            {'group': 'sand', 'stand_in': slow},
        ],
        'models': {'gps': ['ch_rw'], 'imu': ['chrono']},
        'simulate_on': {'drive': {'duration': 4.0}},
    }
    outcome = run_study(small_plan(tmp_path, changes), tmp_path / 'out')
    real = {run.key.recording for run in outcome.runs if run.is_real}
    drives = {run.key.recording for run in outcome.runs if not run.is_real}
    assert len(real) == len(drives) == 4
    assert not real & drives
    grass, sand = (
        [run.score for run in outcome.runs_of('paper_released', 'ch_rw', group=group)]
        for group in ('grass', 'sand')
    )
    assert grass == sand
    # Rolling resistance of the vehicle shows in the speed of the real runs, and in nothing else.
    speeds = []
    for group in ('grass', 'sand'):
        key = RunKey('paper_released', f'{group}_line_1', REAL, 1)
        speeds.append(float(np.mean(outcome.signals(key).true_velocity[:, 0])))
    assert speeds[1] < 0.8 * speeds[0]
    # The picture shows the truth of both: of the run on its surface, and of the simulated drive.
    for standing in standings(outcome):
        ((real_run, simulated),) = _overlays(outcome, standing).values()
        is_slow = standing.group == 'sand'
        assert (real_run.gt_vel[-1] < 0.8 * simulated['ch_rw'].gt_vel[-1]) == is_slow
    assert [row.n_sim for row in outcome.table('paper_released', 'sand')] == [2, 2]


def test_a_failed_recording_is_left_out_and_reported(tmp_path: Path, capsys: Capture) -> None:
    recorded(tmp_path)
    (tmp_path / 'line_3').mkdir()
    file = write_study_file(tmp_path, {'recordings': [{'path': 'line_*'}]})
    command = ['study', file, '--out', tmp_path / 'out', '--jobs', 1]
    done = call(capsys, *command)
    assert done.status == 1
    assert len(done.complaints) == 1
    outcome = StudyOutcome.read(tmp_path / 'out')
    assert [failure['recording'] for failure in outcome.record['failures']] == ['line_3']
    assert len(outcome.runs) == 6
    before = contents(tmp_path / 'out')
    assert call(capsys, *command).status == 1
    assert contents(tmp_path / 'out') == before


BEYOND = """
import dataclasses
from sim_sensors.core.errors import SensorError
from sim_sensors.gps.gps import GpsModel

@dataclasses.dataclass(frozen=True)
class Beyond(GpsModel):
    'A receiver on its way to the Moon.'
    kind = 'beyond'

    def start(self, *labels, **surroundings):
        raise SensorError('not near the Earth')
"""


def test_a_model_that_always_fails_does_not_exclude_recordings_for_others(
    tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / 'beyond.py').write_text(BEYOND, 'utf-8')
    beyond = str(tmp_path / 'beyond.py:Beyond')
    models = [
        {'label': name, 'gps': gps, 'imu': 'chrono'}
        for name, gps in (('beyond', beyond), ('ch_rw', 'ch_rw'))
    ]
    file = write_study_file(tmp_path, {'models': models})
    command = ['study', file, '--out', tmp_path / 'out', '--jobs', 1]
    done = call(capsys, *command)
    assert done.status == 1
    (line,) = done.complaints
    assert 'model beyond' in line
    outcome = StudyOutcome.read(tmp_path / 'out')
    assert outcome.models == ['ch_rw']
    assert len(outcome.runs) == 4


def test_a_rare_failure_of_a_model_excludes_its_recording_for_all_models() -> None:
    keys = {
        RunKey(judge, f'line_{number}', model, repetition): ''
        for judge in ('one', 'two')
        for number in (1, 2, 3, 4)
        for model, repetitions in ((REAL, 1), ('good', 2), ('bad', 2))
        for repetition in range(1, repetitions + 1)
    }

    def lost(*failures: tuple[str, str, str]) -> set[RunKey]:
        losses = Losses([StudyFailure(*failure, 'why') for failure in failures], keys)
        return {key for key in keys if key in losses}

    def runs(recording: str = '', model: str = '') -> set[RunKey]:
        return {
            key
            for key in keys
            if key.judge == 'one' and recording in ('', key.recording) and model in ('', key.model)
        }

    often = [('one', f'line_{number}', 'bad') for number in (1, 2, 3)]
    assert lost(*often[:2]) == runs('line_1') | runs('line_2')
    assert lost(*often) == runs(model='bad')
    # The failure of a recording does not count against a model.
    unread = [('one', f'line_{number}', '') for number in (1, 2)]
    assert lost(('one', 'line_1', REAL)) == runs('line_1')
    assert lost(*unread, ('one', 'line_3', 'bad')) == runs() - runs('line_4')
    both = [('one', f'line_{number}', 'bad') for number in (3, 4)]
    assert lost(*unread, *both) == runs('line_1') | runs('line_2') | runs(model='bad')


def test_a_study_without_any_result_is_removed(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / 'line_3').mkdir()
    file = write_study_file(
        tmp_path, {'recordings': [{'path': 'line_*'}], 'judges': ['paper_released', 'clean']}
    )
    command = ['study', file, '--out', tmp_path / 'out', '--jobs', 1]
    done = call(capsys, *command)
    assert done.status == 2
    # One line, although two judges ask for the recording.
    assert len(done.complaints) == 1
    assert not (tmp_path / 'out').exists()
    (tmp_path / 'line_3').rmdir()
    recorded(tmp_path)
    assert call(capsys, *command).status == 0


def test_real_recordings_replace_stand_ins(tmp_path: Path, capsys: Capture) -> None:
    paths = recorded(tmp_path)
    out = tmp_path / 'out'
    done = call(capsys, 'study', 'a_imu', *paths, '--out', out, '--jobs', 1)
    assert done.status == 0
    outcome = StudyOutcome.read(out)
    assert outcome.judges == ['clean', 'paper_released']
    assert outcome.models == ['chrono', 'airsim_paper', 'airsim']
    assert outcome.record['recordings'][0]['path'] == str(paths[0])


pytestmark = pytest.mark.usefixtures('blank_pictures')


def test_a_copied_drive_is_reported_unless_it_belongs_to_the_same_block(
    tmp_path: Path, capsys: Capture
) -> None:
    first, second, *_ = small_plan(tmp_path).recordings
    for recording in (first, second):
        write_recording(recording.read(), tmp_path / recording.name)
    shutil.copytree(tmp_path / first.name, tmp_path / 'again')
    paths = [str(tmp_path / name) for name in (first.name, second.name, 'again')]
    checked = call(capsys, 'check', *paths, '--json')
    assert checked.status == 1
    findings = json.loads(checked.out)['findings']
    (copies,) = [finding for finding in findings if finding['code'] == 'study.copies']
    assert copies['words']['names'] == f'{paths[0]}, {paths[2]}'
    for block in ('', 'one'):
        common = {'block': block} if block else {}
        recordings = [{'path': path, 'name': Path(path).name, **common} for path in paths]
        plan = small_plan(tmp_path, {'recordings': recordings, 'seed': 3})
        notes = run_study(plan, tmp_path / f'out{block}').record['notes']
        names = [note['words']['names'] for note in notes if note['code'] == 'study.copies']
        assert names == ([] if block else [f'{first.name}, again'])


def test_only_recordings_of_the_same_block_may_be_equal() -> None:
    numbers = {'a': 0.1, 'b': 0.1, 'c': 0.2}
    assert not find_copies(numbers, {'a': 'one', 'b': 'one'})
    for blocks in ({}, {'a': 'one', 'b': 'two'}, {'a': 'one'}, {'c': 'one'}):
        assert len(find_copies(numbers, blocks)) == 1
