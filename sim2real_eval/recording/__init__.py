# SPDX-License-Identifier: Apache-2.0
"""Recordings of real and simulated runs: read, checked, written."""

from sim2real_eval.recording.digest import recording_digest
from sim2real_eval.recording.errors import RecordingError
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import (
    DEFAULT_TOPICS,
    OPTIONAL_ROLES,
    Note,
    Recording,
    StaticTransform,
)
from sim2real_eval.recording.reference_truth import ReferenceTruth
from sim2real_eval.recording.writing import write_recording

__all__ = [
    'DEFAULT_TOPICS',
    'OPTIONAL_ROLES',
    'Note',
    'Recording',
    'RecordingError',
    'ReferenceTruth',
    'StaticTransform',
    'read_recording',
    'recording_digest',
    'write_recording',
]
