# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A scheduler and workers of dask.distributed as processes."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_PATIENCE_S = 120.0
_WITHOUT_PACKAGE = "import sys; sys.modules['sim2real_eval'] = None\n"


class ClusterProcesses:
    """A scheduler and its workers, each with one thread and without a nanny that restarts it."""

    def __init__(self, folder: Path, workers: int, *, knows_package: bool = True) -> None:
        self._folder = folder
        self.workers: list[subprocess.Popen[bytes]] = []
        blocked = '' if knows_package else _WITHOUT_PACKAGE
        self.scheduler = self._start('scheduler', blocked, '--port', '0', '--host', '127.0.0.1')
        self.address = self._read('scheduler', r'(tcp://127\.0\.0\.1:\d+)')
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> None:
        name = f'worker{len(self.workers)}'
        words = (self.address, '--nthreads', '1', '--no-nanny', '--local-directory', self._folder)
        self.workers.append(self._start(name, '', *map(str, words)))
        self._read(name, r'(Starting established connection)')

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def _start(self, name: str, code: str, *words: str) -> subprocess.Popen[bytes]:
        kind = name.rstrip('0123456789')
        program = f'{code}from distributed.cli.dask_{kind} import main\nmain()'
        with (self._folder / f'{name}.log').open('wb') as log:
            return subprocess.Popen(
                [sys.executable, '-c', program, *words, '--no-dashboard'], stdout=log, stderr=log
            )

    def _read(self, name: str, pattern: str) -> str:
        log = self._folder / f'{name}.log'
        until(lambda: re.search(pattern, log.read_text()), f'{pattern} in {log}')
        match = re.search(pattern, log.read_text())
        assert match
        return match[1]


@contextlib.contextmanager
def cluster_processes(
    folder: Path, workers: int = 2, *, knows_package: bool = True
) -> Iterator[ClusterProcesses]:
    folder.mkdir(exist_ok=True)
    cluster = ClusterProcesses(folder, workers, knows_package=knows_package)
    try:
        yield cluster
    finally:
        cluster.end()


def until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f'waited {_PATIENCE_S:g} s for {what}'
        time.sleep(0.05)
