# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A study has one code and one set of inputs: a change of either stops it, and nothing is lost."""

from __future__ import annotations

import compileall
import contextlib
import dataclasses
import hashlib
import importlib
import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_examples import call, contents, write_runs
from command_copies import CommandCopy, call_copy
from conftest import ROOT
from study_file_examples import small_plan, write_study_file

from sim2real_eval.common.digests import ChangedError, files_digest
from sim2real_eval.common.workers import Workers
from sim2real_eval.recording.reading import RecordingSource
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.study import identity
from sim2real_eval.study.identity import PACKAGE, _PackageCode, code_digests
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.plan import StudyPlan
from sim2real_eval.study.run_store import RunStore, run_file
from sim2real_eval.study.runner import run_study, write_answer
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.registry import load_from_file, source_digest
from sim_sensors.core.shipped import config_path

pytestmark = pytest.mark.usefixtures('blank_pictures')
Capture = pytest.CaptureFixture[str]

FILTER = """\
import sys
from pathlib import Path

import numpy as np

from sim2real_eval.judge import Estimate

sys.path.insert(0, str(Path(__file__).parent))
import {helper}


class MyFilter:
    def judge(self, recording):
        import {lazy}

        fixes = recording.gps
        north = 1e5 * (fixes.latitude - fixes.latitude[0])
        velocity = np.zeros((len(fixes), 3))
        velocity[:, 0] = {helper}.GAIN * north + {lazy}.GAIN
        return Estimate(fixes.stamp_ns, velocity)
"""
MODEL = """\
import dataclasses

from sim_sensors.gps.gps import GpsModel


@dataclasses.dataclass(frozen=True)
class MyGps(GpsModel):
    kind = 'my_gps'
"""
MOTION = """\
from sim_sensors.motion.motions import SCENARIOS


class MyLoop(SCENARIOS.get('figure_eight')):
    kind = 'my_loop'
"""
METRIC = """\
from sim2real_eval.study import Metric


class MyMetric(Metric):
    name, unit, meaning = 'Worst', 'm/s', 'largest error'

    def of_run(self, run):
        return abs(run.speed_error).max()
"""
PLUGGED: dict[str, Any] = {
    'models': {
        'gps': ['ch_gauss', {'label': 'mine', 'model': 'my_gps.py:MyGps'}],
        'imu': ['chrono'],
    },
    'judges': [
        {'judge': 'my_filter.py:MyFilter'},
        {'config': 'my_clean.yaml', 'front_end': 'enu'},
    ],
    'world': 'my_world.yaml',
    'more_metrics': ['my_metric.py:MyMetric'],
    'recordings': [
        {'stand_in': {'scenarios': ['my_loop.py:MyLoop'], 'runs': 1, 'duration': 4.0}},
        {'path': 'bag', 'topics': {'truth': 'truth.tum'}},
    ],
}  # fmt: skip


HELPERS = ('my_helper.py', 'my_lazy_helper.py')


@pytest.fixture(scope='module')
def plugged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a study with plug-ins and files of every kind, killed after its first run.

    Its commands run in processes of their own, because a process imports a plug-in once.
    """
    folder = tmp_path_factory.mktemp('plugged')
    (stand_in, *_) = small_plan(folder).recordings
    recording = stand_in.read()
    write_recording(recording, folder / 'bag')
    assert recording.truth is not None
    columns = (
        recording.truth.stamp_ns * 1e-9,
        recording.truth.position,
        recording.truth.orientation,
    )
    np.savetxt(folder / 'truth.tum', np.column_stack(columns), fmt='%.9f')
    texts = {
        'my_filter.py': FILTER.format(helper=HELPERS[0][:-3], lazy=HELPERS[1][:-3]),
        **dict.fromkeys(HELPERS, 'GAIN = 1.0\n'),
        'my_gps.py': MODEL,
        'my_loop.py': MOTION,
        'my_metric.py': METRIC,
        'my_clean.yaml': config_path('judge', 'clean.yaml').read_text(encoding='utf-8'),
        'my_world.yaml': config_path('worlds', 'default.yaml').read_text(encoding='utf-8'),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding='utf-8')
    file = write_study_file(folder, PLUGGED)
    with CommandCopy('study', file, '--out', folder / 'out', '--jobs', 1) as command:
        command.wait_for(lambda: list((folder / 'out').glob('runs/*/*/*_1.npz')), 'the first run')
        command.send(signal.SIGKILL)
        assert command.end().status == -signal.SIGKILL
    assert b'"state": "unfinished"' in (folder / 'out/study.json').read_bytes()
    return folder


@contextlib.contextmanager
def edited(path: Path) -> Iterator[None]:
    """Add a comment to a file."""
    whole = path.read_bytes()
    path.write_bytes(whole + b'\n# edited\n')
    yield
    path.write_bytes(whole)


FILES = {
    **{
        name: f'identity.{name}'
        for name in ('my_filter.py', *HELPERS, 'my_gps.py', 'my_loop.py', 'my_clean.yaml')
    },
    'my_world.yaml': 'world.sha256',
    'bag/metadata.yaml': r'recordings\[1\].sha256',
    'bag/recording.yaml': r'recordings\[1\].sha256',
    'truth.tum': r'recordings\[1\].sha256',
}
"""Files of the study, and what names them when the study is continued."""


def test_what_is_edited_after_a_kill_is_named_and_the_study_stays(plugged: Path) -> None:
    out = plugged / 'out'
    before = contents(out)
    for name, named in FILES.items():
        with edited(plugged / name):
            done = call_copy('study', plugged / 'study.yaml', '--out', out, '--jobs', 1)
        assert (done.status, len(done.complaints)) == (2, 1), name
        assert re.search(named, done.complaints[0]), (name, done.complaints)
        assert contents(out) == before


def test_verify_names_what_was_edited_and_finds_an_untouched_study_equal(plugged: Path) -> None:
    file, out = plugged / 'study.yaml', plugged / 'out'
    # No run depends on a metric: an edited one does not end the study.
    with edited(plugged / 'my_metric.py'):
        assert call_copy('study', file, '--out', out, '--jobs', 1).status == 0
    done = call_copy('study', file, '--verify', out, '--jobs', 1)
    assert (done.status, 'differs: my_metric.py' in done.out) == (1, True)
    assert call_copy('study', file, '--out', out, '--jobs', 1).status == 0
    before = contents(out)
    done = call_copy('study', file, '--verify', out, '--jobs', 2)
    assert done.status == 0
    assert {f'same: {name}' for name in (PACKAGE, *HELPERS)} <= set(done.out.splitlines())
    assert 'differs' not in done.out
    for name in ('my_filter.py', HELPERS[1], 'my_gps.py', 'my_world.yaml', 'truth.tum'):
        with edited(plugged / name):
            done = call_copy('study', file, '--verify', out, '--json', '--jobs', 1)
        assert done.status == 1
        (differing,) = json.loads(done.out)['differing']
        assert differing.endswith('bag' if name == 'truth.tum' else name)
    assert contents(out) == before


def test_an_edited_study_file_is_a_difference(tmp_path: Path, capsys: Capture) -> None:
    file, out = write_study_file(tmp_path), tmp_path / 'out'
    run_study(StudyPlan.load(file), out)
    write_study_file(tmp_path, {'seed': 1})
    done = call(capsys, 'study', file, '--verify', out, '--jobs', 1)
    assert (done.status, 'differs: versions and options: seed' in done.out) == (1, True)


@pytest.mark.parametrize('jobs', [1, 3])
def test_a_recording_that_fails_again_is_no_difference(
    tmp_path: Path, capsys: Capture, jobs: int
) -> None:
    """However many processes find it; with three of them, recordings are divided."""
    for recording in small_plan(tmp_path).recordings:
        content = recording.read()
        if recording.name == 'line_2':
            truth = content.roles['truth']
            content = dataclasses.replace(
                content,
                messages={key: array for key, array in content.messages.items() if key != truth},
                roles={key: topic for key, topic in content.roles.items() if topic != truth},
            )
        write_recording(content, tmp_path / recording.name)
    file, out = write_study_file(tmp_path, {'recordings': [{'path': 'line_?'}]}), tmp_path / 'out'
    assert call(capsys, 'study', file, '--out', out, '--jobs', jobs).status == 1
    done = call(capsys, 'study', file, '--verify', out, '--json', '--jobs', jobs)
    assert json.loads(done.out)['differing'] == []
    assert done.status == 0


def test_verify_finds_an_edited_run_file_and_an_edited_record(
    tmp_path: Path, capsys: Capture
) -> None:
    file, out = write_study_file(tmp_path), tmp_path / 'out'
    assert call(capsys, 'study', file, '--out', out, '--jobs', 1).status == 0
    outcome = StudyOutcome.read(out)
    key = outcome.runs[1].key
    store = RunStore(out)
    run = store.run(key)
    assert run is not None
    better = dataclasses.replace(run, values={**run.values, 'rmse': run.values['rmse'] - 1e-9})
    store.save(better, store.signals(key))
    done = call(capsys, 'study', file, '--verify', out, '--jobs', 1)
    assert done.status == 1
    assert f'differs: {run_file(key)}' in done.out.splitlines()
    store.save(run, store.signals(key))
    runs = [better if run.key == key else run for run in outcome.runs]
    write_answer(out, dataclasses.replace(outcome, runs=tuple(runs)))
    done = call(capsys, 'study', file, '--verify', out, '--jobs', 1)
    assert (done.status, 'differs: study.json: run' in done.out) == (1, True)


def test_verify_repeats_the_command_of_vepd_and_demo(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_runs(tmp_path, ('drive_line', 1))
    monkeypatch.chdir(tmp_path)
    words = 'line_1', '--models', 'ch_rw,ch_gauss', '--resamples', 100
    assert call(capsys, 'vepd', *words, '--out', 'result', '--jobs', 1).status == 0
    assert call(capsys, 'study', '--verify', 'result', '--jobs', 1).status == 0
    done = call(capsys, 'study', '--verify', 'result', '--seed', 1)
    assert (done.status, '--seed' in done.complaints[0]) == (2, True)
    (tmp_path / 'line_1').rename(tmp_path / 'elsewhere')
    for folder, named in (('result', 'line_1'), ('nothing', 'nothing')):
        done = call(capsys, 'study', '--verify', folder)
        assert (done.status, named in done.complaints[0]) == (2, True)


@pytest.fixture
def bags(tmp_path: Path) -> StudyPlan:
    """Plan of two recordings that are too large to be kept in memory."""
    for recording in small_plan(tmp_path).recordings:
        write_recording(recording.read(), tmp_path / recording.name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('sim2real_eval.study.recordings._MAX_KEPT', 0)
        return small_plan(tmp_path, {'recordings': [{'path': 'line_?'}]})


def swap(folder: Path) -> None:
    """Swap the two recordings; doing it again restores them."""
    (folder / 'line_1').rename(folder / 'line_3')
    (folder / 'line_2').rename(folder / 'line_1')
    (folder / 'line_3').rename(folder / 'line_2')


@pytest.mark.parametrize('jobs', [1, 2])
def test_recordings_swapped_between_plan_and_judge_stop_the_study(
    tmp_path: Path, bags: StudyPlan, jobs: int
) -> None:
    swap(tmp_path)
    # Of two processes, either may be the first to notice.
    name = 'line_1' if jobs == 1 else 'line_[12]'
    with Workers(jobs) as workers, pytest.raises(ChangedError, match=f'{name}: was changed'):
        run_study(bags, tmp_path / 'out', workers=workers)
    assert not list((tmp_path / 'out').glob('runs/*/*/*.npz'))


def test_recordings_swapped_while_a_study_runs_stop_it_and_nothing_is_lost(
    tmp_path: Path, bags: StudyPlan
) -> None:
    def begin(*counts: int) -> Callable[[], None]:
        return lambda: swap(tmp_path)  # after the first unit

    with pytest.raises(ChangedError, match='line_2: was changed'):
        run_study(bags, tmp_path / 'out', begin=begin)
    stored = contents(tmp_path / 'out/runs')
    assert {Path(name).parts[1] for name in stored} == {'line_1'}
    swap(tmp_path)
    run_study(bags, tmp_path / 'out')
    assert stored.items() <= contents(tmp_path / 'out/runs').items()
    run_study(bags, tmp_path / 'undisturbed')
    assert contents(tmp_path / 'out') == contents(tmp_path / 'undisturbed')


def test_a_recording_swapped_while_it_is_read_stops_the_study(
    tmp_path: Path, bags: StudyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = RecordingSource.read

    def read_slowly(source: RecordingSource) -> Recording:
        recording = read(source)
        swap(tmp_path)
        return recording

    monkeypatch.setattr(RecordingSource, 'read', read_slowly)
    with pytest.raises(ChangedError, match='line_1: was changed'):
        run_study(bags, tmp_path / 'out')


def test_a_large_recording_is_hashed_once(
    tmp_path: Path, bags: StudyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The units of a study, also in other processes, compare the states of its files."""
    files_digest.cache_clear()
    run_study(bags, tmp_path / 'out')
    assert files_digest.cache_info().misses == 0


def test_a_recording_touched_or_copied_is_the_same(tmp_path: Path, bags: StudyPlan) -> None:
    shutil.copytree(tmp_path / 'line_1', tmp_path / 'copy')
    shutil.rmtree(tmp_path / 'line_1')
    (tmp_path / 'copy').rename(tmp_path / 'line_1')
    assert len(run_study(bags, tmp_path / 'out').runs) == 6


def test_a_stored_run_of_other_code_or_recording_is_refused_by_name(tmp_path: Path) -> None:
    plan, out = small_plan(tmp_path), tmp_path / 'out'
    outcome = run_study(plan, out)
    store, key = RunStore(out), outcome.runs[2].key
    run = store.run(key)
    assert run is not None
    assert run.identity[PACKAGE] == plan.record['identity'][PACKAGE]
    for name in run.identity:
        other = {**run.identity, name: '0' * 64}
        store.save(dataclasses.replace(run, identity=other), store.signals(key))
        before = contents(out)
        with pytest.raises(ChangedError, match=f'{name}: the stored run {run_file(key)}'):
            run_study(plan, out)
        assert contents(out) == before
    store.save(dataclasses.replace(run, identity={}), store.signals(key))
    with pytest.raises(ChangedError, match=run_file(key)):
        run_study(plan, out)
    run_study(plan, out, overwrite=True)


def test_two_trees_of_one_version_differ_by_their_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees = [tmp_path / name / 'sim2real_eval' for name in ('one', 'other')]
    for tree in trees:
        shutil.copytree(ROOT / 'sim2real_eval/metrics', tree)
    codes = [_PackageCode([tree]).digest() for tree in trees]
    assert codes[0] == codes[1]
    text = (trees[1] / 'scores.py').read_text()
    (trees[1] / 'scores.py').write_text(text.replace('1.0', '1.1', 1))
    other = _PackageCode(trees[1:])
    assert other.digest() != codes[0]
    # The study of the one is not continued by the other.
    run_study(small_plan(tmp_path), tmp_path / 'out')
    monkeypatch.setattr(identity, '_PACKAGE_CODE', other)
    with pytest.raises(Sim2RealError, match=rf'identity.{PACKAGE}'):
        run_study(small_plan(tmp_path), tmp_path / 'out')


def test_a_module_imported_from_a_changed_package_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name in ('early', 'late'):
        (tmp_path / f'{name}_of_package.py').write_text('VALUE = 1\n')
    importlib.import_module('early_of_package')
    code = _PackageCode([tmp_path])
    whole = code.digest()
    for name in ('early', 'late'):
        (tmp_path / f'{name}_of_package.py').write_text('VALUE = 22\n')
    # What was imported before is still the old code.
    assert code.digest() == whole
    importlib.import_module('late_of_package')
    with pytest.raises(ChangedError, match='late_of_package'):
        code.digest()


def test_long_lived_workers_with_an_old_plug_in_are_refused(tmp_path: Path) -> None:
    """The worker processes of a cluster keep a class when its file changes."""
    distributed = pytest.importorskip('distributed')
    changes = {'judges': [{'judge': 'my_filter.py:MyFilter'}]}
    text = FILTER.format(helper='json as first', lazy='json as second')
    text = text.replace('json as first.GAIN', '2.0').replace('json as second.GAIN', '1.0')
    (tmp_path / 'my_filter.py').write_text(text)
    file = write_study_file(tmp_path, changes)
    options = {'processes': True, 'dashboard_address': None, 'threads_per_worker': 1}
    with distributed.LocalCluster(n_workers=1, **options) as cluster:
        words = 'study', file, '--cluster', cluster.scheduler_address, '--jobs', 1, '--out'
        done = call_copy(*words, tmp_path / 'first')
        assert done.status == 0, done.err
        (tmp_path / 'my_filter.py').write_text(text.replace('2.0', '3.0'))
        done = call_copy(*words, tmp_path / 'second')
    assert (done.status, len(done.complaints)) == (2, 1)
    assert 'my_filter.py: was changed after process' in done.complaints[0]
    assert not list((tmp_path / 'second').glob('runs/*/*/*.npz'))


def test_a_plug_in_is_never_loaded_from_cached_bytecode(tmp_path: Path) -> None:
    """Bytecode counts as current for the same size and second."""
    path = tmp_path / 'my_gain.py'
    path.write_text('class Gain:\n    VALUE = 1\n')
    compileall.compile_file(str(path), quiet=2)
    state = path.stat()
    path.write_text('class Gain:\n    VALUE = 2\n')
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    gain = load_from_file(f'{path}:Gain', where='test')
    assert gain.VALUE == 2
    assert source_digest(gain) == hashlib.sha256(path.read_bytes()).hexdigest()


def test_helper_modules_are_found_and_installed_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / 'my_tools').mkdir()
    texts = {
        'my_tools/__init__.py': '',
        'my_tools/deep.py': 'import my_far_helper\n',
        'my_tools/unused.py': '',
        'my_far_helper.py': 'import numpy, json, sim2real_eval\n',
        'my_unrelated.py': '',
        'my_user.py': 'import my_tools.deep\n\nclass User:\n    import not_there_at_all as x\n',
    }
    texts['my_user.py'] = texts['my_user.py'].replace('    import', '    def f(self): import')
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    user = load_from_file(f'{tmp_path}/my_user.py:User', where='test')
    files = 'my_user.py', 'my_far_helper.py', '__init__.py', 'deep.py', 'unused.py'
    assert code_digests([user]).keys() == {*files}
    # The code of this package has a digest of its own.
    assert code_digests([StudyPlan]) == {}
