# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The folder that `sim2real characterize` writes: models, report and plots."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from sim2real_eval.characterization.calibration import Calibration
from sim2real_eval.characterization.gps_characterization import AXIS_NAMES, GpsResult
from sim2real_eval.characterization.poses import PoseCalibration
from sim2real_eval.common.findings import to_records
from sim2real_eval.common.model_files import model_yaml
from sim2real_eval.common.new_files import write_text
from sim2real_eval.common.results import fresh_files, versions, write_json
from sim_sensors.gps.gps import GnssNoise
from .allan import allan_figure, allan_record
from .console import add_numbers, add_words, plain_table
from .gps_noise import gps_figure
from .style import save_png

FILES = (
    'characterization.json', 'gps.yaml', 'gps_gaussian.yaml', 'gps_random_walk.yaml', 'gps.png',
    'imu.yaml', 'allan.png',
)  # fmt: skip

_KINDS = {
    'gps': 'White noise and a Gauss-Markov wander (or random walk) per axis.',
    'gps_gaussian': 'White noise of the same deviation (Ch:Gauss), without correlation in time.',
    'gps_random_walk': "Chrono's bounded walk (Ch:RW), fitted to a standstill as in the paper.",
}
_REMARKS = {
    'noise.mean': 'a constant error is not observable',
    'noise.acceleration_std': 'gives the second difference of the recording',
    'noise.speed_limit': 'largest of the recording',
    'noise.acceleration_limit': 'largest of the recording',
    'noise.error_scale': 'largest error of the recording',
    'noise.model_rate': 'rate of the fixes, for which the second difference is the acceleration',
    'covariance.k': 'given, not fitted',
}


def calibration_record(calibration: Calibration) -> dict[str, Any]:
    """Return everything as a plain mapping for JSON; unknown values are null."""
    record: dict[str, Any] = {
        'versions': versions(),
        'seed': calibration.seed,
        'recordings': list(calibration.names),
        'not_characterised': list(calibration.problems),
        'notes': to_records(calibration.notes),
        'gps': None,
        'imu': None,
    }
    if calibration.gps is not None:
        record['gps'] = _gps_record(calibration.gps)
        record['gps']['recommended'] = calibration.recommended_gps
        record['gps']['checks'] = [
            {**dataclasses.asdict(check), 'is_consistent': check.is_consistent}
            for check in calibration.gps_checks
        ]
    if calibration.imu is not None:
        imu = calibration.imu
        record['imu'] = allan_record(
            imu.results, imu.terms, imu.model.rate, imu.options, imu.again, calibration.seed
        )
        poses = None if imu.poses is None else dataclasses.asdict(imu.poses)
        record['imu']['poses'] = poses
    finite: dict[str, Any] = _finite(record)
    return finite


def _gps_record(gps: GpsResult) -> dict[str, Any]:
    stated = dataclasses.asdict(gps.stated)
    del stated['time'], stated['deviation']
    return {
        'rate_hz': gps.rate,
        'frame': gps.frame,
        'lever_arm': None if gps.lever_arm is None else gps.lever_arm.tolist(),
        'standstills': [
            {'recording': run.name, 'start_s': run.start, 'seconds': run.seconds,
             'fixes': len(run.time)}
            for run in gps.runs
        ],
        'axes': {
            name: dataclasses.asdict(fit) for name, fit in zip(AXIS_NAMES, gps.axes, strict=True)
        },
        'random_walk': dataclasses.asdict(gps.walk),
        'stated_covariance': stated,
        'covariance_consistency': [
            {**dataclasses.asdict(check), 'verdict': check.verdict} for check in gps.consistency
        ],
        'notes': to_records(gps.notes),
    }  # fmt: skip


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(member) for member in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write_calibration(
    folder: str | Path, calibration: Calibration, record: Mapping[str, Any], *, overwrite: bool
) -> None:
    """Write all files or none, and delete those of an older result."""
    mark = 'characterization.json'
    with fresh_files(folder, FILES, overwrite=overwrite, mark=mark) as target:
        _write_models(target, calibration)
        write_json(target / mark, record, allow_nan=False)


def _write_models(target: Path, calibration: Calibration) -> None:
    origin = f'Made by `sim2real characterize` from: {", ".join(calibration.names)}.'
    if calibration.gps is not None:
        gps = calibration.gps
        still = f'{gps.seconds:.4g} s at standstill, {sum(len(r.time) for r in gps.runs)} fixes.'
        for name, model in gps.models().items():
            comments = [origin, still, _KINDS[name], *_caveats(calibration, gps, name)]
            write_text(target / f'{name}.yaml', model_yaml(model, comments, _REMARKS))
        save_png(gps_figure(gps, calibration.gps_checks[0]), target / 'gps.png')
    if calibration.imu is not None:
        imu = calibration.imu
        spans = ', '.join(f'{result.name} {result.seconds:.4g} s' for result in imu.results)
        comments = [
            origin,
            f'At standstill: {spans}, at {imu.model.rate:.6g} Hz.',
            'Unobservable terms are zero and left out; characterization.json has their bounds.',
        ]
        if imu.poses is not None:
            poses = imu.poses
            comments.append(
                f'Bias, scale and misalignment: {poses.poses} poses of {poses.recording}.'
            )
        write_text(target / 'imu.yaml', model_yaml(imu.model, comments))
        figure = allan_figure(imu.results, imu.terms, imu.again.curves)
        save_png(figure, target / 'allan.png')


def pose_table(calibration: PoseCalibration) -> Table:
    """Return the IMU parameters estimated from its poses, with standard errors."""
    origin = f'{calibration.poses} poses of {calibration.recording}'
    title = f'{origin}, {calibration.seconds:.0f} s at rest'
    table = plain_table(title)
    add_words(table, 'triad', 'parameter')
    add_numbers(table, *'xyz')
    table.caption = '± standard error; cross axis: x to y, x to z, y to z, and vice versa'
    for triad, name, values, errors in calibration.rows:
        cells = (f'{v:.5f} ± {e:.5f}' for v, e in zip(values, errors, strict=True))
        table.add_row(triad, name, *cells)
    return table


def _caveats(calibration: Calibration, gps: GpsResult, name: str) -> list[str]:
    check = next(check for check in calibration.gps_checks if check.model == name)
    if check.is_consistent:
        caveats = ['Its simulations have the statistics of the recording.']
    else:
        worst = check.worst
        caveats = [
            f'Not recommended: {worst} is {worst.record:.3g} m, in 95 % of its simulations '
            f'{worst.lower:.3g} m to {worst.upper:.3g} m.'
        ]
    noise = gps.noises()['gps'] if name == 'gps' else None
    if isinstance(noise, GnssNoise) and any(noise.random_walk):
        longest = max(run.seconds for run in gps.runs)
        caveats.append(f'The random walk holds for runs up to {longest:.3g} s.')
    return caveats


def next_command(calibration: Calibration, folder: str | Path, real_recordings: str) -> str:
    """Return the command that uses the models."""
    target = Path(folder)
    words = ['sim2real vepd', real_recordings]
    name = calibration.recommended_gps
    words.append('--models real' if name is None else f'--models {target / name}.yaml')
    words.append(f'--imu {target / "imu.yaml"}' if calibration.imu is not None else '--imu real')
    return ' '.join([*words, '--out result'])
