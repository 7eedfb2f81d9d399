# SPDX-License-Identifier: Apache-2.0
"""A characterised GPS as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from sim2real_eval.characterization.estimate import ParameterEstimate, with_error
from sim2real_eval.characterization.gps_characterization import AXIS_NAMES, GpsResult
from sim2real_eval.characterization.gps_likeness import SimulatedStatistic
from sim2real_eval.report.plain_table import plain_table

__all__ = ['gps_noise_table', 'gps_statistics_table']

_MODELS = {
    'gps': 'gps.yaml: white + Gauss-Markov',
    'gps_gaussian': 'gps_gaussian.yaml: Ch:Gauss',
    'gps_random_walk': 'gps_random_walk.yaml: Ch:RW',
}


def gps_noise_table(result: GpsResult) -> Table:
    """Return a table with a row per parameter; an uncertainty is one standard deviation, a bound
    holds at 95 %.
    """
    fixes = sum(len(run.time) for run in result.runs)
    table = plain_table(
        f'GPS: {fixes} fixes in {result.seconds:.4g} s at standstill, {result.rate:g} Hz', gap=1
    )
    for name in ('parameter', '', *AXIS_NAMES):
        table.add_column(
            name, no_wrap=True, justify='left' if name in ('parameter', '') else 'right'
        )
    for title, key, unit in (
        ('deviation of a fix', 'total', 'm'),
        ('white noise', 'white', 'm'),
        ('Gauss-Markov deviation', 'wander', 'm'),
        ('Gauss-Markov time', 'time', 's'),
        ('as a random walk', 'walk', 'm/sqrt(s)'),
    ):
        table.add_row(title, unit, *(getattr(fit, key).shown() for fit in result.axes))
    table.add_section()
    walk = result.walk
    for title, one in (
        ('second difference / T²', walk.second_difference),
        ('Ch:RW acceleration std', walk.acceleration_std),
        ('largest speed', walk.speed_limit),
        ('largest acceleration', walk.acceleration_limit),
        ('maximal error', walk.maximal_error),
    ):
        _row(table, title, one)
    table.add_section()
    stated = result.stated
    _row(table, 'HDOP at the first fix', stated.start, f'k = {stated.k:g} m given')
    _row(table, 'HDOP limit', stated.limit)
    _row(table, 'HDOP time constant', stated.time_constant)
    if stated.kind != 'zero':
        _row(table, 'vertical / horizontal', stated.vertical_factor)
        table.add_row('stated deviation', 'm', *(one.shown() for one in stated.constant))
    for test in result.consistency:
        if test.samples:
            verdict = Text(test.verdict, style='' if test.verdict == 'consistent' else 'bold')
            table.add_row(
                f'error² / stated², {test.name.partition(",")[0]}',
                '1',
                f'{test.ratio:.3g}',
                f'{test.lower:.2g} to {test.upper:.2g}',
                verdict,
            )
    return table


def _row(table: Table, title: str, one: ParameterEstimate, said: str = '') -> None:
    table.add_row(title, one.unit, one.shown(), said)


def gps_statistics_table(found: Sequence[SimulatedStatistic]) -> Table:
    """Return a table of the deviations of the record and of each model simulated likewise."""
    table = plain_table(
        'The models simulated over the same times: root mean squares about the means', gap=1
    )
    table.add_column('model', no_wrap=True)
    statistics = list(dict.fromkeys(one.statistic for one in found))
    for statistic in statistics:
        table.add_column(statistic.replace(' [', '\n['), justify='right')
    first = found[0].model
    table.add_row(
        'record', *(f'{one.record:.4g}' for one in found if one.model == first), end_section=True
    )
    for model in dict.fromkeys(one.model for one in found):
        cells = [
            Text(with_error(one.simulated, one.std))
            if one.alike
            else Text(f'{with_error(one.simulated, one.std)} !', style='bold red')
            for one in found
            if one.model == model
        ]
        table.add_row(_MODELS[model], *cells)
    return table
