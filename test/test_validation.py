# SPDX-License-Identifier: Apache-2.0
"""The page of measured claims, and the experiment on what VEPD predicts."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / 'benchmarks'))

import validation
from claims import CLAIMS, Claim
from realities import EXACT, Models, Reality, errors
from vepd_predicts import scored, summary

from sim2real_eval.metrics.scores import vepd

ALL = [claim for group in CLAIMS.values() for claim in group]


def test_the_page_shows_what_was_measured_and_all_of_it_holds() -> None:
    told = json.loads(validation.FIGURES.read_text(encoding='utf-8'))
    assert validation.PAGE.read_text(encoding='utf-8') == validation.page(told)
    for claim in ALL:
        assert validation.holds(claim, validation.values_of(claim, told['figures'])), claim.what


@pytest.mark.parametrize('claim', [one for one in ALL if one.stated], ids=lambda one: one.what)
def test_what_is_claimed_is_printed_where_it_is_said_to_be(repository: Path, claim: Claim) -> None:
    for page, words in claim.stated:
        assert words in (repository / page).read_text(encoding='utf-8'), page


def test_tests_that_measure_record_their_figures(repository: Path) -> None:
    for claim in ALL:
        file, _, name = claim.measure.partition('::')
        if name:
            text = (repository / 'test' / file).read_text(encoding='utf-8')
            body = re.split(r'\n(?:def|@)', text.split(f'def {name}(')[1])[0]
            assert 'record_property(' in body, claim.measure


def test_a_share_has_the_interval_of_clopper_and_pearson() -> None:
    """0 of n: the upper end is 1 - 0.025^(1/n)."""
    claim = Claim('share', 'law', 'same', 'rejects', 1.0)
    high = 100.0 * (1.0 - 0.025 ** (1.0 / 50.0))
    assert validation.shown(claim, ['0/50']) == f'0.0 % of 50 [0.0, {high:.1f}]'


def test_the_matching_model_errs_as_the_reality_and_the_exact_law_is_nearest() -> None:
    """Deviations of 2 drives within 25 %; VEPD of the exact law is below that of four times it."""
    reality = Reality(0)
    seen = [reality.recording(run) for run in range(2)]
    made = Models(reality, seen)
    sizes = [
        np.sqrt(np.mean([np.mean(errors(one)['fixes'][:, :2] ** 2) for one in side]))
        for side in (seen, made.twins(EXACT))
    ]
    assert np.hypot(made.white, made.wander) == pytest.approx(sizes[0], rel=1e-6)
    assert sizes[1] == pytest.approx(sizes[0], rel=0.25)
    real = scored(seen, 'clean')
    exact, wrong = (
        vepd(real, scored(made.twins(name), 'clean')).vepd for name in (EXACT, 'fixes x 4')
    )
    assert exact < 0.5 * wrong


def test_ranks_that_agree_have_tau_one() -> None:
    found = {
        f'{k}': {'VEPD': 1.0 * k, 'naive': -1.0 * k, 'loss': k**2, 'speed': k, 'position': k}
        for k in range(1, 6)
    }
    first, second = summary([found, found])
    assert first['loss'] == pytest.approx((1.0, 1.0, 1.0))
    assert second['speed, less the first'] == pytest.approx((-2.0, -2.0, -2.0))
