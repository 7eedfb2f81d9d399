# SPDX-License-Identifier: Apache-2.0
"""A folder of `sim2real vepd` as a study of one judge, as far as its speeds tell."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_eval.common.findings import from_records
from sim2real_eval.metrics.series import read_series
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.run import EstimateSignals, RunKey, StudyRun
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray

__all__ = ['VEPD_MARK', 'vepd_outcome']

VEPD_MARK = 'vepd.json'

_LABELS = ('model', 'scenario', 'run', 'recording', 'repetition')


def vepd_outcome(folder: str | Path) -> StudyOutcome:
    """Read the folder; positions and stated deviations, which it does not hold, are NaN.

    Raises
    ------
    Sim2RealError
        When a file is missing or is not what `sim2real vepd` writes.
    """
    folder = Path(folder)
    path = folder / VEPD_MARK
    try:
        record = json.loads(path.read_text(encoding='utf-8'))
        judge = str(record['judge']['name'])
        notes = {
            (one['model'], one['recording'], one['repetition']): from_records(one['notes'])
            for one in record['runs']
        }
        path = folder / 'runs.csv'
        with path.open(encoding='utf-8', newline='') as file:
            rows = list(csv.DictReader(file))
        files: dict[RunKey, Path] = {}
        runs = []
        for row in rows:
            key = RunKey(judge, row['recording'], row['model'], int(row['repetition']))
            source = Path('Real') if key.model == REAL else Path('Sim', key.model)
            files[key] = folder / 'series' / source / f'{row["scenario"]}_{int(row["run"])}.csv'
            values = {name: float(text) for name, text in row.items() if name not in _LABELS}
            told = notes.get((key.model, key.recording, key.repetition), ())
            runs.append(StudyRun(key, row['scenario'], '', values, told))
        component = str(record['component'])
        warmup = float(record['metric']['warmup'])
        known = _as_study(record, judge, folder)
    except OSError as error:
        raise Sim2RealError(f'{path}: cannot be read: {error.strerror}') from None
    except (ValueError, KeyError, TypeError):
        raise Sim2RealError(f'{path}: is not what `sim2real vepd` writes') from None

    def load(key: RunKey) -> EstimateSignals:
        return _signals(files[key], component, warmup)

    return StudyOutcome(known, tuple(runs), load)


def _as_study(record: Mapping[str, Any], judge: str, folder: Path) -> dict[str, Any]:
    recordings = [
        {**one, 'name': one['name'] or Path(one['path']).name} for one in record['recordings']
    ]
    return {
        'title': f'VEPD of {folder.resolve().name}',
        'about': 'One judge, one set of recordings; made from a folder of `sim2real vepd`, which '
        'keeps speeds but neither positions nor covariances.',
        **{
            name: record[name]
            for name in ('seed', 'repetitions', 'component', 'versions', 'models', 'failures')
        },
        # The files are re-zeroed already.
        'metric': {**record['metric'], 'rezero': 'none'},
        'uncertainty': next(iter(record['uncertainty'].values()))['options'],
        'synthetic': bool(record.get('synthetic')),
        'judges': [{'label': judge, **record['judge']}],
        'recordings': recordings,
        'notes': record['notes'],
    }


def _signals(path: Path, component: str, warmup: float) -> EstimateSignals:
    """Return speeds as velocities along the axis of which the component is the speed."""
    series = read_series(path).series
    axis = 1 if component == 'y' else 0

    def along(speed: FloatArray) -> FloatArray:
        velocity = np.zeros((len(speed), 3))
        velocity[:, axis] = speed
        return velocity

    def upright(count: int) -> FloatArray:
        return np.tile((0.0, 0.0, 0.0, 1.0), (count, 1))

    unknown = np.full((len(series.se_time), 3), np.nan)
    # The files begin after the warm-up; a study's signals do not.
    return EstimateSignals(
        time=series.se_time + warmup,
        position=unknown,
        true_position=unknown,
        orientation=upright(len(series.se_time)),
        velocity=along(series.se_vel),
        position_sigma=unknown,
        velocity_sigma=unknown,
        true_time=series.gt_time + warmup,
        true_velocity=along(series.gt_vel),
        true_orientation=upright(len(series.gt_time)),
    )
