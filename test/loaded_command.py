# SPDX-License-Identifier: Apache-2.0
"""Loads what a command needs, in the process that `command_copies` copies fresh ones from."""

from __future__ import annotations

import contextlib

from command_copies import load

load()
with contextlib.suppress(ImportError):
    import sim2real_eval.judge.external.graph  # noqa: F401
