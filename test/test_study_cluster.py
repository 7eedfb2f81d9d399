# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Studies on dask.distributed give the same bytes; unfit clusters are refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_examples import call, contents
from study_file_examples import small_plan, write_study_file

from sim2real_eval.recording.writing import write_recording
from sim2real_eval.study.runner import run_study
from sim_sensors.core.errors import Sim2RealError

distributed = pytest.importorskip('distributed')
pytestmark = pytest.mark.usefixtures('blank_pictures')


@pytest.fixture(scope='module')
def cluster() -> Iterator[Any]:
    """Return two workers in this process, connected over TCP."""
    options = {'processes': False, 'protocol': 'tcp://', 'dashboard_address': None}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as scheduler:
        yield scheduler


def test_a_study_on_a_cluster_gives_the_same_bytes(
    tmp_path: Path, cluster: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_study_file(tmp_path, {'judges': ['clean']})
    done = call(
        capsys, 'study', file, '--out', tmp_path / 'far', '--jobs', 1, '--cluster',
        cluster.scheduler_address,
    )  # fmt: skip
    assert done.status == 0
    near = call(capsys, 'study', file, '--out', tmp_path / 'near', '--jobs', 1)
    assert near.status == 0
    assert contents(tmp_path / 'far') == contents(tmp_path / 'near')


def test_a_worker_without_a_recording_or_with_other_versions_ends_the_study(
    tmp_path: Path,
    cluster: Any,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (recording, *_) = small_plan(tmp_path).recordings
    write_recording(recording.read(), tmp_path / 'bag')
    plan = small_plan(tmp_path, {'recordings': [{'path': 'bag'}]})
    (tmp_path / 'bag').rename(tmp_path / 'elsewhere')
    address = cluster.scheduler_address
    with pytest.raises(Sim2RealError, match=r'worker on .*bag'):
        run_study(plan, tmp_path / 'out', cluster=address)
    monkeypatch.setattr('sim2real_eval.study.cluster.versions', _Ageing())
    with pytest.raises(Sim2RealError, match=r'worker on .* numpy 2'):
        run_study(small_plan(tmp_path), tmp_path / 'other', cluster=address)


class _Ageing:
    """Versions that are newer on the second request."""

    requests = 0

    def __call__(self) -> dict[str, str]:
        self.requests += 1
        return {'numpy': str(min(self.requests, 2))}


def test_an_address_without_a_scheduler_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('sim2real_eval.study.cluster._TIMEOUT_S', 1)
    file = write_study_file(tmp_path)
    done = call(capsys, 'study', file, '--out', tmp_path / 'out', '--cluster', 'tcp://127.0.0.1:9')
    assert done.status == 2
    (line,) = done.complaints
    assert 'tcp://127.0.0.1:9' in line
