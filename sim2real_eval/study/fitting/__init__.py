# SPDX-License-Identifier: Apache-2.0
"""Parameters of sensor models tuned until the judge errs as it does on real recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core.faces import lazily

if TYPE_CHECKING:
    from sim2real_eval.study.options import FitOptions
    from .fit import Fit
    from .tuned import Tuned

__all__ = ['Fit', 'FitOptions', 'Tuned']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'fit', 'tuned')
