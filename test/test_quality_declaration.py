# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""QUALITY_DECLARATION.md (REP-2004) claims what the repository shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from catkin_pkg.package import parse_package


@pytest.fixture(scope='module')
def declaration(repository: Path) -> str:
    return (repository / 'QUALITY_DECLARATION.md').read_text('utf-8')


@pytest.fixture(scope='module')
def rows(declaration: str) -> dict[str, str]:
    """Rows by their first cell."""
    lines = [line for line in declaration.splitlines() if line.startswith('| ')]
    return {line.split('|')[1].strip(): line for line in lines}


def test_version_and_licence_are_those_of_the_manifest(
    repository: Path, declaration: str, rows: dict[str, str]
) -> None:
    manifest = parse_package(str(repository / 'package.xml'))
    assert set(re.findall(r'\b\d+\.\d+\.\d+\b', declaration)) == {manifest.version}
    assert int(manifest.version.partition('.')[0]) >= 1
    assert manifest.licenses[0] in rows['3.iii licence']
    assert 'Apache License' in (repository / 'LICENSE').read_text('utf-8')


def test_named_files_exist(repository: Path, declaration: str) -> None:
    names = re.findall(r'`((?:test|docs|benchmarks)/[\w./]*)`', declaration)
    assert len(names) >= 4
    assert [name for name in names if not (repository / name).exists()] == []


def test_the_changelog_states_the_version_policy(repository: Path) -> None:
    (changelog,) = repository.glob('CHANGELOG.*')
    head = changelog.read_text('utf-8')[:800]
    assert 'Semantic Versioning' in head
    assert 'stable within a major version' in head


def test_every_how_to_is_in_the_index(repository: Path) -> None:
    pages = {path.name for path in (repository / 'docs' / 'howto').glob('*.md')} - {'index.md'}
    index = (repository / 'docs' / 'howto' / 'index.md').read_text('utf-8')
    assert [name for name in sorted(pages) if name not in index] == []


def test_coverage_and_continuous_integration_are_as_stated(
    repository: Path, rows: dict[str, str]
) -> None:
    """A row must change with the policy that it states."""
    tools = ''.join(
        (repository / name).read_text('utf-8') for name in ('Makefile', 'pyproject.toml')
    )
    assert ('**not tracked**' in rows['4.iii coverage']) == ('--cov' not in tools)
    workflows = [path.name for path in (repository / '.github' / 'workflows').glob('*.yml')]
    assert 'ci.yml' in workflows
    support = (repository / 'docs' / 'reference' / 'support.md').read_text('utf-8')
    assert 'has not run yet' in ' '.join(support.split())
    assert '**not run**' in rows['2.iv continuous integration']


def test_the_linters_are_run_and_mypy_is_strict(repository: Path) -> None:
    lint = (
        (repository / 'Makefile').read_text('utf-8').partition('\nlint:')[2].partition('\n\n')[0]
    )
    for tool in ('ruff check', 'mypy', 'lint-imports'):
        assert tool in lint
    assert '\nstrict = true\n' in (repository / 'pyproject.toml').read_text('utf-8')


def test_security_promises_the_stated_answer(repository: Path, rows: dict[str, str]) -> None:
    assert '14 days' in (repository / 'SECURITY.md').read_text('utf-8')
    assert '14 days' in rows['7 security']


def test_benchmarks_have_results(repository: Path) -> None:
    assert len(list((repository / 'benchmarks' / 'results').glob('*.json'))) > 10


def test_the_readme_links_the_declaration(repository: Path) -> None:
    assert '(QUALITY_DECLARATION.md)' in (repository / 'README.md').read_text('utf-8')
