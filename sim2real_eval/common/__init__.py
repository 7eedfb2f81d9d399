# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Findings, tables, result folders and worker processes, which all folders use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .findings import Finding, FindingKind, FitError, JudgeError, RecordingError, Severity

__all__ = ['Finding', 'FindingKind', 'FitError', 'JudgeError', 'RecordingError', 'Severity']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'findings')
