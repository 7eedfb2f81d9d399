# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A number that README or documentation claims."""

from __future__ import annotations

from math import inf
from typing import NamedTuple


class Claim(NamedTuple):
    """A number, and where it comes from.

    `measure` is a test that records the figure as a property of itself, or a step of
    `validation.SCRIPTS` that writes it. Every value must lie between `low` and `high`; a share is
    written as `k/n`. `stated` are places that print it: a page and the words on it.
    """

    what: str
    oracle: str
    measure: str
    figure: str
    high: float
    low: float = -inf
    unit: str = ''
    stated: tuple[tuple[str, str], ...] = ()
