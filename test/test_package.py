# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The tree is one package for pip and for ament, and its sources follow common rules."""

from __future__ import annotations

import ast
import configparser
import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from catkin_pkg.package import Package, parse_package

import sim2real_eval
import sim_sensors
from sim_sensors.core.installation import ROS_LIBRARIES
from sim_sensors.executables import run_node

# Names of imports in pip and rosdep; keys are from rosdep/python.yaml of ros/rosdistro.
# None means that rosdep has no key, or only a pip key, which bloom refuses, or that the package of
# another library brings it.
LIBRARIES: dict[str, tuple[str, str | None]] = {
    'argcomplete': ('argcomplete', 'python3-argcomplete'),
    'backports': ('backports.zstd', None),
    'lz4': ('lz4', None),
    'bokeh': ('bokeh', None),
    'jinja2': ('Jinja2', 'python3-jinja2'),
    'markupsafe': ('MarkupSafe', None),
    'filelock': ('filelock', 'python3-filelock'),
    'matplotlib': ('matplotlib', 'python3-matplotlib'),
    'numba': ('numba', 'python3-numba'),
    'numpy': ('numpy', 'python3-numpy'),
    'pygeomag': ('pygeomag', None),
    'pyproj': ('pyproj', 'python3-pyproj'),
    'rich': ('rich', 'python3-rich'),
    'rosbags': ('rosbags', None),
    'scipy': ('scipy', 'python3-scipy'),
    'yaml': ('PyYAML', 'python3-yaml'),
}
# Imported only on demand; each is in an extra, and none has a rosdep key.
OPTIONAL = {'distributed', 'imufusion', 'mujoco', 'pandas', 'pyulog'}
# ROS packages, which pip cannot install; core code may import them only inside functions.
ROS_ONLY = {
    'ament_index_python', 'builtin_interfaces', 'diagnostic_msgs', 'geometry_msgs', 'launch',
    'launch_ros', 'lifecycle_msgs', 'nav_msgs', 'rcl_interfaces', 'rclpy', 'rosbag2_py',
    'rosgraph_msgs', 'sensor_msgs', 'std_msgs', 'std_srvs',
}  # fmt: skip
CORE = ('sim_sensors', 'sim2real_eval')


@pytest.fixture(scope='module')
def manifest(repository: Path) -> Package:
    return parse_package(str(repository / 'package.xml'))


@pytest.fixture(scope='module')
def metadata(repository: Path) -> dict[str, Any]:
    """Arguments of setup() in setup.py."""
    code = (
        'import json, setuptools\n'
        'seen = {}\n'
        'setuptools.setup = lambda **words: seen.update(words)\n'
        'exec(compile(open("setup.py").read(), "setup.py", "exec"), {"__file__": "setup.py"})\n'
        'print(json.dumps(seen))\n'
    )
    output = subprocess.check_output([sys.executable, '-c', code], cwd=repository)
    words: dict[str, Any] = json.loads(output)
    return words


def sources(repository: Path, *folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((repository / folder).rglob('*.py'))]


def imports(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return names


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text('utf-8'))


def imported_by(repository: Path, *folders: str) -> set[str]:
    trees = [parsed(path) for path in sources(repository, *folders)]
    return {name.split('.')[0] for tree in trees for name in imports(tree)}


def test_package_xml_is_a_valid_format_3_ament_python_manifest(manifest: Package) -> None:
    warnings: list[str] = []
    manifest.validate(warnings=warnings)
    assert not warnings
    assert manifest.package_format == 3
    assert [export.content for export in manifest.exports] == ['ament_python']
    assert manifest.exports[0].tagname == 'build_type'


def test_pip_and_ament_agree_about_the_package(
    manifest: Package, metadata: dict[str, Any]
) -> None:
    assert metadata['name'] == manifest.name == 'sim2real_sensors'
    assert metadata['version'] == manifest.version
    assert metadata['license'] == manifest.licenses[0] == 'Apache-2.0'


def test_every_import_is_a_dependency_for_pip_and_for_rosdep(
    manifest: Package, metadata: dict[str, Any], repository: Path
) -> None:
    used = imported_by(repository, *CORE) - set(sys.stdlib_module_names) - set(CORE) - ROS_ONLY
    extras = {
        entry.split('>=')[0] for lines in metadata['extras_require'].values() for entry in lines
    }
    assert extras >= OPTIONAL
    used -= OPTIONAL | {'compression'}  # of the standard library from Python 3.14 on
    assert used <= set(LIBRARIES), 'add the new library to setup.py, package.xml and LIBRARIES'
    bounds = dict(entry.split('>=') for entry in metadata['install_requires'])
    keys = {depend.name for depend in manifest.exec_depends}
    assert set(bounds) == {pip for pip, _ in LIBRARIES.values()}
    assert {rosdep for _, rosdep in LIBRARIES.values() if rosdep} <= keys
    assert not [key for key in keys if key.endswith('-pip')]


def test_hints_install_libraries_and_not_an_extra_of_a_package_that_pypi_lacks(
    metadata: dict[str, Any], repository: Path
) -> None:
    """Anyone could publish a package of our name on PyPI."""
    files = [
        file
        for folder in (*CORE, 'docs', 'examples', 'launch', 'test', 'config')
        for file in (repository / folder).rglob('*')
        if file.suffix in ('.py', '.md', '.yaml', '.yml', '.txt', '.ipynb')
    ]
    files += [repository / name for name in ('README.md', 'CHANGELOG.rst', 'constraints.txt')]
    command = re.compile(r"pip install[^\n`]*\s'?sim2real[_-]sensors")
    assert [file for file in files if command.search(file.read_text('utf-8'))] == []
    assert list(ROS_LIBRARIES) == metadata['extras_require']['ros']


def test_the_addresses_of_the_project_are_the_same_for_pip_and_for_ament(
    manifest: Package, metadata: dict[str, Any]
) -> None:
    addresses = {url.type: url.url for url in manifest.urls}
    assert metadata['url'] == addresses['website']
    assert metadata['project_urls'] == {
        'Source': addresses['repository'],
        'Bug Tracker': addresses['bugtracker'],
    }


def test_libraries_without_a_rosdep_key_are_named_in_the_support_page(repository: Path) -> None:
    page = (repository / 'docs' / 'reference' / 'support.md').read_text('utf-8')
    rows = [line for line in page.splitlines() if 'so not in package.xml' in line]
    named = {name for row in rows for name in re.findall(r'[\w.]+', row.split('|')[1])}
    assert named == {pip for pip, rosdep in LIBRARIES.values() if rosdep is None}


def test_a_workspace_installs_the_package_once(repository: Path) -> None:
    """pip brings the libraries; the package itself is colcon's."""
    text = (repository / '.ci' / 'ros_dependencies').read_text('utf-8')
    commands = [line.split(' -m pip ')[1] for line in text.splitlines() if ' -m pip ' in line]
    assert '"$source_folder"' in commands[0]
    assert commands[-1] == 'uninstall --yes sim2real_sensors'


def test_the_constraints_of_a_release_pin_every_library(
    metadata: dict[str, Any], repository: Path
) -> None:
    lines = (repository / 'constraints.txt').read_text('utf-8').splitlines()
    pinned = dict(line.lower().split('==') for line in lines if not line.startswith('#'))
    for name, least in (entry.lower().split('>=') for entry in metadata['install_requires']):
        assert _numbers(pinned[name]) >= _numbers(least.split(';')[0]), name


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split('.')]


def test_sim_sensors_does_not_import_sim2real_eval(repository: Path) -> None:
    assert 'sim2real_eval' not in imported_by(repository, 'sim_sensors')


def test_the_core_imports_without_ros_and_extras(repository: Path) -> None:
    for path in sources(repository, *CORE):
        folders = path.relative_to(repository).parent.parts
        if any('ros' in folder.split('_') or folder == 'external' for folder in folders):
            continue  # the nodes, and the judge that feeds nodes
        top_level = ast.Module(
            [node for node in parsed(path).body if isinstance(node, ast.Import | ast.ImportFrom)],
            [],
        )
        names = {name.split('.')[0] for name in imports(top_level)}
        assert not names & (ROS_ONLY | OPTIONAL), path


def test_every_source_states_its_licence_and_has_600_lines_or_fewer(repository: Path) -> None:
    paths = [repository / 'setup.py']
    paths += sources(repository, *CORE, 'test', 'launch', 'benchmarks', 'examples')
    assert len(paths) > 10
    for path in paths:
        lines = path.read_text('utf-8').splitlines()
        assert lines[0] == '# Copyright 2026 The sim2real_sensors contributors', path
        assert lines[1] == '# SPDX-License-Identifier: Apache-2.0', path
        assert len(lines) <= 600, path


def test_every_data_file_is_installed_into_share(
    metadata: dict[str, Any], repository: Path
) -> None:
    placed = {
        f'{place}/{Path(name).name}': name
        for place, names in metadata['data_files']
        for name in names
    }
    share = 'share/sim2real_sensors'
    assert placed['share/ament_index/resource_index/packages/sim2real_sensors']
    assert placed[f'{share}/package.xml'] == 'package.xml'
    for folder in ('config', 'launch', 'gazebo_ws_plugins'):
        files = [path for path in (repository / folder).rglob('*') if path.is_file()]
        expected = [p.relative_to(repository).as_posix() for p in files if p.suffix != '.pyc']
        assert expected, folder
        for name in expected:
            assert placed[f'{share}/{name}'] == name


def test_every_package_folder_is_installed(metadata: dict[str, Any], repository: Path) -> None:
    folders = {path.parent for path in sources(repository, *CORE)}
    assert {str(f.relative_to(repository)).replace(os.sep, '.') for f in folders} == set(
        metadata['packages']
    )
    for package in CORE:
        assert (repository / package / 'py.typed').is_file()


def test_ament_executables_go_where_ros2_run_looks(repository: Path) -> None:
    parser = configparser.ConfigParser()
    parser.read(repository / 'setup.cfg', encoding='utf-8')
    assert parser['develop']['script_dir'] == '$base/lib/sim2real_sensors'
    assert parser['install']['install_scripts'] == '$base/lib/sim2real_sensors'


def test_every_executable_names_a_function_that_exists(
    metadata: dict[str, Any], repository: Path
) -> None:
    """Nodes print one error line if ROS is not installed."""
    scripts = metadata['entry_points']['console_scripts']
    assert 'sim2real = sim2real_eval.cli.main:main' in scripts
    assert len(scripts) > 6
    for script in scripts:
        name, module, function = re.fullmatch(r'(\w+) = ([\w.]+):(\w+)', script).groups()
        if name == 'sim2real':
            continue
        assert function == name
        code = (
            f'import sys; sys.modules["rclpy"] = None; import {module} as m; sys.exit(m.{name}())'
        )
        done = subprocess.run(
            [sys.executable, '-c', code], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert line.startswith(f'{name}: error: ')


@pytest.mark.parametrize(
    'fault', ['raise KeyboardInterrupt', 'def main(): raise KeyboardInterrupt']
)
def test_ctrl_c_ends_a_node_silently_even_while_it_loads(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f'stopped_{len(fault)}'
    (tmp_path / f'{name}.py').write_text(f'{fault}\n', encoding='utf-8')
    monkeypatch.syspath_prepend(tmp_path)
    assert run_node(name) == 0


@pytest.mark.skipif(
    not os.environ.get('SIM2REAL_TEST_INSTALLED'), reason='tests of the sources, not of an install'
)
def test_the_installed_package_is_the_one_under_test(repository: Path) -> None:
    prefixes = [Path(p).resolve() for p in os.environ['AMENT_PREFIX_PATH'].split(os.pathsep)]
    for package in (sim_sensors, sim2real_eval):
        folder = Path(str(package.__file__)).resolve()
        assert repository not in folder.parents
        assert any(prefix in folder.parents for prefix in prefixes)


def test_links_between_documents_have_targets(repository: Path) -> None:
    documents = [*repository.glob('*.md'), *repository.glob('docs/**/*.md')]
    documents += repository.glob('gazebo_ws_plugins/**/*.md')
    documents += repository.glob('examples/**/*.md')
    checked = 0
    for document in documents:
        for target in re.findall(r'\]\(([^)#\s]+)[^)]*\)', document.read_text('utf-8')):
            if '://' not in target:
                assert (document.parent / target).exists(), f'{document.name}: {target}'
                checked += 1
    assert checked > 3
