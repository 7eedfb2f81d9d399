# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The mutation test of `make mutants`: its changes, its tables, and a copy that is restored."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / 'benchmarks'))

import mutants

FOLDERS = (
    'sim2real_eval/metrics', 'sim2real_eval/judge/robot_localization', 'sim_sensors/gps',
    'sim_sensors/imu', 'sim_sensors/magnetometer', 'sim_sensors/noise',
)  # fmt: skip


def test_every_module_of_the_area_has_tests_that_exist(repository: Path) -> None:
    modules = {
        file.relative_to(repository).as_posix()
        for folder in FOLDERS
        for file in repository.glob(f'{folder}/*.py')
        if file.name != '__init__.py'
    }
    assert modules <= set(mutants.TESTS)
    for path, names in mutants.TESTS.items():
        assert (repository / path).is_file(), path
        for name in names.split():
            assert (repository / f'test/test_{name}.py').is_file(), name


def test_a_change_alters_one_place_and_is_undone(tmp_path: Path) -> None:
    tree = object.__new__(mutants.Tree)
    tree.folder = tmp_path
    drawn = mutants.draw(40, seed=3)
    assert mutants.draw(40, seed=3) == drawn
    for mutant in drawn:
        file, original = tmp_path / mutant.path, (mutants.ROOT / mutant.path).read_bytes()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(original)
        with tree.changed(mutant):
            changed = file.read_bytes()
            assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(original)), mutant
            assert changed.startswith(original[: mutant.start])
            assert changed.endswith(original[mutant.end :])
        assert file.read_bytes() == original


def test_texts_types_and_errors_are_not_changed(tmp_path: Path) -> None:
    source = '''
LIMIT = 3
def f(x: int | None = None) -> int | None:
    """Return 1 + 1."""
    y: int | float = 2.5
    if x is None:
        raise ValueError(1 + 1, f'{1 + 2}')
    return min(x, y)
'''
    file = tmp_path / 'module.py'
    file.write_text(source)
    changes = {(m.line, m.before, m.after) for m in mutants.mutants(str(file))}
    assert changes == {
        (5, '2.5', '5.0'), (6, 'x is None', 'x is not None'), (8, 'min(x, y)', 'max(x, y)'),
        (8, 'min(x, y)', 'min(y, x)'),
    }  # fmt: skip


def test_equivalent_changes_are_those_of_the_present_sources() -> None:
    for (path, before, after), reason in mutants.reasons().items():
        assert mutants.find(path, 1, before, after) is not None, (path, before)
        assert len(reason.split()) >= 5
