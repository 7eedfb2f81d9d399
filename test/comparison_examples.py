# SPDX-License-Identifier: Apache-2.0
"""What the tests of the comparison share: twins, options, sources, a written result."""

from __future__ import annotations

from pathlib import Path

from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.report.comparison_folder import comparison_record, write_comparison
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.comparison import ComparisonOptions, Source, compare
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu

RUNS = [(f'drive_{motion}', n) for motion in ('line', 'circle') for n in (1, 2)]


def twin(gps: str | None, imu: str | None = 'chrono', label: str = '') -> Twin:
    gps_model = None if gps is None else load_gps(gps)
    imu_model = None if imu is None else load_imu(imu)
    return Twin(label or str(gps), gps_model, imu_model)


def options(*twins: Twin, **others: object) -> ComparisonOptions:
    setup = JudgeSetup.load(str(others.pop('judge', 'paper_released')))
    return ComparisonOptions(twins=twins, setup=setup, **others)


def sources(paths: list[Path]) -> list[Source]:
    return [Source(str(path)) for path in paths]


def written(folder: Path, paths: list[Path], study: ComparisonOptions, jobs: int = 1) -> Path:
    comparison = compare(sources(paths), study, jobs=jobs)
    record = comparison_record(comparison, sources(paths), study)
    return write_comparison(folder, comparison, record, speed_label='speed')
