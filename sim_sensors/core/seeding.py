# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Random streams: one integer seed per study, one independent stream per (run, sensor, source)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np


def run_label(purpose: str, repetition: int, name: str) -> str:
    """Return the label of a run for `stream`: purpose/repetition/name.

    Draws for different purposes are independent. A simulated recording (`recording`) therefore
    differs from the twin (`twin`) of the same name that is compared with it. Repetition 1 is the
    first draw.
    """
    return f'{purpose}/{repetition}/{name}'


def stream(seed: int, run: str, sensor: str, source: str) -> np.random.Generator:
    """Return the random stream of one noise source of one sensor in one run.

    The stream depends on the four arguments only: not on the number of workers, on other models,
    or on the order of calls. Two models that share a source (the position noise of ch_gauss and
    ch_gauss_airsim) thus share its draws.

    Parameters
    ----------
    seed : int
        Seed of the study, >= 0.
    run : str
        Label of the run, such as the name of a recording or `line_03`.
    sensor : str
        Name of the sensor in the run, such as `imu` or `gps`.
    source : str
        Name of the noise source inside the sensor, such as `gyro_white`.

    Returns
    -------
    numpy.random.Generator
        PCG64, seeded by a `SeedSequence` whose spawn key is a hash of the three labels.

    Examples
    --------
    >>> first, again = stream(7, 'run1', 'gps', 'white'), stream(7, 'run1', 'gps', 'white')
    >>> bool(first.normal() == again.normal())
    True
    """
    labels = '\x00'.join((run, sensor, source)).encode()
    digest = hashlib.sha256(labels).digest()
    key = tuple(int.from_bytes(digest[i : i + 4], 'little') for i in range(0, 16, 4))
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


Streams = Callable[[str], np.random.Generator]
"""Gives the random stream of a source by its name."""


def streams(seed: int, run: str, sensor: str, part: str) -> Streams:
    """Return a function that returns the `stream` of a source of one part.

    For the part `part`, the source `white` has the stream of `part_white`.
    """
    return lambda source: stream(seed, run, sensor, f'{part}_{source}')
