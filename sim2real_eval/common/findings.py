# SPDX-License-Identifier: Apache-2.0
"""What the user is told about a run, and how much it weighs: what decides comes first."""

from __future__ import annotations

import enum
from collections.abc import Iterable

__all__ = ['Told', 'Weight', 'assumed', 'by_weight', 'decisive', 'weight_of']


class Weight(enum.IntEnum):
    """How much a note weighs; the smaller the earlier it is told."""

    DECISIVE = 0
    """The result, or some part of it, means nothing unless the user acts."""
    ASSUMED = 1
    """Something was taken to be so that the recording does not say."""
    ROUTINE = 2
    """Anything else, and what is no `Told`."""


class Told(str):
    """A note with its weight; a text in all else.

    Parameters
    ----------
    text : str
    weight : Weight
    """

    weight: Weight

    def __new__(cls, text: str, weight: Weight = Weight.ROUTINE) -> Told:
        """Make the note; see the class."""
        note = super().__new__(cls, text)
        note.weight = weight
        return note


def decisive(text: str) -> str:
    """Return a note without which the result would be misread."""
    return Told(text, Weight.DECISIVE)


def assumed(text: str) -> str:
    """Return a note on something that was taken to be so."""
    return Told(text, Weight.ASSUMED)


def weight_of(note: str) -> Weight:
    """Return the weight of a note; ROUTINE of a mere text."""
    return note.weight if isinstance(note, Told) else Weight.ROUTINE


def by_weight(notes: Iterable[str]) -> list[str]:
    """Return notes, the weightiest first, those of equal weight in the order given."""
    return sorted(notes, key=weight_of)
