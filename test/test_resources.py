# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The shipped configuration is found in every layout of an installation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sim_sensors.core import shipped

FOLDER = Path(shipped.__file__).parent


def install(prefix: Path, packages: str, share: str | None) -> Path:
    """Copy modules and a one-file configuration below `prefix`, as an installer does."""
    target = prefix / packages / 'sim_sensors'
    target.mkdir(parents=True)
    shutil.copy(FOLDER.parent / '__init__.py', target)
    shutil.copytree(FOLDER, target / FOLDER.name, ignore=shutil.ignore_patterns('__pycache__'))
    if share is not None:
        config = prefix / share / 'gps'
        config.mkdir(parents=True)
        (config / 'ch_rw.yaml').write_text('{}\n', encoding='utf-8')
    return target.parent


def evaluate(packages: Path, expression: str, **environment: str) -> str:
    """Evaluate in a new interpreter whose data folder holds nothing of this package."""
    code = (
        'import sysconfig; sysconfig.get_path = lambda name: "/nowhere"\n'
        'from sim_sensors.core.errors import Sim2RealError\n'
        'from sim_sensors.core.shipped import config_names, config_path\n'
        f'try: print({expression})\n'
        'except Sim2RealError as error: print("refused:", error)\n'
    )
    variables = {key: value for key, value in os.environ.items() if key != 'AMENT_PREFIX_PATH'}
    streams = {'capture_output': True, 'text': True, 'check': True}
    environment = {**variables, 'PYTHONPATH': str(packages), **environment}
    command = [sys.executable, '-c', code]
    done = subprocess.run(command, env=environment, cwd=packages, **streams)
    return done.stdout.strip()


@pytest.mark.parametrize(
    'packages', ['lib/python3.12/site-packages', 'local/lib/python3.12/dist-packages', '.']
)
def test_configuration_is_found_below_the_prefix(tmp_path: Path, packages: str) -> None:
    folder = install(tmp_path, packages, 'share/sim2real_sensors/config')
    answer = evaluate(folder, 'config_path("gps", "ch_rw.yaml")')
    assert answer == str(tmp_path / 'share/sim2real_sensors/config/gps/ch_rw.yaml')


def test_configuration_is_found_in_another_ros_overlay(tmp_path: Path) -> None:
    folder = install(tmp_path / 'code', '.', None)
    install(tmp_path / 'overlay', 'lib', 'share/sim2real_sensors/config')
    path = os.pathsep.join([str(tmp_path / 'other'), str(tmp_path / 'overlay')])
    assert evaluate(folder, 'config_names("gps")', AMENT_PREFIX_PATH=path) == "['ch_rw']"


def test_a_checkout_is_preferred_to_an_overlay(tmp_path: Path) -> None:
    folder = install(tmp_path / 'checkout', '.', 'config')
    shutil.copy(Path(__file__).parents[1] / 'package.xml', folder)
    install(tmp_path / 'overlay', 'lib', 'share/sim2real_sensors/config')
    answer = evaluate(folder, 'config_path()', AMENT_PREFIX_PATH=str(tmp_path / 'overlay'))
    assert answer == str(tmp_path / 'checkout/config')


def test_a_missing_file_is_refused_with_the_existing_names(tmp_path: Path) -> None:
    folder = install(tmp_path, '.', 'share/sim2real_sensors/config')
    answer = evaluate(folder, 'config_path("gps", "ch_rv.yaml")')
    assert answer.startswith("refused: no configuration 'gps/ch_rv.yaml' in ")
    assert 'ch_rw.yaml' in answer
