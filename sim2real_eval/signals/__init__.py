# SPDX-License-Identifier: Apache-2.0
"""Signals of real sensors against those of simulated ones, each against its own truth."""

from sim2real_eval.signals.comparison import (
    SignalComparison,
    SignalRow,
    compare_runs,
    compare_signals,
)
from sim2real_eval.signals.measured import SensorSignals, run_signals
from sim2real_eval.signals.options import SignalComparisonError, SignalOptions

__all__ = [
    'SensorSignals',
    'SignalComparison',
    'SignalComparisonError',
    'SignalOptions',
    'SignalRow',
    'compare_runs',
    'compare_signals',
    'run_signals',
]
