# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Licence header of this package's sources, for ament_copyright.

That linter knows the long header of the Apache License only (ament/ament_lint#246, #462). It takes
others from the entry point `ament_copyright.license` of an installed package.
"""

from __future__ import annotations

from typing import NamedTuple


class Licence(NamedTuple):
    """A licence with the fields that ament_copyright reads."""

    name: str
    spdx: str
    file_headers: tuple[str, ...]
    license_files: tuple[str, ...] = ()
    contributing_files: tuple[str, ...] = ()


APACHE_2 = Licence(
    'Apache License, Version 2.0 (SPDX)',
    'Apache-2.0',
    ('{copyright}\nSPDX-License-Identifier: Apache-2.0',),
)
"""Two lines: copyright and SPDX identifier, which REUSE accepts, too."""
