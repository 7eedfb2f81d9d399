# SPDX-License-Identifier: Apache-2.0
"""The folder that `sim2real allan` writes: curves, terms, plot, and models made of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sim2real_eval.characterization.allan_covariance import TERMS
from sim2real_eval.characterization.analysis import AxisResult, RecordingResult
from sim2real_eval.characterization.imu_file import (
    chain_yaml,
    discrete,
    kalibr_yaml,
    sdf_noise,
    sheet_units,
    si_unit,
)
from sim2real_eval.characterization.noise_terms import NoiseTerms
from sim2real_eval.characterization.options import AllanOptions
from sim2real_eval.characterization.recovered_parameters import Reidentified
from sim2real_eval.characterization.signals import quantity_of
from sim2real_eval.common.findings import to_records
from sim2real_eval.common.results import versions
from sim2real_eval.common.tables import Field, write_bytes, write_csv, write_json
from sim2real_eval.report.allan import save_allan_plot
from sim_sensors.imu.chain import ImuChain

FILES = ('allan.csv', 'allan.json', 'allan.png', 'imu.yaml', 'kalibr_imu.yaml', 'noise.sdf')
_HEADER = (
    'recording',
    'axis',
    'tau_s',
    'deviation',
    'lower',
    'upper',
    'degrees_of_freedom',
    'simple_relative_error',
    'samples_per_mean',
    'model',
    *(f'model_{term}' for term in TERMS),
)


def allan_record(
    results: Sequence[RecordingResult],
    terms: Mapping[str, NoiseTerms],
    rate: float,
    options: AllanOptions,
    again: Reidentified | None,
    seed: int,
) -> dict[str, Any]:
    """Return everything but the curves as a plain mapping, for JSON."""
    return {
        'versions': versions(),
        'options': dataclasses.asdict(options),
        'rate_hz': rate,
        'axes': {axis: _terms_record(axis, row, rate) for axis, row in terms.items()},
        'recordings': [
            {
                'name': result.name,
                'rate_hz': result.rate,
                'samples': result.samples,
                'seconds': result.seconds,
                'notes': to_records(result.notes),
                'axes': {one.axis: _axis_record(one, result.rate) for one in result.axes},
            }
            for result in results
        ],
        'reidentified': None
        if again is None
        else {
            'seed': seed,
            'all_recovered': not again.lost,
            'coefficients': [dataclasses.asdict(one) for one in again.recovered_parameters],
        },
    }


def _axis_record(one: AxisResult, rate: float) -> dict[str, Any]:
    return {
        'mean': one.mean,
        'resolution': one.resolution,
        'outliers_replaced': one.replaced,
        'misfit_of_variance': one.fit.misfit,
        'chi_square': one.fit.chi_square,
        'degrees_of_freedom': one.fit.freedom,
        'graphical_estimate': one.graphical_estimate,
        **_terms_record(one.axis, one.terms, rate),
    }


def _terms_record(axis: str, terms: NoiseTerms, rate: float) -> dict[str, Any]:
    quantity = quantity_of(axis)
    return {
        'seconds': terms.seconds,
        'terms': {
            name: {
                **dataclasses.asdict(one),
                'unit': si_unit(quantity, name),
                'discrete': discrete(name, one.value, rate),
                'data_sheet': {
                    unit.name: unit.of(one.value) for unit in sheet_units(quantity, name)
                },
            }
            for name, one in terms.coefficients().items()
        },
    }


def write_allan_folder(
    folder: str | Path,
    results: Sequence[RecordingResult],
    terms: Mapping[str, NoiseTerms],
    model: ImuChain,
    record: Mapping[str, Any],
    again: Reidentified | None,
    topic: str,
) -> None:
    """Write the files; each is complete or not there."""
    target = Path(folder)
    write_csv(target / 'allan.csv', _HEADER, _rows(results))
    save_allan_plot(target / 'allan.png', results, terms, again.curves if again else None)
    about = [
        'A sensor model made by `sim2real allan` from: '
        + ', '.join(f'{one.name} ({one.seconds:.0f} s at {one.rate:.6g} Hz)' for one in results),
        'sim2real simulate --imu THIS_FILE takes it. Keys that are missing are zero.',
        'Bias instability B is flicker with an Allan plateau of 0.664 B.',
    ]
    rate = model.rate
    for name, text in (
        ('imu.yaml', chain_yaml(model, about)),
        ('kalibr_imu.yaml', kalibr_yaml(terms, rate=rate, topic=topic)),
        ('noise.sdf', sdf_noise(terms, rate=rate)),
    ):
        write_bytes(target / name, text.encode())
    write_json(target / 'allan.json', record)


def _rows(results: Sequence[RecordingResult]) -> list[list[Field]]:
    rows: list[list[Field]] = []
    for result in results:
        for one in result.axes:
            total = one.model.sum(axis=1) ** 0.5
            rows += [
                [
                    result.name,
                    one.axis,
                    one.curve.tau[k],
                    one.curve.deviation[k],
                    one.lower[k],
                    one.upper[k],
                    one.freedom[k],
                    one.simple_error[k],
                    int(one.curve.factors[k]),
                    total[k],
                    *(one.model[k] ** 0.5),
                ]
                for k in range(len(one.curve.factors))
            ]
    return rows
