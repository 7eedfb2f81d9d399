# SPDX-License-Identifier: Apache-2.0
"""What people look at: tables on the console, plots and pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core.faces import lazily

if TYPE_CHECKING:
    from .console import vepd_console_table
    from .run_plots import ENTROPY, RMSE, scores_figure

__all__ = ['ENTROPY', 'RMSE', 'scores_figure', 'vepd_console_table']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'run_plots', 'console')
