# SPDX-License-Identifier: Apache-2.0
"""Whether the topics of a recording cover the same time."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from sim2real_eval.recording.errors import RecordingError
from sim2real_eval.recording.recording import OPTIONAL_ROLES, Note
from sim_sensors.measurements import MessageArray

__all__ = ['check_overlap']

# Less than this share of the longest role in common is worth a remark.
_FULL = 0.95


def check_overlap(
    where: str, messages: Mapping[str, MessageArray], roles: Mapping[str, str]
) -> list[Note]:
    """Compare the time spans of the topics that have a role which a judge needs.

    Raises
    ------
    RecordingError
        When two of them have no time in common: names both and their spans.
    """
    spans = {
        topic: (int(messages[topic].stamp_ns[0]), int(messages[topic].stamp_ns[-1]))
        for topic in dict.fromkeys(
            topic for role, topic in roles.items() if role not in OPTIONAL_ROLES
        )
    }
    for (first, a), (second, b) in combinations(spans.items(), 2):
        if a[1] < b[0] or b[1] < a[0]:
            raise RecordingError(
                f'{where}: {first} ({_shown(a)}) and {second} ({_shown(b)}) do not overlap in '
                'time; check their clocks'
            )
    if len(spans) < 2:
        return []
    common = min(end for _, end in spans.values()) - max(start for start, _ in spans.values())
    longest = max(end - start for start, end in spans.values())
    if common >= _FULL * longest:
        return []
    problem = (
        f'topics have {max(0, common) * 1e-9:.2f} s in common, the longest has '
        f'{longest * 1e-9:.2f} s'
    )
    return [Note(', '.join(spans), problem, 1, 'only the common time can be judged')]


def _shown(span: tuple[int, int]) -> str:
    return f'{span[0] * 1e-9:.3f} .. {span[1] * 1e-9:.3f} s'
