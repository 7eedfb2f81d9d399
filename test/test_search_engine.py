# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Stored evaluations: an interrupted search goes on, and nothing is evaluated twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sim2real_eval.study.options import FEW_RECORDINGS
from sim2real_eval.study.search.engine import EvaluationPool, EvaluationStore
from sim_sensors.core.errors import Sim2RealError

CALLS: list[int] = []


def square(number: int) -> np.ndarray:
    CALLS.append(number)
    if number == 3 and CALLS.count(3) == 1:
        raise KeyboardInterrupt
    return np.array([number**2, 1.0 / 3.0, np.nan])


def squares(store: EvaluationStore) -> list[np.ndarray]:
    with EvaluationPool(store=store) as pool:
        return pool.map(square, [1, 2, 3], keys=[1, 2, 3])


def test_an_interrupted_search_resumes_with_equal_results(tmp_path: Path) -> None:
    CALLS.clear()
    path = tmp_path / 'out.evaluations'
    with pytest.raises(KeyboardInterrupt), EvaluationStore(path, {'seed': 0}) as store:
        squares(store)
    with path.open('a') as file:
        file.write('["cut off')
    with EvaluationStore(path, {'seed': 0}) as store:
        results = squares(store)
    assert CALLS == [1, 2, 3, 3]
    np.testing.assert_array_equal(results, [[k**2, 1.0 / 3.0, np.nan] for k in (1, 2, 3)])
    assert not path.exists()


def test_evaluations_of_another_search_are_not_used(tmp_path: Path) -> None:
    EvaluationStore(tmp_path / 'store', {'seed': 0}).append('key', 1.0)
    assert EvaluationStore(tmp_path / 'store', {'seed': 0}).results == {'key': 1.0}
    assert EvaluationStore(tmp_path / 'store', {'seed': 1}).results == {}


def test_findings_and_tuples_are_read_back_from_the_store(tmp_path: Path) -> None:
    result = ('name', [1.5], (FEW_RECORDINGS(count=2),), {'speed': (0.5, None)})
    EvaluationStore(tmp_path / 'store', {}).append('key', result)
    assert EvaluationStore(tmp_path / 'store', {}).results['key'] == result


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / 'store').write_text('a letter\n')
    with pytest.raises(Sim2RealError):
        EvaluationStore(tmp_path / 'store', {})
    assert (tmp_path / 'store').read_text() == 'a letter\n'
