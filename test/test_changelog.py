# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""bloom and catkin_prepare_release read the changelog."""

from __future__ import annotations

import io
from pathlib import Path

import docutils.core
from catkin_pkg.changelog import get_changelog_from_path
from catkin_pkg.package import parse_package


def test_catkin_pkg_reads_the_changelog_and_its_newest_version_is_that_of_the_package(
    repository: Path,
) -> None:
    manifest = parse_package(str(repository / 'package.xml'))
    changelog = get_changelog_from_path(str(repository), manifest.name)
    # The section Forthcoming, which is no version yet, is left out.
    released = list(changelog.foreach_version())
    assert released[-1][0] == manifest.version
    for version, date, content in released:
        assert date is not None, version
        assert content, version


def test_the_changelog_is_valid_restructured_text(repository: Path) -> None:
    problems = io.StringIO()
    docutils.core.publish_doctree(
        (repository / 'CHANGELOG.rst').read_text('utf-8'),
        settings_overrides={'warning_stream': problems},
    )
    assert problems.getvalue() == ''
