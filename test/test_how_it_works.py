# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The VEPD that docs/explanation/how_it_works.md computes by hand is that of the code."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from sim2real_eval.metrics import MetricOptions, RunScore, VelocitySeries, score_run, vepd

OPTIONS = MetricOptions(rate=1.0, moving_average=1)


@pytest.fixture(scope='module')
def page(repository: Path) -> Path:
    return repository / 'docs' / 'explanation' / 'how_it_works.md'


@pytest.fixture(scope='module')
def rows(page: Path) -> dict[str, tuple[list[float], list[float]]]:
    """Estimate, and RMSE, entropy and entropy difference of the table, by run."""
    lines = re.findall(r'^\| (truth|\w+ \d) \| (.*) \|$', page.read_text('utf-8'), re.M)
    cells = {name: rest.split(' | ') for name, rest in lines}
    return {
        name: ([float(v) for v in estimate.split(',')], [float(v) for v in scores])
        for name, (estimate, *scores) in cells.items()
    }


def test_the_example_prints_what_the_page_shows(page: Path) -> None:
    done = doctest.testfile(str(page), module_relative=False)
    assert done.attempted > 5
    assert done.failed == 0


def test_the_table_and_the_vepd_are_those_of_the_code(
    page: Path, rows: dict[str, tuple[list[float], list[float]]]
) -> None:
    time = [0.0, 1.0, 2.0, 3.0, 4.0]
    truth = rows['truth'][0]
    sides: dict[str, list[RunScore]] = {'real': [], 'simulated': []}
    for name, (estimate, shown) in rows.items():
        series = VelocitySeries(time, [*estimate, 3.0], time, [*truth, 3.0])
        score = score_run(series, OPTIONS)
        computed = [score.rmse, score.entropy_se, score.entropy_difference]
        # Four decimals are shown.
        assert shown == pytest.approx(computed, abs=5e-5)
        if name != 'truth':
            sides[name.split()[0]].append(score)
    assert [len(side) for side in sides.values()] == [2, 2]
    shown_vepd = re.findall(r'\*\*(0\.\d+)\*\*', page.read_text('utf-8'))
    expected = vepd(sides['real'], sides['simulated']).vepd
    assert [float(value) for value in shown_vepd] == pytest.approx([expected], abs=5e-5)
