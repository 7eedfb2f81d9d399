# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Compilation with a cache on disk, which several processes may write and read at once."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import filelock
import pytest

from sim_sensors.core import compilation

SCRIPT = """
import sys
from pathlib import Path
import numpy as np
sys.path.insert(0, {folder!r})
import compiled_module as module
assert module.descending(np.arange(3.0)).tolist() == [2.0, 1.0, 0.0]
print(sum(module.descending.dispatcher.stats.cache_hits.values()))
"""
MODULE = """
import numpy as np
from sim_sensors.core.compilation import compiled

@compiled
def descending(x):
    return np.sort(x)[::-1]
"""


@compilation.kernel
def half(x: float) -> float:
    return 0.5 * x


@compilation.compiled
def quarter(x: float) -> float:
    return half(half(x))


def test_a_kernel_is_callable_from_compiled_code_and_from_python() -> None:
    assert quarter(8.0) == 2.0
    assert half(8.0) == 4.0


def test_two_processes_that_need_a_function_compile_it_once(tmp_path: Path) -> None:
    (tmp_path / 'compiled_module.py').write_text(MODULE, encoding='utf-8')
    environment = {**os.environ, 'NUMBA_CACHE_DIR': str(tmp_path / 'cache')}
    command = [sys.executable, '-c', SCRIPT.format(folder=str(tmp_path))]
    streams = {'stdout': subprocess.PIPE, 'text': True, 'env': environment}
    processes = [subprocess.Popen(command, **streams) for _ in range(2)]
    hits = sorted(int(process.communicate()[0]) for process in processes)
    assert hits == [0, 1]
    assert len(list((tmp_path / 'cache').rglob('*.nbc'))) == 1


WAITING = """
import logging, sys
import filelock, numpy as np
from sim_sensors.core import compilation
logging.basicConfig(level=logging.INFO)
compilation._SILENT_S = 0.0
sys.path.insert(0, {folder!r})
import compiled_module as module
module.descending(np.arange(3.0))
print('compiled', flush=True)
sys.stdin.read()
"""


def test_a_process_waits_only_for_one_that_compiles_the_same_function(tmp_path: Path) -> None:
    """The lock of `descending` is held here; `ascending` and a copy of the sources are free."""
    other = MODULE.replace('descending', 'ascending') + '\n\ndescending = ascending\n'
    for folder, text in (('same', MODULE), ('other', other), ('copy', MODULE)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / 'compiled_module.py').write_text(text, encoding='utf-8')
    environment = {**os.environ, 'NUMBA_CACHE_DIR': str(tmp_path / 'cache')}
    starts = {'text': True, 'env': environment}

    def start(folder: str) -> subprocess.Popen[str]:
        command = [sys.executable, '-c', WAITING.format(folder=str(tmp_path / folder))]
        pipes = dict.fromkeys(('stdin', 'stdout', 'stderr'), subprocess.PIPE)
        return subprocess.Popen(command, **starts, **pipes)

    start('same').communicate('')
    (cache,) = (tmp_path / 'cache').glob('numba-*')
    (lock_file,) = cache.glob('*.lock')
    with filelock.FileLock(lock_file):
        waiting = start('same')
        for folder in ('other', 'copy'):
            output, messages = start(folder).communicate('', timeout=60)
            assert output == 'compiled\n', folder
            assert compilation._WAITING not in messages
        line = waiting.stderr.readline()
        assert compilation._WAITING in line
        assert waiting.poll() is None
    output, messages = waiting.communicate('', timeout=60)
    assert output == 'compiled\n'
    assert messages == '', 'one message in a process'


ANNOUNCED = """
import logging, sys
from pathlib import Path
import numpy as np
from sim_sensors.core import compilation
logging.basicConfig(level=logging.INFO)
compilation._SILENT_S = 0.0
sys.path.insert(0, {folder!r})
import compiled_module as module
module.descending(np.arange(3.0))
module.descending(np.arange(3))
module.descending(np.arange(3, dtype=np.float32))
"""


def test_a_process_says_once_that_it_compiles(tmp_path: Path) -> None:
    """It compiles a function three times."""
    (tmp_path / 'compiled_module.py').write_text(MODULE, encoding='utf-8')
    command = [sys.executable, '-c', ANNOUNCED.format(folder=str(tmp_path))]
    environment = {**os.environ, 'NUMBA_CACHE_DIR': str(tmp_path / 'cache')}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    lines = done.stderr.splitlines()
    assert [compilation._MESSAGE in line for line in lines] == [True]


def test_the_cache_folder_is_private_and_named_by_the_sources(tmp_path: Path) -> None:
    folder = compilation.cache_folder([tmp_path])
    assert folder.name.startswith('numba-')
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert compilation.cache_folder([tmp_path]) == folder


def _make_open(folder: Path) -> None:
    folder.chmod(0o777)


def _make_writable_by_a_group(folder: Path) -> None:
    os.chown(folder, -1, 12345)
    folder.chmod(0o770)


def _replace_by_link(folder: Path) -> None:
    folder.rename(folder.with_name('elsewhere'))
    folder.symlink_to(folder.with_name('elsewhere'))


def _replace_by_file(folder: Path) -> None:
    folder.rmdir()
    folder.write_text('theirs')


def _give_away(folder: Path) -> None:
    os.chown(folder, 12345, 12345)


def _open_parent(folder: Path) -> None:
    folder.parent.chmod(0o777)


def _open_grandparent(folder: Path) -> None:
    folder.parent.parent.chmod(0o777)


def _give_parent_away(folder: Path) -> None:
    os.chown(folder.parent, 12345, 12345)


_NEED_ROOT = (_give_away, _give_parent_away, _make_writable_by_a_group)


@pytest.mark.parametrize(
    'fault',
    [_make_open, _replace_by_link, _replace_by_file, _open_parent, _open_grandparent, *_NEED_ROOT],
)
def test_a_cache_into_which_others_could_have_written_is_not_used(
    tmp_path: Path, fault: Callable[[Path], None]
) -> None:
    """The index of numba's cache is a pickle: who writes it runs code as the user."""
    if fault in _NEED_ROOT and os.geteuid() != 0:
        pytest.skip('needs root')
    base, other = tmp_path / 'home' / 'cache', tmp_path / 'private'
    folder = compilation.cache_folder([base])
    assert folder is not None
    assert compilation.cache_folder([base]) == folder
    fault(folder)
    before = folder.lstat()
    assert compilation.cache_folder([base]) is None
    assert folder.lstat().st_mode == before.st_mode, 'is not made to look safe'
    assert compilation.cache_folder([base, other]) == other / folder.name


def test_a_cache_in_a_folder_for_all_users_with_the_sticky_bit_is_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    folder = compilation.cache_folder([tmp_path])
    assert folder is not None
    assert folder.parent == tmp_path


@pytest.mark.parametrize('is_planted', [False, True])
def test_without_a_private_cache_code_is_compiled_in_memory(
    tmp_path: Path, is_planted: bool
) -> None:
    home = tmp_path / 'home'
    if is_planted:
        home.mkdir()
        folder = compilation.cache_folder([home])
        assert folder is not None
        folder.chmod(0o777)
    else:
        home.write_text('no folder')
    before = sorted(tmp_path.rglob('*'))
    environment = {**os.environ, 'NUMBA_CACHE_DIR': str(home)}
    code = (
        'from sim_sensors.core import compilation\n'
        'import numpy as np\n'
        'from sim_sensors.core.compilation import compiled\n'
        '@compiled\n'
        'def double(values):\n'
        '    return values.sum() * 2.0\n'
        'print(compilation._CACHE, double(np.ones(3)))\n'
    )
    (tmp_path / 'code.py').write_text(code)
    output = subprocess.check_output(
        [sys.executable, tmp_path / 'code.py'], env=environment, text=True
    )
    assert output == 'None 6.0\n'
    assert sorted(tmp_path.rglob('*')) == sorted([*before, tmp_path / 'code.py'])
