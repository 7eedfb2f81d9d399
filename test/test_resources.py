# SPDX-License-Identifier: Apache-2.0
"""The shipped configuration is found in every layout of an installation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sim_sensors.core import config_files, errors

FOLDER = Path(config_files.__file__).parent


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
        'from sim_sensors.core.config_files import config_names, config_path\n'
        f'try: print({expression})\n'
        'except Sim2RealError as error: print("refused:", error)\n'
    )
    variables = {key: value for key, value in os.environ.items() if key != 'AMENT_PREFIX_PATH'}
    done = subprocess.run(
        [sys.executable, '-c', code],
        env={**variables, 'PYTHONPATH': str(packages), **environment},
        cwd=packages,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    'packages',
    [
        'lib/python3.12/site-packages',
        'lib64/python3.12/site-packages',
        'local/lib/python3.12/dist-packages',
        '.',
    ],
)
def test_found_below_the_prefix_that_holds_the_packages(tmp_path: Path, packages: str) -> None:
    folder = install(tmp_path, packages, 'share/sim2real_sensors/config')
    answer = evaluate(folder, 'config_path("gps", "ch_rw.yaml")')
    assert answer == str(tmp_path / 'share/sim2real_sensors/config/gps/ch_rw.yaml')


def test_found_in_a_ros_overlay_apart_from_the_packages(tmp_path: Path) -> None:
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


def test_a_foreign_config_folder_in_site_packages_is_ignored(tmp_path: Path) -> None:
    folder = install(
        tmp_path, 'lib/python3.12/site-packages', 'lib/python3.12/site-packages/config'
    )
    answer = evaluate(folder, 'config_path()')
    assert answer.startswith('refused: configuration files of sim2real_sensors not found')
    assert str(tmp_path / 'share/sim2real_sensors/config') in answer
    assert '/nowhere/share/sim2real_sensors/config' in answer


def test_a_missing_file_is_refused_with_the_existing_names(tmp_path: Path) -> None:
    folder = install(tmp_path, '.', 'share/sim2real_sensors/config')
    answer = evaluate(folder, 'config_path("gps", "ch_rv.yaml")')
    assert answer.startswith("refused: no configuration 'gps/ch_rv.yaml' in ")
    assert answer.endswith('holds ch_rw.yaml')
    assert '\n' not in answer


def test_a_kind_that_is_not_shipped_is_refused() -> None:
    with pytest.raises(errors.Sim2RealError, match='no configuration'):
        config_files.config_names('no_such_kind')


def test_names_are_the_sorted_stems_of_the_shipped_files() -> None:
    kinds = [path.name for path in config_files.config_path().iterdir() if path.is_dir()]
    assert kinds
    for kind in kinds:
        names = config_files.config_names(kind)
        assert names == sorted(names)
        assert all(config_files.config_path(kind, f'{name}.yaml').is_file() for name in names)
