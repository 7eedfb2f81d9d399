# SPDX-License-Identifier: Apache-2.0
"""Noise terms as a table for the terminal: SI, discrete, and the units of data sheets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from sim2real_eval.characterization.analysis import RecordingResult
from sim2real_eval.characterization.estimate import with_error
from sim2real_eval.characterization.noise_terms import Coefficient, NoiseTerms
from sim2real_eval.characterization.reidentification import RecoveredParameter
from sim2real_eval.characterization.sheet_units import discrete, sheet_units, si_unit
from sim2real_eval.characterization.signals import quantity_of, unit_of
from sim2real_eval.report.plain_table import plain_table

__all__ = ['allan_console_table', 'units_legend']

_WORDS = {
    'quantisation': 'quantisation Q',
    'white': 'white noise N',
    'bias_instability': 'bias instab. B',
    'random_walk': 'random walk K',
    'rate_ramp': 'rate ramp R',
}


def allan_console_table(
    terms: Mapping[str, NoiseTerms],
    results: Sequence[RecordingResult],
    recovered_parameters: Sequence[RecoveredParameter] = (),
) -> Table:
    """Return a table with a row per axis and coefficient.

    Parameters
    ----------
    terms : mapping
        By axis.
    results : sequence of RecordingResult
        Of the recordings that they are of. Discrete values are for the rate of the longest; of one
        recording alone there are the coefficients read off with straight lines, too.
    recovered_parameters : sequence of RecoveredParameter, optional
        What became of each coefficient in the simulated sensor.
    """
    rate = max(results, key=lambda one: one.samples).rate
    graphical_estimate = (
        {one.axis: one.graphical_estimate for one in results[0].axes}
        if len(results) == 1
        else None
    )
    samples = sum(one.samples for one in results)
    seconds = sum(one.seconds for one in results)
    where = f' of {len(results)} recordings' if len(results) > 1 else ''
    table = plain_table(
        f'Noise terms: {samples} samples{where}, {seconds:.6g} s '
        f'at {rate:.6g} Hz (discrete: at that rate; < is an upper bound, 95 %)',
        gap=1,
    )
    table.add_column('axis', overflow='fold')
    table.add_column('coefficient', no_wrap=True)
    table.add_column('data sheet', justify='right', no_wrap=True)
    table.add_column('', no_wrap=True)
    table.add_column('SI density', justify='right', no_wrap=True)
    table.add_column('discrete', justify='right', no_wrap=True)
    if graphical_estimate is not None:
        table.add_column('read off', justify='right', no_wrap=True)
    if recovered_parameters:
        table.add_column('back', no_wrap=True)
    back = {(one.axis, one.coefficient): one.is_recovered for one in recovered_parameters}
    for axis, row in terms.items():
        quantity = quantity_of(axis)
        label = axis.replace('_', ' ')
        for name, one in row.coefficients().items():
            unit = sheet_units(quantity, name)[0]
            step = discrete(name, one.value, rate)
            cells: list[Text | str] = [
                Text(label),
                _WORDS[name],
                _shown(one, unit.size),
                unit.name,
                f'{one.value:.3e}' if one.observable else '-',
                f'{step:.2e}' if one.observable else '-',
            ]
            if graphical_estimate is not None:
                read = graphical_estimate.get(axis, {}).get(name)
                cells.append('-' if read is None else f'{unit.of(read):.3g}')
            if recovered_parameters:
                cells.append('yes' if back[axis, name] else Text('no', style='bold red'))
            table.add_row(*cells)
            label = ''
        table.add_section()
    return table


def _shown(one: Coefficient, size: float) -> str:
    if not one.observable:
        return f'< {one.upper / size:.2g}'
    return with_error(one.value / size, one.std / size)


def units_legend(terms: Mapping[str, NoiseTerms]) -> str:
    """Return lines that name the SI units of the table; on their own, since a table wraps them."""
    quantities = list(dict.fromkeys(quantity_of(axis) for axis in terms))
    return '\n'.join(
        f'{quantity}: discrete in {unit_of(f"{quantity}_x")}, SI in '
        + ', '.join(f'{word[-1]} {si_unit(quantity, name)}' for name, word in _WORDS.items())
        for quantity in quantities
    )
