# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Each folder has few public names, and the examples in docstrings run."""

from __future__ import annotations

import ast
import doctest
import importlib
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import sim2real_eval
import sim_sensors

ROOTS = (sim_sensors, sim2real_eval)
REPOSITORY = Path(__file__).resolve().parent.parent
FILES = [path for root in ROOTS for path in sorted(Path(root.__path__[0]).rglob('*.py'))]
FACES = [path.parent for path in FILES if path.name == '__init__.py']
WITH_EXAMPLES = [path for path in FILES if '>>> ' in path.read_text('utf-8')]


def dotted(path: Path) -> str:
    return '.'.join(path.relative_to(REPOSITORY).with_suffix('').parts)


@pytest.mark.parametrize('path', FACES, ids=dotted)
def test_each_package_has_a_docstring_and_a_few_public_names(path: Path) -> None:
    face = importlib.import_module(dotted(path))
    assert face.__doc__
    assert face.__all__ == sorted(set(face.__all__), key=face.__all__.index)
    assert len(face.__all__) <= 13
    assert set(dir(face)) >= set(face.__all__)
    # Importing a module of that name would replace the public name.
    inside = {child.stem for child in path.iterdir() if child.suffix == '.py' or child.is_dir()}
    assert not inside & set(face.__all__)
    for name in face.__all__:
        assert getattr(face, name) is getattr(face, name)
    with pytest.raises(AttributeError, match='no attribute'):
        _ = face.nothing_of_this_name


@pytest.mark.parametrize('path', FACES, ids=dotted)
def test_help_shows_each_public_name(path: Path) -> None:
    """As `help(sim2real_eval.vepd)` and `help('sim2real_eval.vepd')` do, which load it lazily."""
    package = dotted(path)
    face = importlib.import_module(package)
    assert face.__doc__.splitlines()[0] in pydoc.plain(pydoc.render_doc(face))
    for name in face.__all__:
        # An unknown name is an ImportError; constants and aliases have the help of their type.
        assert f' in {package}' in pydoc.render_doc(f'{package}.{name}').partition('\n')[0]
        assert pydoc.render_doc(getattr(face, name))


@pytest.mark.parametrize('path', FACES, ids=dotted)
def test_type_checkers_see_the_public_names(path: Path) -> None:
    """Names imported under TYPE_CHECKING equal the lazily loaded ones."""
    face = importlib.import_module(dotted(path))
    declared = {
        alias.asname or alias.name: ('.' * node.level + (node.module or ''), alias.name)
        for block in ast.parse((path / '__init__.py').read_text('utf-8')).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == 'TYPE_CHECKING'
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(declared) == set(face.__all__)
    for name, (module, original) in declared.items():
        assert getattr(face, name) is getattr(
            importlib.import_module(module, dotted(path)), original
        )


@pytest.mark.parametrize('path', WITH_EXAMPLES, ids=dotted)
def test_the_docstring_examples_run(path: Path) -> None:
    if 'mujoco' in path.name:
        pytest.importorskip('mujoco')
    module = importlib.import_module(dotted(path))
    done = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert done.attempted
    assert not done.failed


@pytest.mark.parametrize('root', ROOTS, ids=lambda root: root.__name__)
def test_importing_a_package_loads_nothing_heavy(root: object) -> None:
    code = f'import sys, {root.__name__}; print(*sorted(sys.modules))'
    loaded = subprocess.check_output([sys.executable, '-c', code], text=True).split()
    assert not {'numba', 'numpy', 'scipy', 'matplotlib', 'yaml', 'rosbags'} & set(loaded)
    assert sum(name.startswith(('sim_sensors', 'sim2real_eval')) for name in loaded) < 6
