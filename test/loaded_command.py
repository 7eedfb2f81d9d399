# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Load the imports of a command in the process from which `command_copies` forks."""

from __future__ import annotations

import contextlib

from command_copies import load

load()
with contextlib.suppress(ImportError):
    import sim2real_eval.judge.external.graph  # noqa: F401
