# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Blocks of recordings of a study: recordings of one drive are not independent."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from sim2real_eval.common.findings import Finding
from sim2real_eval.recording.drives import (
    AUTO,
    NONE,
    DriveSpan,
    is_drive,
    name_blocks,
    read_blocks,
)
from .options import DRIVES, ONE_BLOCK, SPLIT_DRIVES
from .recordings import StudyRecording

_MAX_NAMED = 3


def assign_blocks(
    recordings: Sequence[StudyRecording], choice: str, spans: Mapping[str, DriveSpan]
) -> tuple[tuple[StudyRecording, ...], tuple[Finding, ...]]:
    """Return the recordings with their blocks, and findings about these.

    Parameters
    ----------
    recordings : sequence of StudyRecording
        With `auto`, blocks stated in the study file are kept.
    choice : str
        `auto`, `none`, or the path of a file; see `recording_blocks`.
    spans : mapping of str to DriveSpan
        Spans of the recordings that were read, by name; without them, `auto` and `none`
        recognise no drives.

    Raises
    ------
    Sim2RealError
        When the file cannot be read, or names an unknown recording.
    """
    names = [recording.name for recording in recordings]
    if choice in (AUTO, NONE):
        stated_spans = [
            _with_stated_block(recording, spans.get(recording.name)) for recording in recordings
        ]
        blocks = _name_by_group(recordings, stated_spans)
    else:
        by_name = read_blocks(choice, names)
        blocks = [by_name.get(name, '') for name in names]
    assigned = tuple(
        dataclasses.replace(recording, block=block)
        for recording, block in zip(recordings, blocks, strict=True)
    )
    notes: list[Finding] = []
    for group in dict.fromkeys(recording.group for recording in assigned):
        # An unreadable recording counts neither as a drive nor as an independent recording.
        members = [
            recording
            for recording in assigned
            if recording.group == group
            and (choice != AUTO or recording.synthetic or recording.name in spans)
        ]
        notes += block_findings(
            [member.name for member in members],
            [member.block for member in members],
            group,
            is_split=choice == NONE,
        )
    if choice == NONE:
        assigned = tuple(dataclasses.replace(recording, block='') for recording in assigned)
    return assigned, tuple(notes)


def block_findings(
    names: Sequence[str], blocks: Sequence[str], group: str = '', *, is_split: bool = False
) -> list[Finding]:
    """Return findings about recordings that were recognised as one drive, or are all one block.

    If `is_split` is true, they count as independent anyway.

    Examples
    --------
    >>> block_findings(['a', 'b', 'c'], ['drive of a', 'drive of a', ''])[0].words['names']
    'a to b'
    >>> [note.code for note in block_findings(['a', 'b'], ['drive of a', 'drive of a'])]
    ['study.one_block']
    """
    if not is_split and len(names) > 1 and blocks[0] and len(set(blocks)) == 1:
        block = 'drive' if is_drive(blocks[0]) else f'block, {blocks[0]}'
        return [ONE_BLOCK(group, count=len(names), block=block)]
    drives: dict[str, list[str]] = {}
    for name, block in zip(names, blocks, strict=True):
        if is_drive(block):
            drives.setdefault(block, []).append(name)
    if not drives:
        return []
    parts = [f'{members[0]} to {members[-1]}' for members in drives.values()]
    hidden_count = len(parts) - _MAX_NAMED
    drive_names = ', '.join(parts[:_MAX_NAMED]) + (
        f' and {hidden_count} more' if hidden_count > 0 else ''
    )
    count = f'{len(drives)} drives' if len(drives) > 1 else 'one drive'
    declaration = SPLIT_DRIVES if is_split else DRIVES
    return [
        declaration(group, count=sum(map(len, drives.values())), drives=count, names=drive_names)
    ]


def _name_by_group(
    recordings: Sequence[StudyRecording], spans: Sequence[DriveSpan | None]
) -> list[str]:
    blocks = [''] * len(recordings)
    # A recording may be in several groups, which are never compared with each other.
    for group in dict.fromkeys(recording.group for recording in recordings):
        rows = [i for i, recording in enumerate(recordings) if recording.group == group]
        group_blocks = name_blocks([recordings[i].name for i in rows], [spans[i] for i in rows])
        for i, block in zip(rows, group_blocks, strict=True):
            blocks[i] = block
    return blocks


def _with_stated_block(recording: StudyRecording, span: DriveSpan | None) -> DriveSpan | None:
    if not recording.block:
        return span
    if span is None:
        span = DriveSpan.unknown()
    return span._replace(block=recording.block)
