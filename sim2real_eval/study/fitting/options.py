# SPDX-License-Identifier: Apache-2.0
"""How a model is fitted, with the defaults and what is allowed."""

from __future__ import annotations

import dataclasses

from sim2real_eval.metrics.uncertainty.result import UncertaintyOptions
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameters, parameter


@dataclasses.dataclass(frozen=True)
class FitOptions(Parameters):
    """How is fitted."""

    metric: str = parameter(
        'vepd',
        '',
        'What is made small: VEPD, one of its parts, or the energy distance.',
        choices=('vepd', 'rmse', 'entropy', 'energy'),
    )
    folds: int = parameter(
        5,
        '1',
        'Parts into which the recordings are dealt for cross-validation, each held out once: 2 or '
        'more; 0: none.',
        minimum=0,
    )
    candidates: int | None = parameter(
        None,
        '1',
        'Parameter values judged at most (15, and 20 more per parameter, where it is not given).',
        optional=int,
        minimum=1,
    )
    uncertainty: UncertaintyOptions = dataclasses.field(default_factory=UncertaintyOptions)

    def _check(self) -> None:
        if self.folds == 1:
            # One alone would leave nothing to fit to.
            raise ParameterError('', 'folds', '1 is not allowed; must be 0 or an integer >= 2')
