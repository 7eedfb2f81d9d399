# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Truths, twins and options for short runs, shared by the tests of `compare`."""

from __future__ import annotations

from cli_examples import run_of

from sim2real_eval.recording.recording import Recording
from sim2real_eval.signals.options import SignalOptions
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker

PLAIN = SignalOptions(trend_window=101)


def truth_of(motion: str, number: int) -> Recording:
    """A run with its truth alone."""
    recording = run_of(motion, number)
    return recording.with_messages('imu', None).with_messages('gps', None)


def made(recording: Recording, twin: Twin, **options: int) -> Recording:
    return TwinMaker(recording, seed=options.get('seed', 1)).make(twin)
