# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The page of measured claims, and the experiment on what tells the cost of a simulation."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / 'benchmarks'))

import validation
from claims import CLAIMS, Claim
from realities import EXACT, Models, Reality, errors
from transfer_predicts import COST, TRANSFER, estimator_named, first_choices, summarise, vepd_by


def test_every_claim_of_the_page_holds() -> None:
    record = json.loads(validation.FIGURES.read_text(encoding='utf-8'))
    assert validation.PAGE.read_text(encoding='utf-8') == validation.page(record)
    for claim in (claim for group in CLAIMS.values() for claim in group):
        assert validation.holds(claim, validation.values_of(claim, record['figures'])), claim.what


def test_the_interval_of_a_share_is_that_of_clopper_and_pearson() -> None:
    """0 of n: the upper end is 1 - 0.025^(1/n)."""
    claim = Claim('share', 'law', 'same', 'rejects', 1.0)
    high = 100.0 * (1.0 - 0.025 ** (1.0 / 50.0))
    assert validation.shown(claim, ['0/50']) == f'0.0 % of 50 [0.0, {high:.1f}]'


def test_the_true_model_has_the_errors_of_reality_and_the_smallest_vepd() -> None:
    """Deviations of 2 drives within 25 %; VEPD of the exact law is below that of four times it."""
    reality = Reality(0)
    recordings = [reality.recording(run) for run in range(2)]
    models = Models(reality, recordings)
    sizes = [
        np.sqrt(np.mean([np.mean(errors(run)['fixes'][:, :2] ** 2) for run in side]))
        for side in (recordings, models.twins(EXACT))
    ]
    assert np.hypot(models.white, models.wander) == pytest.approx(sizes[0], rel=1e-6)
    assert sizes[1] == pytest.approx(sizes[0], rel=0.25)
    judge = estimator_named('clean').judge
    exact, wrong = (
        vepd_by(judge, recordings, models.twins(name)) for name in (EXACT, 'fixes x 4')
    )
    assert exact < 0.5 * wrong


def test_equal_rankings_have_a_tau_of_one_and_the_first_choice_costs_its_own_cost() -> None:
    scores = {
        f'{k}': {TRANSFER: 1.0 * k, 'reversed': -1.0 * k, COST: np.log1p(0.1 * k)}
        for k in range(1, 6)
    }
    transfer, other = summarise([scores, scores])
    assert transfer['tau'] == pytest.approx((1.0, 1.0, 1.0))
    assert other['tau'] == pytest.approx((-1.0, -1.0, -1.0))
    assert other['transfer loss more'] == pytest.approx((2.0, 2.0, 2.0))
    assert first_choices([scores], TRANSFER) == pytest.approx([0.1])
    assert first_choices([scores], 'reversed') == pytest.approx([0.5])


@pytest.mark.parametrize(
    ('values', 'is_held'),
    [
        (['380/400'], True),
        (['360/400'], False),  # 90 %
        (['400/400'], False),
        (['38/40', '34/40', '40/40', '40/40'], True),  # 85 % of 40 by chance
        (['40/40', '20/40', *['40/40'] * 8], False),  # one setting of ten covers half
        ([validation.FAILED], False),
    ],
)
def test_a_share_is_held_over_all_settings_and_in_each(values: list[str], is_held: bool) -> None:
    claim = Claim('coverage', 'law', 'same', 'covers', 0.985, 0.92)
    assert validation.holds(claim, values) == is_held
