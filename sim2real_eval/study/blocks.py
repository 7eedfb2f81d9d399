# SPDX-License-Identifier: Apache-2.0
"""Blocks of the recordings of a study: those of one drive are no independent evidence."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from sim2real_eval.common.findings import Finding
from sim2real_eval.recording.drives import AUTO, NONE, DriveSpan, name_blocks, read_blocks
from .options import DRIVES, ONE_BLOCK
from .recordings import StudyRecording

_MOST_NAMED = 3


def assign_blocks(
    recordings: Sequence[StudyRecording], choice: str, spans: Mapping[str, DriveSpan]
) -> tuple[tuple[StudyRecording, ...], tuple[Finding, ...]]:
    """Return the recordings with their blocks, and findings about these.

    Parameters
    ----------
    recordings : sequence of StudyRecording
        The blocks that a study file states for them count with `auto`.
    choice : str
        `auto`, `none`, or the path of a file; see `recording_blocks`.
    spans : mapping of str to DriveSpan
        Spans of the recordings that were read, by name; needed for `auto`.

    Raises
    ------
    Sim2RealError
        When the file cannot be read, or names another recording.
    """
    names = [recording.name for recording in recordings]
    notes: list[Finding] = []
    if choice == NONE:
        blocks = [''] * len(names)
    elif choice == AUTO:
        stated = [_state_block(recording, spans.get(recording.name)) for recording in recordings]
        blocks = _name_by_group(recordings, stated)
        notes += _drive_findings(names, blocks, [span.block if span else '' for span in stated])
    else:
        by_name = read_blocks(choice, names)
        blocks = [by_name.get(name, '') for name in names]
    changed = tuple(
        dataclasses.replace(recording, block=block)
        for recording, block in zip(recordings, blocks, strict=True)
    )
    for group in dict.fromkeys(recording.group for recording in changed):
        members = [recording.block for recording in changed if recording.group == group]
        if len(members) > 1 and members[0] and len(set(members)) == 1:
            notes.append(ONE_BLOCK(group, count=len(members)))
    return changed, tuple(notes)


def _name_by_group(
    recordings: Sequence[StudyRecording], spans: Sequence[DriveSpan | None]
) -> list[str]:
    blocks = [''] * len(recordings)
    # A recording may be in several groups, which are never compared with each other.
    for group in dict.fromkeys(recording.group for recording in recordings):
        rows = [i for i, recording in enumerate(recordings) if recording.group == group]
        named = name_blocks([recordings[i].name for i in rows], [spans[i] for i in rows])
        for i, block in zip(rows, named, strict=True):
            blocks[i] = block
    return blocks


def _state_block(recording: StudyRecording, span: DriveSpan | None) -> DriveSpan | None:
    if not recording.block:
        return span
    if span is None:
        span = DriveSpan.unknown()
    return span._replace(block=recording.block)


def _drive_findings(
    names: Sequence[str], blocks: Sequence[str], stated: Sequence[str]
) -> list[Finding]:
    drives: dict[str, list[str]] = {}
    for name, block, label in zip(names, blocks, stated, strict=True):
        if block and not label:
            drives.setdefault(block, []).append(name)
    if not drives:
        return []
    parts = [f'{members[0]} to {members[-1]}' for members in drives.values()]
    more = len(parts) - _MOST_NAMED
    text = ', '.join(parts[:_MOST_NAMED]) + (f' and {more} more' if more > 0 else '')
    count = f'{len(drives)} drives' if len(drives) > 1 else 'one drive'
    return [DRIVES(count=sum(map(len, drives.values())), drives=count, names=text)]
