# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Classes are found by name, in installed packages and in files."""

from __future__ import annotations

import hashlib
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sim_sensors.core.errors import ParameterError, UnknownNameError
from sim_sensors.core.registry import Registry, file_of, raised_at, source_digest

GROUP = 'sim2real_test.things'


def _is_mapping(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, dict)


def registry() -> Registry[Any]:
    builtins = {'ordered': 'collections:OrderedDict', 'counter': 'collections:Counter'}
    return Registry(GROUP, 'a mapping', _is_mapping, builtins)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / 'strangers.py').write_text('class Theirs(dict):\n    pass\n')
    info = tmp_path / 'strangers-1.0.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text('Metadata-Version: 2.1\nName: strangers\nVersion: 1.0\n')
    (info / 'entry_points.txt').write_text(
        f'[{GROUP}]\ntheirs = strangers:Theirs\nbroken = strangers:Nothing\n'
        'counter = strangers:X\n'
        'number = math:pi\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop('strangers', None)


def test_built_in_classes_come_first_and_are_not_replaced(installed: None) -> None:
    things = registry()
    assert things.names() == ['ordered', 'counter', 'broken', 'number', 'theirs']
    assert things.get('counter').__module__ == 'collections'
    assert things.get('theirs').__module__ == 'strangers'


def test_a_broken_entry_point_is_reported_when_it_is_requested(installed: None) -> None:
    with pytest.raises(ParameterError, match="'broken' of strangers cannot be imported"):
        registry().get('broken')
    with pytest.raises(ParameterError, match="--thing: 'number' is not a mapping"):
        registry().get('number', where='--thing')


def test_an_unknown_name_is_refused_with_the_nearest_name(installed: None) -> None:
    with pytest.raises(UnknownNameError, match=r"a mapping: 'thiers' .*\(did you mean theirs\?\)"):
        registry().get('thiers')


def test_a_class_can_be_registered_and_removed() -> None:
    things = registry()
    things.register('plain', dict)
    assert things.get('plain') is dict
    things.remove('plain')
    assert things.names() == ['ordered', 'counter']


def test_the_path_of_a_class_file_is_relative_to_the_given_folder(tmp_path: Path) -> None:
    file = tmp_path / 'mine.py'
    file.write_text('class Mine(dict):\n    pass\n')
    loaded_class = registry().get('mine.py:Mine', folder=tmp_path)
    assert loaded_class is registry().get(f'{file}:Mine')
    assert file_of(loaded_class) == file
    assert source_digest(loaded_class) == hashlib.sha256(file.read_bytes()).hexdigest()
    assert file_of(dict) is None
    assert source_digest(dict) == ''


def test_a_class_file_imports_modules_of_its_folder_but_not_in_place_of_installed_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, 'path', [*sys.path])
    (tmp_path / 'gain_of_mine.py').write_text('GAIN = 2.0\n')
    (tmp_path / 'yaml.py').write_text('raise ValueError\n')
    (tmp_path / 'mine.py').write_text(
        'import yaml\nfrom gain_of_mine import GAIN\nclass Mine(dict):\n    gain = GAIN\n'
    )
    assert registry().get('mine.py:Mine', folder=tmp_path).gain == 2.0


def test_another_process_unpickles_an_instance_of_a_class_in_a_file(tmp_path: Path) -> None:
    (tmp_path / 'mine.py').write_text('class Mine(dict):\n    pass\n')
    instance = registry().get('mine.py:Mine', folder=tmp_path)(one=1)
    code = 'import pickle, sys, sim_sensors.core.registry\nprint(pickle.load(sys.stdin.buffer))'
    process = subprocess.run(
        [sys.executable, '-c', code], input=pickle.dumps(instance), capture_output=True, check=True
    )
    assert process.stdout.decode().strip() == "{'one': 1}"


@pytest.mark.parametrize(
    ('name', 'problem'),
    [
        ('mine.py:Main', 'Mine'), ('mine.py:path', 'not a mapping'), ('none.py:Mine', 'none.py'),
        ('mine.py', 'mine.py'), ('bad.py:Mine', 'SyntaxError'),
        ('raising.py:Mine', 'ValueError: no luck'),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / 'mine.py').write_text('from os import path\nclass Mine(dict):\n    pass\n')
    (tmp_path / 'bad.py').write_text('class :\n')
    (tmp_path / 'raising.py').write_text('raise ValueError("no luck\\nand more")\n')
    with pytest.raises(ParameterError) as caught:
        registry().get(name, folder=tmp_path)
    assert problem in str(caught.value)
    assert '\n' not in str(caught.value)


def test_an_error_is_located_in_the_file_of_the_class(tmp_path: Path) -> None:
    (tmp_path / 'calls.py').write_text(
        'import json\nclass Calls(dict):\n    def read(self):\n        json.loads("{")\n'
    )
    kind = registry().get('calls.py:Calls', folder=tmp_path)
    with pytest.raises(ValueError, match='Expecting') as caught:
        kind().read()
    assert raised_at(caught.value, kind) == 'calls.py:4'
    assert raised_at(caught.value, Path).startswith('decoder.py:')
