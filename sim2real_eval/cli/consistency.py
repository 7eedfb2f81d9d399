# SPDX-License-Identifier: Apache-2.0
"""`sim2real judge --consistency`: table and plot of one run, and a table over several."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim2real_eval.cli.output import print_table

if TYPE_CHECKING:
    from sim2real_eval.consistency_check import Checked

__all__ = ['plot_path', 'show_consistency', 'show_over_runs']


def plot_path(estimate: Path) -> Path:
    """Return where the plot of an estimate goes."""
    return estimate.with_name(f'{estimate.stem}_consistency.png')


def show_consistency(
    checked: Checked, estimate: Path, *, title: str, quiet: bool
) -> Mapping[str, Any]:
    """Plot and, unless `quiet`, print the consistency of one run; return it for --json."""
    from sim2real_eval.metrics.consistency import consistency
    from sim2real_eval.report.consistency_plot import save_consistency
    from sim2real_eval.report.consistency_table import consistency_table

    rows = [consistency(squares) for squares in checked.squares]
    plot = None
    if any(len(squares) for squares in checked.squares):
        plot = str(save_consistency(plot_path(estimate), checked.squares, title=title))
    if not quiet:
        print_table(consistency_table(rows, f'Consistency of {title}: ratio 1 is consistent'))
        if plot:
            print(f'plot: {plot}')
    return {'consistency': [row.summary() for row in rows], 'consistency_plot': plot}


def show_over_runs(runs: list[Checked], *, quiet: bool) -> list[Mapping[str, object]]:
    """Print one more table, over all runs, unless `quiet`; return it for --json."""
    from sim2real_eval.metrics.consistency import consistency, over_runs
    from sim2real_eval.report.consistency_table import consistency_table

    rows = [consistency(squares) for squares in over_runs([run.squares for run in runs])]
    if not quiet:
        title = (
            f'Consistency of {len(runs)} runs: NIS of all, NEES summed over runs at equal times'
        )
        print_table(consistency_table(rows, title))
    return [row.summary() for row in rows]
