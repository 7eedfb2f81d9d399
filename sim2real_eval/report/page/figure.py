# SPDX-License-Identifier: Apache-2.0
"""Plots of a page: small multiples, each panel with its model's name and colour."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from markupsafe import Markup

__all__ = ['Captioned', 'Multiples']


@dataclasses.dataclass(frozen=True)
class Captioned:
    """A panel with the name of what is in it.

    Attributes
    ----------
    name : str
        Model, or `real`.
    colour : str
        Class of the model's colour.
    svg : Markup
    remark : str
        A few words after the name.
    """

    name: str
    colour: str
    svg: Markup
    remark: str = ''


@dataclasses.dataclass(frozen=True)
class Multiples:
    """Panels with a common heading, such as those of a scenario.

    Attributes
    ----------
    heading : str
        Empty for none.
    panels : sequence of Captioned
    """

    heading: str
    panels: Sequence[Captioned]

    @property
    def across(self) -> int:
        """How many panels stand side by side on a wide screen, so that rows are even."""
        count = len(self.panels)
        return count if count <= 4 else 4 if count in (7, 8) or count > 9 else 3
