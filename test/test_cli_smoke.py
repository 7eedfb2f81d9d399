# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A chain of commands, each on the output of the previous one, for installed copies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_examples import call, call_process
from command_copies import call_copy


def test_recordings_are_simulated_judged_and_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bags = tmp_path / 'bags'
    simulated = call(
        capsys, 'simulate', '--motion', 'drive_line', '--runs', 2, '--duration', 6, '--gps',
        'ch_rw', '--imu', 'airsim', '--out', bags,
    )  # fmt: skip
    assert simulated.status == 0
    paths = simulated.out.split()
    assert paths == [str(bags / 'line_1'), str(bags / 'line_2')]

    judged = call(capsys, 'judge', *paths, '--config', 'clean', '--out', tmp_path / 'estimates')
    assert judged.status == 0
    assert len(list((tmp_path / 'estimates').glob('*.csv'))) == 2

    out = tmp_path / 'result'
    compared = call_copy(
        'vepd', *paths, '--models', 'ch_rw,ch_gauss', '--seed', 1, '--jobs', 2,
        '--out', out, '--json',
    )  # fmt: skip
    assert compared.status == 0
    rows = json.loads(compared.out)['vepd']
    ranks = {row['model']: row['rank'] for row in rows if row['scenario'] == 'all'}
    assert ranks == {'ch_rw': 1, 'ch_gauss': 2}

    again = call(capsys, 'vepd', '--series', out / 'series' / 'clean', '--json')
    of_study = {'judge': 'clean', 'group': ''}
    rows_of_series = [{**of_study, **row} for row in json.loads(again.out)['vepd']]
    assert sorted(rows_of_series, key=str) == sorted(rows, key=str)


def test_the_installed_command_finds_its_configuration() -> None:
    outcome = call_process('models', '--json')
    assert outcome.status == 0
    names = json.loads(outcome.out)
    assert 'ch_rw' in names['gps']
    assert 'chrono' in names['imu']
    assert names['judge'] == ['clean', 'paper_released', 'wheels', 'wheels_vision']
