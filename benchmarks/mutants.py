# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Mutation test: does a test fail if a line of statistics, corrections, sensors or judge is wrong?

Small changes (`<` to `<=`, `+` to `-`, exchanged arguments, ...) are drawn with a seed, each line
of code with the same probability. Each is made in a copy of the tree, where the tests of its
module must fail. Changes that cannot change a result are listed with the reason in
`mutants_equivalent.yaml`. Each copy compiles the numba kernels once. A changed kernel runs in the
interpreter at first, and is compiled only if no test there notices.

    python benchmarks/mutants.py --count 200 --seed 1
    python benchmarks/mutants.py --again    # only what no test has noticed yet, after new tests

mutmut 3 calls each function through another one, which numba cannot compile. cosmic-ray changes
the tree in place and has one test command for all modules.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import contextlib
import dataclasses
import functools
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
_REASONS = Path(__file__).with_name('mutants_equivalent.yaml')
_METRICS, _RECORDING = 'sim2real_eval/metrics/', 'sim2real_eval/recording/'
_JUDGE = 'sim2real_eval/judge/robot_localization/'
_GPS, _IMU = 'sim_sensors/gps/', 'sim_sensors/imu/'
_CHAIN = 'imu imu_errors imu_chain imu_catalogue imu_surroundings'
TESTS = {
    f'{_METRICS}consistency.py': 'metrics_consistency judged_world cli_consistency',
    f'{_METRICS}error_curves.py': 'metrics_consistency secondary_metrics metrics_vepd',
    f'{_METRICS}interval.py': 'uncertainty study_uncertainty',
    f'{_METRICS}mean_wasserstein.py': 'uncertainty study_memory',
    f'{_METRICS}judged_world.py': 'judged_world',
    f'{_METRICS}options.py': 'metrics_scores uncertainty',
    f'{_METRICS}permutation_test.py': 'permutation_test uncertainty study_uncertainty',
    f'{_METRICS}published.py': 'metrics_vepd secondary_metrics',
    f'{_METRICS}scores.py': 'metrics_scores metrics_vepd secondary_metrics',
    f'{_METRICS}series.py': 'series metrics_scores metrics_vepd',
    f'{_METRICS}trajectory_errors.py': 'trajectory_errors',
    f'{_METRICS}uncertainty.py': 'uncertainty study_uncertainty',
    'sim2real_eval/study/gate.py': 'cli_gate cli_transfer',
    'sim2real_eval/study/gate_verdict.py': 'cli_gate cli_transfer',
    'sim2real_eval/study/secondary_results.py': 'secondary_metrics pose_differences',
    'sim2real_eval/study/answer.py': 'study_answer secondary_metrics pose_differences',
    f'{_RECORDING}corrections.py': 'corrections preflight preflight_findings',
    f'{_RECORDING}repairs.py': 'recording_checks recording_fix_places preflight',
    f'{_RECORDING}truth.py': 'course twin_frames recording_checks truth_filter',
    f'{_JUDGE}advice.py': 'judge_advice judge_refusals judge_diverged',
    f'{_JUDGE}configuration.py': 'judge_configuration judge_options judge_ros_parameters',
    f'{_JUDGE}covariances.py': 'judge_core judge_input_parts judge_truths judge_corrections',
    f'{_JUDGE}ekf.py': 'judge_prediction judge_correction judge_core judge_filter',
    f'{_JUDGE}embedded.py': 'judge_node judge_truths judge_timing judge_spans',
    f'{_JUDGE}filter.py': 'judge_filter judge_core judge_correction judge_textbook_unscented',
    f'{_JUDGE}fixes.py': 'judge_navsat judge_utm judge_navsat_traces judge_truths',
    f'{_JUDGE}health.py': 'judge_health',
    f'{_JUDGE}input_parts.py': 'judge_input_parts judge_input_types judge_core',
    f'{_JUDGE}inputs.py': 'judge_input_parts judge_input_types judge_preparation judge_core',
    f'{_JUDGE}live.py': 'judge_live judge_health',
    f'{_JUDGE}navsat.py': 'judge_navsat judge_utm judge_truths',
    f'{_JUDGE}parameter_file.py': 'judge_ros_parameters judge_options judge_configuration',
    f'{_JUDGE}parts.py': 'judge_preparation judge_core judge_input_parts judge_truths',
    f'{_JUDGE}preparation.py': 'judge_preparation judge_core judge_truths',
    f'{_JUDGE}queue.py': 'judge_queue judge_timing judge_latency',
    f'{_JUDGE}rehearsal.py': 'judge_rehearsal',
    f'{_JUDGE}release.py': 'judge_releases',
    f'{_JUDGE}replay.py': 'judge_timing judge_latency judge_queue judge_node judge_truths',
    f'{_JUDGE}replay_options.py': 'judge_options judge_named judge_case judge_advice',
    f'{_JUDGE}state.py': 'judge_core judge_corrections judge_prediction',
    f'{_JUDGE}topics.py': 'judge_named judge_options judge_node recording_formats',
    f'{_GPS}events.py': 'gnss_states gps_interference gps',
    f'{_GPS}faults.py': 'faults',
    f'{_GPS}gps.py': 'gps gps_catalogue gps_drift gps_interference gnss_states faults',
    f'{_GPS}simulators.py': 'gps_catalogue gps gps_drift noise',
    f'{_IMU}chain.py': _CHAIN,
    f'{_IMU}faults.py': 'faults',
    f'{_IMU}gazebo.py': 'imu_gazebo imu_hector imu_catalogue upstream_presets',
    f'{_IMU}imu.py': _CHAIN,
    f'{_IMU}models.py': f'{_CHAIN} imu_gazebo turning_earth',
    f'{_IMU}orientation.py': 'imu imu_fusion imu_simulators imu_chain',
    f'{_IMU}simulators.py': 'imu_simulators imu_catalogue upstream_presets',
    'sim_sensors/magnetometer/magnetometer.py': 'magnetometer',
    'sim_sensors/noise/electronics.py': 'noise low_pass imu_chain',
    'sim_sensors/noise/processes.py': 'noise trends gps_drift imu_chain',
    'sim_sensors/noise/triad.py': 'imu_chain imu_errors magnetometer',
}
"""Test files of the modules under test, the closest first."""
_OF_ANY_JUDGE = (
    'judge_truths judge_timing judge_latency judge_navsat_traces judge_node judge_live '
    'judge_smoke judge_diverged judged_world'
)
WAITING, NOTICED, SURVIVED, EQUIVALENT = 'waiting', 'noticed', 'survived', 'equivalent'
_LONGEST_S = (
    60.0 if os.environ.get('NUMBA_DISABLE_JIT') == '0' else 5.0
)  # processor time of a test; slower ones skip
_TOGETHER_S = 3.0 * _LONGEST_S  # of the tests of one change; later ones skip
_UNKNOWN_S = 0.1
_HEARTBEAT_S = 30.0

_COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
}  # fmt: skip
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.FloorDiv: ast.Div, ast.Mod: ast.FloorDiv,
}  # fmt: skip
_PAIRS = (
    ('min', 'max'),
    ('sin', 'cos'),
    ('any', 'all'),
    ('floor', 'ceil'),
    ('minimum', 'maximum'),
)
_CALLED = dict(_PAIRS) | {second: first for first, second in _PAIRS}


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change of one expression or statement."""

    path: str
    line: int
    before: str
    after: str
    start: int
    end: int

    def __str__(self) -> str:
        return f'{self.path}:{self.line}: {self.before}  ->  {self.after}'


def replacements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the changes of a node."""
    match node:
        case ast.Compare(ops=[operator]):
            for other in _COMPARED[type(operator)]:
                yield ast.Compare(node.left, [other()], node.comparators)
        case ast.BinOp(right=ast.Constant(value=str()) | ast.JoinedStr()):
            pass  # a path
        case ast.BinOp() if type(node.op) in _COMPUTED:
            yield ast.BinOp(node.left, _COMPUTED[type(node.op)](), node.right)
        case ast.AugAssign() if type(node.op) in _COMPUTED:
            yield ast.AugAssign(node.target, _COMPUTED[type(node.op)](), node.value)
        case ast.UnaryOp(op=ast.USub() | ast.Not()):
            yield node.operand
        case ast.BoolOp():
            yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int()):
            yield ast.Constant(node.value + 1)
        case ast.Constant(value=float()):
            yield ast.Constant(2.0 * node.value or 1.0)
        case ast.IfExp():
            yield ast.IfExp(node.test, node.orelse, node.body)
        case ast.Tuple(ctx=ast.Load(), elts=[first, second, *rest]) if _differ(first, second):
            yield ast.Tuple([second, first, *rest], ast.Load())
        case ast.Call():
            match node.args:
                case [first, second, *rest] if _differ(first, second):
                    yield ast.Call(node.func, [second, first, *rest], node.keywords)
            match node.func:
                case ast.Name(id=name) if name in _CALLED:
                    yield ast.Call(ast.Name(_CALLED[name]), node.args, node.keywords)
                case ast.Attribute(attr=name) if name in _CALLED:
                    function = ast.Attribute(node.func.value, _CALLED[name])
                    yield ast.Call(function, node.args, node.keywords)
        case ast.Expr(value=ast.Call()):
            yield ast.Pass()


def _differ(first: ast.expr, second: ast.expr) -> bool:
    # Others are of different types, which mypy and every test would notice.
    is_alike = type(first) is type(second) and not isinstance(first, ast.Starred)
    return is_alike and ast.dump(first) != ast.dump(second)


def mutants(path: str) -> list[Mutant]:
    """Return all changes of the code within functions of a file."""
    text = (ROOT / path).read_text(encoding='utf-8')
    begins = [0]
    for line in text.encode().splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    found: list[Mutant] = []

    def visit(node: ast.AST, is_inside: bool) -> None:
        # Errors, texts and types are not results.
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
            return
        if is_inside and isinstance(node, ast.expr | ast.stmt):
            start = begins[node.lineno - 1] + node.col_offset
            end = begins[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            before = ' '.join(ast.unparse(node).split())
            for other in replacements(node):
                after = ast.unparse(ast.fix_missing_locations(other))
                found.append(Mutant(path, node.lineno, before, after, start, end))
        if isinstance(node, ast.AnnAssign):
            parts: list[ast.AST] = [node.value] if node.value else []
        elif isinstance(node, ast.FunctionDef):
            parts, is_inside = list(node.body), True
        elif isinstance(node, ast.ClassDef):
            parts = list(node.body)
        else:
            parts = list(ast.iter_child_nodes(node))
        for part in parts:
            visit(part, is_inside)

    visit(ast.parse(text), False)
    return found


def draw(count: int, seed: int) -> list[Mutant]:
    """Return changes in random order, at most one of a line."""
    by_line: dict[tuple[str, int], list[Mutant]] = defaultdict(list)
    for path in TESTS:
        for mutant in mutants(path):
            by_line[mutant.path, mutant.line].append(mutant)
    rng = random.Random(seed)
    return [rng.choice(by_line[line]) for line in rng.sample(sorted(by_line), count)]


def find(path: str, line: int, before: str, after: str) -> Mutant | None:
    """Return the change of an earlier run that is nearest to its line; None if there is none."""
    same = [m for m in mutants(path) if (m.before, m.after) == (before, after)]
    return min(same, key=lambda mutant: abs(mutant.line - line), default=None)


# A plug-in of pytest, loaded with `-p mutants`.


@functools.cache
def _known_times() -> dict[str, float]:
    """Return the processor time of tests in earlier runs, s."""
    file = Path(os.environ['MUTANTS_TIMES'])
    lines = file.read_text(encoding='utf-8').splitlines() if file.exists() else []
    known: dict[str, float] = {}
    for name, duration in map(json.loads, lines):
        known[name] = min(duration, known.get(name, math.inf))
    return known


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of each file that earlier runs found to be fast first."""
    times = _known_times()
    order = {path: number for number, path in enumerate(dict.fromkeys(i.path for i in items))}
    items.sort(key=lambda item: (order[item.path], times.get(item.nodeid, _UNKNOWN_S)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """End a test that takes too much processor time, and note the time of each."""

    def end(*_: object) -> None:
        pytest.skip('takes too much processor time')

    began = time.process_time()
    if began > _TOGETHER_S or _known_times().get(item.nodeid, 0.0) > _LONGEST_S:
        end()
    signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, _LONGEST_S)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        with Path(os.environ['MUTANTS_TIMES']).open('a', encoding='utf-8') as file:
            file.write(json.dumps([item.nodeid, time.process_time() - began]) + '\n')


class Tree:
    """Copy of the files that git knows or does not ignore, in which tests run."""

    def __init__(self, folder: Path, times: Path) -> None:
        self.folder, self.times = folder, times
        listed = subprocess.run(
            ['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'],
            cwd=ROOT, check=True, capture_output=True, text=True,
        )  # fmt: skip
        for name in listed.stdout.split('\0'):
            if name and (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)

    def pytest(self, words: list[str], *, compiled: bool) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ, 'MPLBACKEND': 'Agg', 'OMP_NUM_THREADS': '1',
            'NUMBA_DISABLE_JIT': '0' if compiled else '1',
            'MUTANTS_TIMES': str(self.times / ('compiled' if compiled else 'interpreted')),
            'PYTHONPATH': f'{self.folder}{os.pathsep}{self.folder / "benchmarks"}',
        }  # fmt: skip
        # Each copy has machine code of its own.
        environment.pop('NUMBA_CACHE_DIR', None)
        command = [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-p', 'mutants']
        return subprocess.run(
            [*command, '--no-header', '--tb=no', *words], cwd=self.folder, env=environment,
            capture_output=True, text=True, check=False, start_new_session=True,
        )  # fmt: skip

    def failing_test(self, files: list[str], failing: list[str], *, compiled: bool) -> str | None:
        """Return the first test that fails, or the file that cannot be read; None if all pass."""
        words = ['-x', '-rfE', *files, *(f'--deselect={test}' for test in failing)]
        done = self.pytest(words, compiled=compiled)
        for line in done.stdout.splitlines():
            if line.startswith(('FAILED ', 'ERROR ')):
                return line.split(' ', 1)[1].split(' - ')[0].strip()
        if done.returncode:
            raise SystemExit(
                f'mutants: pytest {files} ended with {done.returncode}: {done.stdout}'
            )
        return None

    @contextlib.contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """Make a change within the block."""
        file = self.folder / mutant.path
        original = file.read_bytes()
        is_statement = not original[
            original.rfind(b'\n', 0, mutant.start) + 1 : mutant.start
        ].strip()
        after = mutant.after if is_statement else f'({mutant.after})'
        file.write_bytes(original[: mutant.start] + after.encode() + original[mutant.end :])
        # Byte code is renewed only if size or time differ, and the time counts in seconds.
        modified = file.stat().st_mtime
        os.utime(file, (modified, modified + 10.0 * (1 + mutant.start)))
        try:
            yield
        finally:
            file.write_bytes(original)

    def notices(self, mutant: Mutant, known: dict[tuple[str, bool], bool]) -> bool:
        """Return whether a test fails with the change that passes without it.

        `known` says of a test, compiled or in the interpreter, whether it passes; it grows.
        """
        names = TESTS[mutant.path].split()
        names += _OF_ANY_JUDGE.split() if mutant.path.startswith(_JUDGE) else []
        files = [f'test/test_{name}.py' for name in dict.fromkeys(names)]
        is_kernel = 'compilation import' in (ROOT / mutant.path).read_text(encoding='utf-8')
        for compiled in (False, True) if is_kernel else (True,):
            while True:
                failing = [
                    test
                    for (test, mode), passes in known.items()
                    if not passes and mode == compiled
                ]
                with self.changed(mutant):
                    test = self.failing_test(files, failing, compiled=compiled)
                if test is None:
                    break
                if (test, compiled) not in known:
                    known[test, compiled] = not self.failing_test([test], [], compiled=compiled)
                if known[test, compiled]:
                    return True
        return False


def reasons() -> dict[tuple[str, str, str], str]:
    listed = yaml.safe_load(_REASONS.read_text(encoding='utf-8')) or []
    return {(entry['path'], entry['before'], entry['after']): entry['reason'] for entry in listed}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or '').splitlines()[0])
    parser.add_argument('--count', type=int, default=200)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--most', type=float, default=0.1, help='largest share of survivors')
    parser.add_argument('--out', type=Path, default=Path('mutants_found'), metavar='DIR')
    parser.add_argument(
        '--again', action='store_true', help='continue the last run in --out, and repeat survivors'
    )
    options = parser.parse_args()
    options.out.mkdir(exist_ok=True)
    result_file = options.out / 'result.json'
    if options.again:
        earlier = json.loads(result_file.read_text(encoding='utf-8'))
        found = {find(*entry): state for *entry, state in earlier}
        states = {mutant: state for mutant, state in found.items() if mutant is not None}
    else:
        states = dict.fromkeys(draw(options.count, options.seed), WAITING)
    equivalent = reasons()
    states |= {m: EQUIVALENT for m in states if (m.path, m.before, m.after) in equivalent}
    known: dict[tuple[str, bool], bool] = {}
    with tempfile.TemporaryDirectory(prefix='sim2real_mutants_') as scratch:
        free = [Tree(Path(scratch) / str(k), options.out.resolve()) for k in range(options.jobs)]

        def judge(mutant: Mutant) -> str:
            tree = free.pop()
            try:
                return NOTICED if tree.notices(mutant, known) else SURVIVED
            finally:
                free.append(tree)

        began = reported = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            open_ones = [mutant for mutant in states if states[mutant] in (WAITING, SURVIVED)]
            waiting = {pool.submit(judge, mutant): mutant for mutant in open_ones}
            try:
                for number, done in enumerate(concurrent.futures.as_completed(waiting), 1):
                    mutant = waiting[done]
                    states[mutant] = done.result()
                    table = [[m.path, m.line, m.before, m.after, states[m]] for m in states]
                    result_file.write_text(json.dumps(table, indent=1), encoding='utf-8')
                    if states[mutant] == SURVIVED:
                        print(f'survived: {mutant}', flush=True)
                    if time.monotonic() - reported > _HEARTBEAT_S:
                        reported = time.monotonic()
                        text = f'{number} of {len(open_ones)} changes: {_counts(states)}'
                        print(f'mutants: {text} ({reported - began:.0f} s)', flush=True)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    print(f'mutants: {len(states)} changes: {_counts(states)}')
    survivors = [mutant for mutant in states if states[mutant] == SURVIVED]
    for mutant in survivors:
        print(f'  {mutant}')
    return int(len(survivors) > options.most * len(states))


def _counts(states: dict[Mutant, str]) -> str:
    return ', '.join(f'{count} {state}' for state, count in Counter(states.values()).items())


if __name__ == '__main__':
    sys.exit(main())
