# SPDX-License-Identifier: Apache-2.0
"""Results held against limits and earlier results, for CI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core.faces import lazily

if TYPE_CHECKING:
    from sim2real_eval.study.options import GateOptions
    from .result import GatedResult
    from .verdict import GateVerdict

__all__ = ['GateOptions', 'GateVerdict', 'GatedResult']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'result', 'verdict')
