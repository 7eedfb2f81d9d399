# SPDX-License-Identifier: Apache-2.0
"""`sim2real demo`: the main job on synthetic stand-ins for real recordings."""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sim2real_eval.cli.arguments import add_jobs, add_json, add_seed, at_least
from sim2real_eval.cli.output import print_json, print_notes, print_table, progress_bar
from sim2real_eval.common.findings import Finding, shared_findings
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.report.comparison_folder import comparison_record, write_comparison
from sim2real_eval.simulation.synthetic import motion_of, synthetic_recording
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.comparison import Comparison, ComparisonOptions, Source, compare
from sim_sensors.core.config_files import config_path
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.path_following import DRIVES

__all__ = ['Demo', 'DemoResult', 'add_arguments', 'run']

# -------- The demo study: synthetic stand-ins for real recordings, compared with the paper's
# models.

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


HELP = 'a small study with plots; needs no input'
DESCRIPTION = (
    'Drive a vehicle through line, circle and half-sine, record it with sensors '
    'that stand in for real ones (synthetic, and labelled so), and compare the five GPS '
    'models of the paper with them under both judge profiles.'
)
EPILOG = 'example:\n  sim2real demo\n  sim2real demo --runs 10 --seed 1 --out my_demo'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        '--out',
        default='sim2real_demo',
        metavar='DIR',
        help='folder to write; an older demo in it is replaced (default sim2real_demo)',
    )
    parser.add_argument(
        '--runs',
        type=at_least(1, int),
        default=5,
        metavar='N',
        help='recordings per manoeuvre (default 5)',
    )
    add_json(parser)
    add_seed(parser)
    add_jobs(parser)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from pathlib import Path

    from sim2real_eval.cli.output import print_uncertainty
    from sim2real_eval.report.console import vepd_console_table

    demo = Demo(Path(options.out), runs=options.runs, seed=options.seed)
    with progress_bar(demo.steps, 'demo') as advance:
        results = demo.run(jobs=options.jobs, progress=advance)
    if options.json:
        print_json({result.judge: result.record for result in results})
        return 0
    print('Real recordings are replaced by SYNTHETIC stand-ins: the numbers show how the tool')
    print('works, not how good a sensor model is.\n')
    suggestions: dict[str, list[Finding]] = {}
    for result in results:
        print_table(
            vepd_console_table(
                result.comparison.rows,
                forward_rmse=result.comparison.forward_rmse(),
                title=f'VEPD of horizontal speed, judge {result.judge}: smaller is closer '
                '(SYNTHETIC stand-in)',
            )
        )
        print()
        suggestions[result.judge] = print_uncertainty(
            result.comparison.uncertainty, result.comparison.rows
        )
        print()
    print_notes(
        shared_findings(
            {
                result.judge: [*result.comparison.notes(), *suggestions[result.judge]]
                for result in results
            }
        )
    )
    print(f'Recordings: {demo.recordings}')
    for result in results:
        print(f'Judge {result.judge}: {result.folder}')
        for plot in sorted(result.folder.glob('*.png')):
            print(f'    {plot}')
    print('\nNext, with your own bags:')
    print('    sim2real vepd --real MY_BAGS/* --models paper --out result')
    return 0
