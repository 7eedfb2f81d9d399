# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Studies on dask.distributed give the same bytes, whatever dies; unfit clusters are refused."""

from __future__ import annotations

import pickle
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_examples import call, contents
from study_file_examples import small_plan, write_study_file

from sim2real_eval.recording.writing import write_recording
from sim2real_eval.study.runner import run_study
from sim_sensors.core.errors import Sim2RealError

pytest.importorskip('distributed')
from cluster_examples import ClusterProcesses, cluster_processes, until

pytestmark = pytest.mark.usefixtures('blank_pictures')

MANY = {
    'recordings': [{'stand_in': {'scenarios': ['line', 'circle'], 'runs': 1, 'duration': 4.0}}],
    'repetitions': 30,
}
"""Two recordings of 61 runs each, of which a worker sends about a quarter at a time."""


@pytest.fixture(scope='module')
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    with cluster_processes(tmp_path_factory.mktemp('cluster')) as processes:
        yield processes


@pytest.fixture(scope='module')
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Files of a study of many runs by one process."""
    folder = tmp_path_factory.mktemp('undisturbed')
    run_study(small_plan(folder, MANY), folder / 'out')
    return contents(folder / 'out')


def start_study(folder: Path, address: str) -> subprocess.Popen[str]:
    """Start the command on a study of many runs, without report."""
    code = (
        'import sys\nfrom pathlib import Path\n'
        'from sim2real_eval.cli.output import log_to_stderr\n'
        'from sim2real_eval.study.plan import StudyPlan\n'
        'from sim2real_eval.study.runner import run_study\n'
        'from sim_sensors.core.errors import Sim2RealError\n'
        'with log_to_stderr():\n'
        '    try:\n'
        '        run_study(StudyPlan.load(sys.argv[1]), sys.argv[2], cluster=sys.argv[3])\n'
        '    except Sim2RealError as error:\n'
        '        print(error, file=sys.stderr)\n'
        '        sys.exit(2)\n'
    )
    file = write_study_file(folder, MANY)
    return subprocess.Popen(
        [sys.executable, '-c', code, str(file), str(folder / 'out'), address],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def stored_runs(folder: Path) -> int:
    return len([*folder.glob('out/runs/*/*/ch_*.npz')])


def test_a_study_on_a_cluster_gives_the_same_bytes(
    tmp_path: Path, cluster: ClusterProcesses, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_study_file(tmp_path, {'judges': ['clean']})
    far, near = tmp_path / 'far', tmp_path / 'near'
    done = call(capsys, 'study', file, '--out', far, '--jobs', 1, '--cluster', cluster.address)
    assert done.status == 0, done.complaints
    assert call(capsys, 'study', file, '--out', near, '--jobs', 1).status == 0
    assert contents(far) == contents(near)


def test_runs_are_stored_while_they_are_judged_and_a_killed_workers_cost_nothing(
    tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    with cluster_processes(tmp_path / 'cluster') as processes:
        study = start_study(tmp_path, processes.address)
        until(lambda: stored_runs(tmp_path), 'the first runs')
        assert stored_runs(tmp_path) < 60  # of a recording that is the work of one worker
        processes.workers[0].kill()
        # One that joins takes over when all others are dead.
        processes.add_worker()
        processes.workers[1].kill()
        _, err = study.communicate(timeout=120)
    assert study.returncode == 0, err
    assert contents(tmp_path / 'out') == undisturbed


def test_a_study_whose_scheduler_and_command_are_killed_at_any_time_is_continued(
    tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    chance = random.Random(7)
    for victim in ('scheduler', 'command'):
        with cluster_processes(tmp_path / 'cluster') as processes:
            before = stored_runs(tmp_path)
            study = start_study(tmp_path, processes.address)
            wanted = before + chance.randint(1, 20)
            until(
                lambda wanted=wanted, study=study: (
                    stored_runs(tmp_path) >= wanted or study.poll() is not None
                ),
                'some runs',
            )
            (study if victim == 'command' else processes.scheduler).kill()
            _, err = study.communicate(timeout=120)
        if victim == 'scheduler':
            assert study.returncode == 2
            (line,) = [line for line in err.splitlines() if 'compiling' not in line]
            assert 'connection to the scheduler was lost' in line
        assert before < stored_runs(tmp_path)
    with cluster_processes(tmp_path / 'cluster') as processes:
        study = start_study(tmp_path, processes.address)
        _, err = study.communicate(timeout=120)
        assert study.returncode == 0, err
    assert contents(tmp_path / 'out') == undisturbed


def test_the_work_of_a_silent_worker_is_done_by_another_one(
    tmp_path: Path, undisturbed: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('sim2real_eval.study.cluster._SLOW_S', 5.0)
    with cluster_processes(tmp_path / 'cluster') as processes:
        # It answers as usual, but never judges.
        processes.workers[0].send_signal(signal.SIGSTOP)
        run_study(small_plan(tmp_path, MANY), tmp_path / 'out', cluster=processes.address)
    assert contents(tmp_path / 'out') == undisturbed


def test_a_cluster_without_workers_ends_the_study_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('sim2real_eval.study.cluster._TIMEOUT_S', 2.0)
    monkeypatch.setattr('sim2real_eval.study.cluster._NO_WORKER_S', 6.0)
    with cluster_processes(tmp_path / 'cluster', workers=0) as processes:
        with pytest.raises(Sim2RealError, match='has no worker'):
            run_study(small_plan(tmp_path), tmp_path / 'none', cluster=processes.address)
        processes.add_worker()
        # Nothing arrives from it.
        processes.workers[0].send_signal(signal.SIGSTOP)
        end = subprocess.Popen(['sh', '-c', f'sleep 3; kill -9 {processes.workers[0].pid}'])
        with pytest.raises(Sim2RealError, match=r'no worker for 6 s.*repeat'):
            run_study(small_plan(tmp_path), tmp_path / 'out', cluster=processes.address)
        end.wait()


def test_a_scheduler_that_cannot_load_the_work_is_reported_in_one_line(tmp_path: Path) -> None:
    with (
        cluster_processes(tmp_path / 'cluster', 1, knows_package=False) as processes,
        pytest.raises(Sim2RealError, match='install sim2real_sensors'),
    ):
        run_study(small_plan(tmp_path), tmp_path / 'out', cluster=processes.address)


def test_a_worker_without_a_recording_ends_the_study(
    tmp_path: Path, cluster: ClusterProcesses
) -> None:
    (recording, *_) = small_plan(tmp_path).recordings
    write_recording(recording.read(), tmp_path / 'bag')
    plan = small_plan(tmp_path, {'recordings': [{'path': 'bag'}]})
    (tmp_path / 'bag').rename(tmp_path / 'elsewhere')
    with pytest.raises(Sim2RealError, match=r'worker on .*bag'):
        run_study(plan, tmp_path / 'out', cluster=cluster.address)


def test_a_worker_of_other_versions_ends_the_study(
    tmp_path: Path, cluster: ClusterProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('sim2real_eval.study.cluster.versions', lambda: {'numpy': '0.9'})
    with pytest.raises(Sim2RealError, match=r'worker on .* has numpy .*; must have 0\.9'):
        run_study(small_plan(tmp_path), tmp_path / 'other', cluster=cluster.address)


def test_an_address_without_a_scheduler_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('sim2real_eval.study.cluster._TIMEOUT_S', 1)
    file = write_study_file(tmp_path)
    done = call(capsys, 'study', file, '--out', tmp_path / 'out', '--cluster', 'tcp://127.0.0.1:9')
    assert done.status == 2
    (line,) = done.complaints
    assert 'tcp://127.0.0.1:9' in line


@pytest.mark.parametrize('workers', [1, 2, 5, 160])
@pytest.mark.parametrize('stored', [0, 37])
def test_units_share_the_runs_that_are_left_evenly(
    tmp_path: Path, workers: int, stored: int
) -> None:
    changes = {'repetitions': 100, 'judges': ['clean', 'paper_released']}
    plan = small_plan(tmp_path, changes)
    keys = [*plan.run_groups()]
    done = frozenset(random.Random(1).sample(keys, stored))
    units = plan.units(workers, done)
    assert sorted(key for unit in units for key in unit.keys) == sorted({*keys} - done)
    sizes = [len(unit.keys) for unit in units]
    assert max(sizes) <= max(16, len(keys) / workers)
    assert len(units) >= min(workers, len(keys) / 20)
    # A unit is sent to a worker for every few seconds of work.
    assert len(pickle.dumps(units[0])) < 25_000 + 60 * len(units[0].keys)
