# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Transfer loss: what it costs on the robot to tune a filter in simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from sim2real_eval.study.options import TransferOptions
    from .result import ModelTransfer, Transfer
    from .sources import MemorySource, RunSource
    from .transfer import measure_transfer

__all__ = [
    'MemorySource',
    'ModelTransfer',
    'RunSource',
    'Transfer',
    'TransferOptions',
    'measure_transfer',
]
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'result', 'sources', 'transfer')
