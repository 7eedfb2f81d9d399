# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Drives: which recordings were made one after another, and are therefore not independent."""

from __future__ import annotations

import csv
import datetime
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sim2real_eval.common.findings import RecordingError
from sim_sensors.core.errors import ParameterError, Sim2RealError, not_among
from sim_sensors.core.input_files import read_input_text
from sim_sensors.core.measurements import FloatArray, IntArray
from .metadata import load_yaml
from .reading import RecordingSource
from .recording import Recording

AUTO, NONE = 'auto', 'none'

_DRIVE = 'drive of '

_LONGEST_PAUSE_NS = 60_000_000_000
"""Longest pause between two recordings of one drive."""
_SPLIT_NS = 2_000_000_000
"""Longest pause, and overlap, between two parts that a recorder cut."""
_UNIX_NS = 1_000_000_000_000_000_000
"""Stamps below it, of the year 2001, are of a clock that began at zero, as simulated time does."""
_PLACE_M = 20.0
"""Largest distance between equal places, by fixes."""
_FASTEST = 60.0
"""Speed that no vehicle exceeds in a pause, m/s."""
_METRES_PER_DEGREE = 111_320.0


class DriveSpan(NamedTuple):
    """When and where a recording was made."""

    begin_ns: int
    end_ns: int
    fix_ns: IntArray  # (n,), stamps of the valid fixes
    places: FloatArray  # (n, 2), their latitudes and longitudes, degrees
    block: str = ''  # block that the recording states; such a recording is not grouped

    @classmethod
    def of_recording(cls, recording: Recording) -> DriveSpan:
        """Return the span of a recording."""
        fixes = recording.gps
        if fixes is None:
            stamps, places = np.empty(0, dtype=np.int64), np.empty((0, 2))
        else:
            valid = fixes.is_valid
            stamps = fixes.stamp_ns[valid]
            places = np.stack([fixes.latitude[valid], fixes.longitude[valid]], axis=1)
        return cls(recording.start_ns, recording.end_ns, stamps, places, recording.block)

    @classmethod
    def unknown(cls) -> DriveSpan:
        """Return the span of a recording of unknown time and place."""
        return cls(0, 0, np.empty(0, dtype=np.int64), np.empty((0, 2)))


def group_drives(spans: Sequence[DriveSpan]) -> list[list[int]]:
    """Return groups of recordings that were made in one drive, each in the order of time.

    A recording belongs to the drive of another if it begins within a minute after the end of the
    other, where a vehicle could have got to in the pause, or if both contain the same fix.
    Recordings that begin at the same time are independent, such as simulated ones. So are
    recordings of a clock that begins at zero, unless the fixes of one go on where those of the
    other end.

    Examples
    --------
    >>> second, no_fixes = 10**9, (np.empty(0, dtype=np.int64), np.empty((0, 2)))
    >>> times = [(0, 60), (61, 120), (500, 560), (0, 60)]
    >>> today = 1_700_000_000
    >>> group_drives([
    ...     DriveSpan((today + a) * second, (today + b) * second, *no_fixes) for a, b in times
    ... ])
    [[0, 1], [3], [2]]
    """
    drives: list[list[int]] = []
    for i in np.argsort([span.begin_ns for span in spans], kind='stable').tolist():
        distances = [_separation([spans[k] for k in drive], spans[i]) for drive in drives]
        near = [(distance, k) for k, distance in enumerate(distances) if distance is not None]
        if near:
            drives[min(near)[1]].append(i)
        else:
            drives.append([i])
    return drives


def _separation(drive: Sequence[DriveSpan], span: DriveSpan) -> tuple[float, float] | None:
    """Return metres and seconds between a drive and a later recording of it, else None."""
    if span.block or any(earlier.block for earlier in drive):
        return None
    if any(_shares_fix(earlier, span) for earlier in drive):
        return 0.0, 0.0
    before = max(drive, key=lambda earlier: earlier.end_ns)
    pause = span.begin_ns - before.end_ns
    shortest = min(before.end_ns - before.begin_ns, span.end_ns - span.begin_ns)
    is_unix = before.begin_ns >= _UNIX_NS
    if (
        span.begin_ns == before.begin_ns
        or pause < -min(_SPLIT_NS, shortest // 2)
        or pause > (_LONGEST_PAUSE_NS if is_unix else _SPLIT_NS)
    ):
        return None
    seconds = abs(pause) * 1e-9
    if not len(before.places) or not len(span.places):
        # Without places, the stamps of a clock that begins at zero say nothing.
        return (0.0, seconds) if is_unix else None
    metres = _distance(before.places[-1], span.places[0])
    passed = abs(int(span.fix_ns[0]) - int(before.fix_ns[-1])) * 1e-9
    return (metres, seconds) if metres <= _PLACE_M + _FASTEST * passed else None


def _shares_fix(earlier: DriveSpan, span: DriveSpan) -> bool:
    """Return whether a recording that begins later has its first fix from an earlier one."""
    if not earlier.begin_ns < span.begin_ns <= earlier.end_ns or not len(span.fix_ns):
        return False
    k = int(np.searchsorted(earlier.fix_ns, span.fix_ns[0]))
    return bool(
        k < len(earlier.fix_ns)
        and earlier.fix_ns[k] == span.fix_ns[0]
        and (earlier.places[k] == span.places[0]).all()
    )


def _distance(place: FloatArray, other: FloatArray) -> float:
    """Return metres between two near places."""
    degrees = other - place
    degrees[1] = (degrees[1] + 180.0) % 360.0 - 180.0
    degrees[1] *= np.cos(np.radians(place[0]))
    return float(np.hypot(*degrees)) * _METRES_PER_DEGREE


def name_blocks(names: Sequence[str], spans: Sequence[DriveSpan | None]) -> list[str]:
    """Return the block of each recording; empty for an independent one, or one without a span.

    It is the block that the recording states, or its drive, named by the first recording.
    """
    known = [i for i, span in enumerate(spans) if span is not None]
    blocks = ['' if span is None else span.block for span in spans]
    for drive in group_drives([span for span in spans if span is not None]):
        if len(drive) > 1:
            first = known[drive[0]]
            # Recordings of `tune` may have the same name.
            number = f' ({first + 1})' if names.count(names[first]) > 1 else ''
            for k in drive:
                blocks[known[k]] = f'{_DRIVE}{names[first]}{number}'
    return blocks


def is_drive(block: str) -> bool:
    """Return whether a block is a drive that was recognised."""
    return block.startswith(_DRIVE)


def recording_blocks(
    recordings: Sequence[Recording | RecordingSource], choice: str = AUTO
) -> list[str]:
    """Return the block of each recording: the label of recordings that are not independent.

    Parameters
    ----------
    recordings : sequence of Recording or RecordingSource
        A source that cannot be read is independent.
    choice : str
        `auto`: blocks of recording.yaml, and drives as `group_drives` recognises them; `none`: all
        recordings are independent; or the path of a file, see `read_blocks`.

    Returns
    -------
    list of str
        In the order of the recordings; empty for an independent recording.
    """
    names = [
        recording.expected_name() if isinstance(recording, RecordingSource) else recording.name
        for recording in recordings
    ]
    if choice == NONE:
        return [''] * len(names)
    if choice != AUTO:
        blocks = read_blocks(choice, names)
        return [blocks.get(name, '') for name in names]
    return name_blocks(names, [_span_or_none(recording) for recording in recordings])


def drives_of(recordings: Sequence[Recording]) -> list[list[int]]:
    """Return the recordings of each block, in the order of time; others are alone."""
    spans = [DriveSpan.of_recording(recording) for recording in recordings]
    drives: dict[str | int, list[int]] = {}
    blocks = name_blocks([recording.name for recording in recordings], spans)
    for i in np.argsort([span.begin_ns for span in spans], kind='stable').tolist():
        drives.setdefault(blocks[i] or i, []).append(i)
    return list(drives.values())


def _span_or_none(recording: Recording | RecordingSource) -> DriveSpan | None:
    if isinstance(recording, Recording):
        return DriveSpan.of_recording(recording)
    try:
        return DriveSpan.of_recording(recording.read())
    except Sim2RealError:
        return None


def read_blocks(path: str | Path, names: Sequence[str]) -> dict[str, str]:
    """Read the blocks of recordings from a file.

    Parameters
    ----------
    path : path
        YAML mapping of recording to block, or CSV table with columns `recording` and `block`.
    names : sequence of str
        Names of the recordings. One that the file does not have is independent.

    Raises
    ------
    Sim2RealError
        When the file cannot be read, or names another recording.
    """
    path = Path(path)
    if not path.is_file():
        raise ParameterError(
            '--block', '', f'{path} is not allowed; must be auto, none, or a YAML or CSV file'
        )
    try:
        table = _csv_blocks(path) if path.suffix == '.csv' else load_yaml(path)
    except OSError as error:
        raise RecordingError(f'{path}: cannot be read: {error.strerror}') from None
    except csv.Error as error:
        raise RecordingError(f'{path}: cannot be read: {error}') from None
    if not isinstance(table, Mapping):
        raise RecordingError(f'{path}: must be a mapping of recording to block')
    blocks = {}
    for name, block in table.items():
        if str(name) not in names:
            problem = not_among('unknown recording', str(name), list(names))
            raise RecordingError(f'{path}: {name}: {problem}')
        # YAML reads the block of a day as a date.
        is_name = isinstance(block, (str, int, datetime.date)) and not isinstance(block, bool)
        if not is_name or block == '':
            raise RecordingError(f'{path}: {name}: {block!r} is not allowed; must be a name')
        blocks[str(name)] = str(block)
    return blocks


def _csv_blocks(path: Path) -> dict[str, str]:
    rows = csv.DictReader(io.StringIO(read_input_text(path), newline=''), skipinitialspace=True)
    missing = [key for key in ('recording', 'block') if key not in (rows.fieldnames or ())]
    if missing:
        raise RecordingError(
            f'{path}: column {missing[0]} is missing; must have recording and block'
        )
    blocks: dict[str, str] = {}
    for row in rows:
        if row['recording'] in blocks:
            raise RecordingError(
                f'{path}: line {rows.line_num}: {row["recording"]} was already given'
            )
        blocks[row['recording']] = row['block'] or ''
    return blocks
