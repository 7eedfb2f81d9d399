# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Compilation with a cache on disk, which several processes may write and read at once."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

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


def test_a_start_says_once_that_it_compiles(tmp_path: Path) -> None:
    """Two processes of one session, three compilations each; another session says it again."""
    (tmp_path / 'compiled_module.py').write_text(MODULE, encoding='utf-8')
    command = [sys.executable, '-c', ANNOUNCED.format(folder=str(tmp_path))]
    environment = {**os.environ, 'NUMBA_CACHE_DIR': str(tmp_path / 'cache')}
    starts = {'stderr': subprocess.PIPE, 'text': True, 'env': environment}
    processes = [subprocess.Popen(command, **starts) for _ in range(2)]
    lines = [line for process in processes for line in process.communicate()[1].splitlines()]
    assert [compilation._MESSAGE in line for line in lines] == [True]
    (tmp_path / 'compiled_module.py').write_text(MODULE + '\n# changed\n', encoding='utf-8')
    other = subprocess.run(command, check=True, start_new_session=True, **starts)
    assert compilation._MESSAGE in other.stderr


def test_the_cache_folder_is_private_and_named_by_the_sources(tmp_path: Path) -> None:
    folder = compilation.cache_folder([tmp_path])
    assert folder.name.startswith('numba-')
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert compilation.cache_folder([tmp_path]) == folder
