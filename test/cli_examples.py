# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests of the command: short recordings, a runner, and folders as bytes."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from sim2real_eval.cli.main import main
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.report import style
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import synthetic_recording
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.motions import motion_of

VERBS = (
    'demo', 'vepd', 'study', 'transfer', 'gate', 'report', 'compare', 'characterize', 'allan',
    'match', 'export', 'fit', 'simulate', 'reference', 'judge', 'sensitivity', 'tune', 'check',
    'models', 'world', 'follow', 'scenario', 'attitude', 'wheels',
)  # fmt: skip

DURATION = 6.0


# Progress lines that appear only where the judge is not compiled yet or the machine is slow.
_PROGRESS = re.compile(r'^sim2real: ((compiling|waiting) .*|.*\(\d+ s\))\n', re.MULTILINE)


@dataclasses.dataclass
class Outcome:
    """Exit status and output streams of a command, without progress lines on stderr."""

    status: int
    out: str
    err: str

    def __post_init__(self) -> None:
        self.err = _PROGRESS.sub('', self.err)

    @property
    def complaints(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith('sim2real: error: ')]


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> Outcome:
    """Run the command in this process."""
    capsys.readouterr()
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as stop:
        status = int(stop.code or 0)
    captured = capsys.readouterr()
    return Outcome(status, captured.out, captured.err)


class Screen(io.StringIO):
    """A text stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def check_refused(capsys: pytest.CaptureFixture[str], complaint: str, *arguments: object) -> None:
    """Check that a command ends with status 2 and one error line, and changes no file."""
    here = Path.cwd()
    assert not (here / 'setup.py').exists(), 'run this in a temporary folder'
    before = contents(here), sorted(here.rglob('*'))
    outcome = call(capsys, *arguments)
    assert outcome.status == 2
    assert outcome.out == ''
    (line,) = outcome.err.splitlines()
    assert line.startswith('sim2real: error: ')
    assert complaint in line
    assert (contents(here), sorted(here.rglob('*'))) == before


def call_process(*arguments: object) -> Outcome:
    """Run the command as a new process, outside of the source tree, with its streams in pipes."""
    done = subprocess.run(
        command(*arguments), capture_output=True, text=True, cwd=tempfile.gettempdir(),
        env=environment(), timeout=300, check=False,
    )  # fmt: skip
    return Outcome(done.returncode, done.stdout, done.stderr)


PNG = b'\x89PNG\r\n\x1a\n'


def overhang(figure: Figure) -> float:
    """Return by how many pixels the content of a drawn figure exceeds the canvas."""
    box, dpi = figure.get_tightbbox(figure.canvas.get_renderer()), figure.dpi
    right, top = figure.bbox.width - box.x1 * dpi, figure.bbox.height - box.y1 * dpi
    return -float(min(box.x0 * dpi, box.y0 * dpi, right, top))


_print_png = FigureCanvasAgg.print_png


def _draw_within_the_canvas(canvas: FigureCanvasAgg, *words: Any, **options: Any) -> None:
    """Draw a figure; the test fails if a text of it leaves the canvas."""
    _print_png(canvas, *words, **options)
    assert overhang(canvas.figure) < 3.0


# In all tests that import this module, and so in those of all commands.
FigureCanvasAgg.print_png = _draw_within_the_canvas


def _draw_nothing(canvas: object, file: io.BytesIO, **options: object) -> None:
    file.write(PNG)


@contextlib.contextmanager
def pictures_left_blank() -> Iterator[None]:
    """Write only the PNG signature of each figure, because drawing takes most of the time."""
    with (
        mock.patch.object(FigureCanvasAgg, 'print_png', _draw_nothing),
        mock.patch.object(ConstrainedLayoutEngine, 'execute'),
        mock.patch.object(style, 'fit_texts'),
    ):
        yield


def command(*arguments: object) -> list[str]:
    return [sys.executable, '-m', 'sim2real_eval.cli', *(str(argument) for argument in arguments)]


def environment() -> dict[str, str]:
    """Environment variables that make a process import the package under test.

    A process that crashes prints where.
    """
    return {
        **os.environ,
        'PYTHONPATH': os.pathsep.join(entry for entry in sys.path if entry),
        'PYTHONFAULTHANDLER': '1',
    }


@functools.cache
def run_of(motion: str, number: int, *, gps: str = 'ch_rw', imu: str = 'airsim') -> Recording:
    """A short run with the name and scenario that `sim2real simulate` would give it."""
    scenario = motion.removeprefix('drive_')
    name = f'{scenario}_{number}'
    path = motion_of(motion, seed=7, run=name, duration=DURATION, parameters={})
    twin = Twin('stand-in', load_gps(gps), load_imu(imu))
    return synthetic_recording(path, twin, seed=7, run=name, scenario=scenario)


def write_runs(folder: Path, *runs: tuple[str, int]) -> list[Path]:
    """Write runs as bags and return their paths."""
    paths = []
    for motion, number in runs:
        recording = run_of(motion, number)
        write_recording(recording, folder / recording.name)
        paths.append(folder / recording.name)
    return paths


def contents(folder: Path) -> dict[str, bytes]:
    """Content of every file below a folder by its relative path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob('*'))
        if path.is_file()
    }


def segments(real_dir: Path, numbers: Sequence[int]) -> list[Path]:
    """Bags of segments of the car drive; the test skips where they are absent."""
    paths = [real_dir / f'drive0708/segments/drive0708_seg{number:02}/bag' for number in numbers]
    if not all(path.is_dir() for path in paths):
        pytest.skip(f'no recordings in {real_dir}/drive0708/segments')
    return paths
