# SPDX-License-Identifier: Apache-2.0
"""What a comparison leaves behind, as a folder and on standard output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sim2real_eval.cli.output import print_notes, print_table
from sim2real_eval.comparison import Comparison, ComparisonOptions, Source
from sim2real_eval.comparison_folder import comparison_record, write_comparison
from sim2real_eval.metrics import VepdRow
from sim2real_eval.report.console import vepd_console_table
from sim2real_eval.report.uncertainty_table import pair_lines, uncertainty_table
from sim2real_eval.uncertainty import Uncertainty

__all__ = ['print_comparison', 'print_uncertainty', 'shown', 'write_result']


def write_result(
    out: str,
    comparison: Comparison,
    recordings: Sequence[Source],
    study: ComparisonOptions,
    *,
    overwrite: bool,
) -> tuple[dict[str, Any], Path]:
    """Write the folder of a comparison; return its record and the folder."""
    record = comparison_record(comparison, recordings, study)
    folder = write_comparison(
        out,
        comparison,
        record,
        speed_label=f'{study.component} speed',
        overwrite=overwrite,
    )
    return record, folder


def print_comparison(
    comparison: Comparison,
    *,
    component: str,
    judge: str,
    folder: Path,
    published: bool = False,
) -> None:
    """Print the table of a comparison, its notes and where it is.

    Parameters
    ----------
    comparison : Comparison
    component : str
        Speed that was compared.
    judge : str
        What the judge is called.
    folder : Path
        Where everything was written.
    published : bool
        Show the paper's numbers beside ours.
    """
    table = vepd_console_table(
        shown(comparison.rows),
        forward_rmse=comparison.forward_rmse(),
        title=f'VEPD of {component} speed, judge {judge}: smaller is closer',
        published=published,
    )
    print_table(table)
    print()
    suggestions = print_uncertainty(comparison.uncertainty, shown(comparison.rows))
    print_notes([*comparison.notes(), *suggestions])
    print(f'Tables, series and plots: {folder}')


def print_uncertainty(known: Mapping[str, Uncertainty], rows: Sequence[VepdRow]) -> list[str]:
    """Print the uncertainty of the distances; return what would reduce it."""
    scenarios = list(dict.fromkeys(row.scenario for row in rows))
    print_table(uncertainty_table({name: known[name] for name in scenarios}))
    return pair_lines(known[scenarios[-1]], scenarios[-1])


def shown(rows: Sequence[VepdRow]) -> list[VepdRow]:
    """Leave the pooled rows out when there is one scenario: they would say the same again."""
    pooled = len({row.scenario for row in rows}) > 2
    return [row for row in rows if pooled or row.scenario != 'all']
