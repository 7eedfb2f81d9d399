# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Recordings of real and simulated runs: read, checked, written; their frames and truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .metadata import FrameTree
    from .reading import read_recording
    from .recording import Recording, StaticTransform
    from .writing import write_recording

__all__ = ['FrameTree', 'Recording', 'StaticTransform', 'read_recording', 'write_recording']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'recording', 'reading', 'writing', 'metadata')
