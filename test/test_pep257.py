# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""ament_pep257 accepts the docstrings; it runs where ROS's linters are installed."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip('ament_pep257', reason='no linters of ROS')

from ament_pep257.main import main

# Those that pyproject.toml tells ruff to ignore.
IGNORED = ('D100', 'D104', 'D105', 'D107', 'D205', 'D400', 'D401')


def test_ament_pep257_finds_no_problem_in_the_numpy_convention(repository: Path) -> None:
    options = ['--convention', 'numpy', '--add-ignore', *IGNORED, '--']
    packages = [str(repository / name) for name in ('sim_sensors', 'sim2real_eval')]
    assert main(argv=[*options, *packages]) == 0


def test_ruff_ignores_the_same_codes(repository: Path) -> None:
    text = (repository / 'pyproject.toml').read_text('utf-8')
    block = text.partition('\nignore = [')[2].partition('\n]')[0]
    assert {word.strip(" ',") for word in block.split() if word.startswith("'D")} == set(IGNORED)
