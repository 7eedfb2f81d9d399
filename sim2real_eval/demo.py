# SPDX-License-Identifier: Apache-2.0
"""The demo study: synthetic stand-ins for real recordings, compared with the paper's models."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sim2real_eval.comparison import Comparison, ComparisonOptions, Source, compare
from sim2real_eval.comparison_folder import comparison_record, write_comparison
from sim2real_eval.judge_setup import JudgeSetup
from sim2real_eval.recording import write_recording
from sim2real_eval.synthetic import motion_of, synthetic_recording
from sim2real_eval.twin import Twin
from sim_sensors.catalogue import load_gps, load_imu
from sim_sensors.errors import Sim2RealError
from sim_sensors.path_following import DRIVES
from sim_sensors.resources import config_path

__all__ = ['Demo', 'DemoResult']

_MODELS = ('ch_gauss', 'ch_rw', 'airsim', 'ch_gauss_airsim', 'ch_rw_airsim')
_JUDGES = ('paper_released', 'clean')
_MARK = 'SYNTHETIC.txt'
_LABEL = (
    'The recordings in this folder are synthetic: a simulated vehicle with simulated sensors '
    'stands in\nfor real ones. Made by `sim2real demo`; a new demo replaces this folder.\n'
)


@dataclasses.dataclass(frozen=True, eq=False)
class DemoResult:
    """Comparison under one judge profile, and the folder that holds it."""

    judge: str
    comparison: Comparison
    folder: Path
    record: dict[str, Any]


class Demo:
    """A small study that needs no input.

    Parameters
    ----------
    folder : Path
        Folder to write; an older demo in it is replaced, anything else refused.
    runs : int
        Recordings per manoeuvre.
    seed : int
        Of the study.

    Attributes
    ----------
    steps : int
        How often `run` reports progress.
    recordings : Path
        Folder of the stand-in recordings.

    Raises
    ------
    Sim2RealError
        When the folder holds something else.
    """

    def __init__(self, folder: Path, *, runs: int, seed: int) -> None:
        if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
            if not (folder / _MARK).is_file():
                raise Sim2RealError(
                    f'{folder}: exists and is no demo (it has no {_MARK}); choose another --out'
                )
            ours = {_MARK, 'recordings', *_JUDGES}
            for entry in sorted(folder.iterdir()):
                if entry.name not in ours:
                    raise Sim2RealError(
                        f'{entry}: is not of the demo that would be replaced; move it away'
                    )
        self.folder = folder
        self.recordings = folder / 'recordings'
        self._runs = runs
        self._seed = seed
        total = runs * len(DRIVES)
        self.steps = total + total * len(_JUDGES)

    def run(self, *, jobs: int, progress: Callable[[], None]) -> list[DemoResult]:
        """Make the recordings, judge them and their twins, write everything; return the results.

        Parameters
        ----------
        jobs : int
            Processes.
        progress : callable
            Called `steps` times.
        """
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f'.{self.folder.name}.', dir=self.folder.parent))
        try:
            # The older demo comes back unless the new one is complete.
            if self.folder.exists():
                self.folder.rename(aside / 'old')
            try:
                return self._make(jobs, progress)
            except BaseException:
                shutil.rmtree(self.folder, ignore_errors=True)
                if (aside / 'old').exists():
                    (aside / 'old').rename(self.folder)
                raise
        finally:
            shutil.rmtree(aside)

    def _make(self, jobs: int, progress: Callable[[], None]) -> list[DemoResult]:
        self.folder.mkdir()
        (self.folder / _MARK).write_text(_LABEL, encoding='utf-8')
        sources = self._record(progress)
        return [self._compare(sources, judge, jobs, progress) for judge in _JUDGES]

    def _record(self, progress: Callable[[], None]) -> list[Source]:
        stand_in = Twin(
            'stand_in',
            gps=load_gps(config_path('demo', 'gps.yaml')),
            imu=load_imu(config_path('demo', 'imu.yaml')),
        )
        sources = []
        for scenario in DRIVES:
            for number in range(1, self._runs + 1):
                name = f'{scenario}_{number}'
                motion = motion_of(
                    f'drive_{scenario}', seed=self._seed, run=name, duration=20.0, parameters={}
                )
                recording = synthetic_recording(
                    motion, stand_in, seed=self._seed, run=name, scenario=scenario
                )
                write_recording(recording, self.recordings / name)
                sources.append(Source(str(self.recordings / name)))
                progress()
        return sources

    def _compare(
        self, sources: list[Source], judge: str, jobs: int, progress: Callable[[], None]
    ) -> DemoResult:
        imu = load_imu('chrono')
        options = ComparisonOptions(
            twins=tuple(Twin(name, load_gps(name), imu) for name in _MODELS),
            setup=JudgeSetup.load(judge),
            seed=self._seed,
        )
        comparison = compare(sources, options, jobs=jobs, progress=progress)
        # For those who read the folder later: report and gate.
        record = {**comparison_record(comparison, sources, options), 'synthetic': True}
        folder = write_comparison(
            self.folder / judge,
            comparison,
            record,
            speed_label='horizontal speed',
            real_label='stand-in (SYNTHETIC)',
        )
        return DemoResult(judge, comparison, folder, record)
