# SPDX-License-Identifier: Apache-2.0
"""What judges can see: the smallest errors of sensors that a comparison reveals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core.faces import lazily

if TYPE_CHECKING:
    from .detection import Sensitivity, sensitivity
    from .injection import ERRORS, InjectedError
    from .options import SensitivityOptions
    from .power import Detectable

__all__ = [
    'ERRORS', 'Detectable', 'InjectedError', 'Sensitivity', 'SensitivityOptions', 'sensitivity'
]  # fmt: skip
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'detection', 'injection', 'options', 'power')
