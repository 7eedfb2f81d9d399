# SPDX-License-Identifier: Apache-2.0
"""The `sim2real` command: thin verbs over the library."""

from __future__ import annotations

from sim2real_eval.cli.main import main

__all__ = ['main']
