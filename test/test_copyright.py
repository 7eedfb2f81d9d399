# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""ament_copyright accepts the headers; it runs where ROS's linters are installed."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip('ament_copyright', reason='no linters of ROS')

from ament_copyright.main import main

from sim_sensors.core.licence import APACHE_2


def test_ament_copyright_finds_copyright_and_licence_of_every_source(repository: Path) -> None:
    folders = ('sim_sensors', 'sim2real_eval', 'launch', 'test', 'benchmarks', 'examples')
    paths = [str(repository / name) for name in (*folders, 'LICENSE', 'CONTRIBUTING.md')]
    assert main(argv=paths) == 0


def test_the_licence_has_the_fields_that_ament_copyright_reads() -> None:
    from ament_copyright.licenses import LicenseEntryPoint

    assert APACHE_2._fields == LicenseEntryPoint._fields
