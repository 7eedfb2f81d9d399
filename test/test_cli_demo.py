# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real demo`: tables, plots, the label SYNTHETIC, and protection of user files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli_examples import call, contents

from sim2real_eval.cli.demo import _plan
from sim2real_eval.common.file_list import write_list
from sim2real_eval.study.recordings import StandIn
from sim_sensors.motion.roads import SprungCar

Capture = pytest.CaptureFixture[str]


def test_a_demo_replaces_an_older_demo_and_is_labelled_synthetic(
    tmp_path: Path, capsys: Capture
) -> None:
    """One run per manoeuvre; files of an older demo are removed, files of the user stay."""
    out = tmp_path / 'demo'
    (out / 'recordings').mkdir(parents=True)
    older = {'command': ['sim2real', 'demo', '--seed', '9'], 'seed': 9}
    (out / 'study.json').write_text(json.dumps(older), encoding='utf-8')
    for name in ('stale', 'mine'):
        (out / 'recordings' / name).touch()
    write_list(out, 'study.json', ['study.json', 'recordings/stale'])
    (out / 'my_notes.md').write_text('mine', encoding='utf-8')
    command = ('demo', '--runs', 1, '--jobs', 1, '--out', out)
    outcome = call(capsys, *command)
    assert outcome.status == 0
    assert outcome.complaints == []
    files = contents(out)
    assert 'recordings/stale' not in files
    assert files['recordings/mine'] == b''
    assert files['my_notes.md'] == b'mine'
    assert b'synthetic' in files['SYNTHETIC.txt']
    for name in ('line_1', 'circle_1', 'half_sine_1'):
        assert f'recordings/{name}/{name}.mcap' in files
    for name in ('velocity', 'rmse', 'entropy', 'density', 'ranking'):
        assert f'plots/clean/{name}.png' in files
    assert 'SYNTHETIC' in outcome.out
    assert len(files['vepd.csv'].decode().splitlines()) == 1 + 5 * 4
    for later in (['report', out], ['gate', out, '--max-vepd', 9]):
        assert 'SYNTHETIC' in call(capsys, *later).out
    assert [path.name for path in tmp_path.iterdir()] == ['demo']
    # An interrupted demo keeps its complete recordings and makes the others.
    shutil.rmtree(out / 'recordings' / 'circle_1')
    written_at = (out / 'recordings' / 'line_1').stat().st_mtime_ns
    call(capsys, *command)
    assert (out / 'recordings' / 'line_1').stat().st_mtime_ns == written_at
    assert contents(out) == files


@pytest.mark.parametrize('kind', ['folder', 'file'])
def test_a_folder_that_is_not_a_demo_is_not_changed(
    tmp_path: Path, capsys: Capture, kind: str
) -> None:
    out = tmp_path / 'thesis'
    if kind == 'folder':
        out.mkdir()
    user_file = out / 'chapter.tex' if kind == 'folder' else out
    user_file.write_text('mine', encoding='utf-8')
    outcome = call(capsys, 'demo', '--out', out)
    assert outcome.status == 2
    assert len(outcome.complaints) == 1
    assert user_file.read_text(encoding='utf-8') == 'mine'


def test_the_demo_car_drives_on_the_requested_road(tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip('mujoco', reason='the extra mujoco')
    plan = _plan(0, 1, 'C', ['clean'])
    cars = {
        recording.origin.drive.vehicle
        for recording in plan.recordings
        if isinstance(recording.origin, StandIn)
    }
    assert cars == {SprungCar(road='C')}
    assert plan.record['command'][-2:] == ['--road', 'C']
    outcome = call(capsys, 'demo', '--road', 'E', '--out', tmp_path / 'demo')
    assert outcome.status == 2
    (complaint,) = outcome.complaints
    assert "'E'" in complaint
