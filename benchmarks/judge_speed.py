# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Steps per second of the judge's filter against filterpy and numpy; time of a judged run.

A step is a prediction over 10 ms and a correction by 6 directly measured states (the rates and
accelerations of an IMU). All filters get the same measurements and must end in the same state.
"""

from __future__ import annotations

import dataclasses
import sys
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import parse, seconds, spread, table, write
from textbook_filters import FilterpyFilter, NumpyFilter

from sim2real_eval.judge.robot_localization import embedded
from sim2real_eval.judge.robot_localization.configuration import (
    DEFAULT_PROCESS_NOISE,
    FilterConfig,
    NavsatConfig,
)
from sim2real_eval.judge.robot_localization.ekf import predict
from sim2real_eval.judge.robot_localization.embedded import judge
from sim2real_eval.judge.robot_localization.filter import build_dynamics, correct, process
from sim2real_eval.judge.robot_localization.state import INITIALISED, Dynamics, Filter, new_filter
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.shipped import config_path
from sim_sensors.gps import gps
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu import imu
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.scenarios import FigureEight

N = 15
STATES = np.array([9, 10, 11, 12, 13, 14])
M = len(STATES)
DT_NS = 10_000_000
R = np.diag([1e-3] * 3 + [1e-1] * 3)


@numba.njit(error_model='numpy')
def run_compiled(
    flt: Filter, dyn: Dynamics, index: np.ndarray, z: np.ndarray, R: np.ndarray, dt_ns: int
) -> None:
    """The loop that the judge's event loop has around `process`."""
    block = R.copy()
    for k in range(len(z)):
        for i in range(len(index)):
            for j in range(len(index)):
                block[i, j] = R[i, j]
        process(flt, dyn, (k + 1) * dt_ns, index, len(index), z[k], block, np.inf)


@numba.njit(error_model='numpy')
def run_predictions(flt: Filter, dyn: Dynamics, n: int) -> None:
    for k in range(n):
        predict(flt, dyn.settings, k, 1e-4)


@numba.njit(error_model='numpy')
def run_steps(
    flt: Filter, dyn: Dynamics, index: np.ndarray, z: np.ndarray, R: np.ndarray, n: int,
    threshold: float,
) -> None:  # fmt: skip
    for k in range(n):
        predict(flt, dyn.settings, k, 1e-4)
        correct(flt, index, len(index), z, R, threshold)


def start() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = np.zeros(N)
    x[6] = 1.0
    return x, 0.1 * np.eye(N), np.diag(DEFAULT_PROCESS_NOISE)


def measurements(n: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    time = 0.01 * np.arange(n)[:, None]
    wave = np.sin(time * np.array([0.9, 0.8, 0.3, 0.5, 0.6, 0.7]))
    return wave * np.array([0.02, 0.02, 0.3, 0.5, 0.5, 0.2]) + 0.03 * rng.normal(size=(n, M))


def compiled_filter() -> tuple[Filter, Dynamics]:
    x, P, Q = start()
    flt = new_filter(x, P)
    flt.times[INITIALISED] = 1
    return flt, build_dynamics(Q)


def compiled(z: np.ndarray) -> np.ndarray:
    flt, dyn = compiled_filter()
    run_compiled(flt, dyn, STATES, z, R, DT_NS)
    return flt.x[:N]


def called_from_python(z: np.ndarray) -> np.ndarray:
    flt, dyn = compiled_filter()
    for k in range(len(z)):
        process(flt, dyn, (k + 1) * DT_NS, STATES, M, z[k], R.copy(), np.inf)
    return flt.x[:N]


def stepped(made: Callable[..., Any], *more: int) -> Callable[[np.ndarray], np.ndarray]:
    def run(z: np.ndarray) -> np.ndarray:
        flt = made(*start(), *more)
        H = np.eye(N)[STATES]
        for row in z:
            flt.step(0.01, H, row, R)
        return np.asarray(flt.x)

    return run


WAYS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], int]] = {
    'judge, in its loop': (compiled, 40_000),
    'judge, called from Python': (called_from_python, 4_000),
    'numpy': (stepped(NumpyFilter), 1_000),
    'filterpy': (stepped(FilterpyFilter, M), 1_000),
}


def compare(repetitions: int) -> dict[str, Any]:
    """Steps per second of each way and, per repetition, how much faster the judge's loop is."""
    z = measurements(max(n for _, n in WAYS.values()))
    ends = {name: run(z[:1000]) for name, (run, _) in WAYS.items()}
    for name, x in ends.items():
        difference = float(np.abs(x - ends['numpy']).max())
        if not difference < 1e-9:
            raise SystemExit(f'{name} ends {difference:g} away from numpy')
    rates: dict[str, list[float]] = defaultdict(list)
    for _ in range(repetitions):
        # Side by side, so that whatever else the machine does falls on all alike.
        for name, (run, n) in WAYS.items():
            part = z[:n]
            rates[name].append(n / seconds(lambda run=run, part=part: run(part)))
    judged = rates['judge, in its loop']
    return {
        name: {
            'steps_per_second': spread(values),
            'judge_is_faster_by': spread([a / b for a, b in zip(judged, values, strict=True)]),
        }
        for name, values in rates.items()
    }


def pieces(repetitions: int) -> dict[str, Any]:
    """Nanoseconds of a prediction and of corrections by m states, fused and refused."""
    n = 10_000
    flt, dyn = compiled_filter()
    work: dict[str, Callable[[], None]] = {'predict': lambda: run_predictions(flt, dyn, n)}
    for m in (1, 3, 6, 8):
        index, noise = np.arange(14 - m, 14), 1e-3 * np.eye(m)
        for name, threshold in (('correct', np.inf), ('refuse', 0.0)):
            one, _ = compiled_filter()
            work[f'{name} {m}'] = lambda f=one, i=index, r=noise, t=threshold: run_steps(
                f, dyn, i, np.full(len(i), 0.1), r, n, t
            )
    times: dict[str, list[float]] = defaultdict(list)
    for function in work.values():
        function()
    for _ in range(repetitions):
        for name, function in work.items():
            times[name].append(1e9 * seconds(function) / n)
    # Corrections come with a prediction, whose time is taken off: without, P would shrink to zero.
    alone = times['predict']
    return {
        name: spread(
            values if values is alone else [a - b for a, b in zip(values, alone, strict=True)]
        )
        for name, values in times.items()
    }


def in_threads(repetitions: int) -> dict[str, Any]:
    """How much faster two threads judge 20 recordings of 30 s than one."""
    runs = [recording(30.0)] * 20
    config = FilterConfig.from_file(config_path('judge', 'clean.yaml'))
    navsat = NavsatConfig.from_file(config_path('judge', 'clean_navsat.yaml'))
    gains = []
    for _ in range(repetitions):
        one, two = (seconds(lambda k=k: judge_in_threads(runs, config, navsat, k)) for k in (1, 2))
        gains.append(one / two)
    return spread(gains)


def judge_in_threads(
    runs: list[Recording], config: FilterConfig, navsat: NavsatConfig, threads: int
) -> None:
    """Judge recordings in threads; the compiled loop runs without the GIL."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda run: judge(run, config, navsat), runs))


def recording(seconds_long: float) -> Recording:
    motion = FigureEight(duration=seconds_long)
    return Recording(
        'benchmark',
        'figure_eight',
        'memory',
        {
            '/imu/data': imu.simulate(load_imu('chrono_ahrs'), motion, seed=1, run='benchmark'),
            '/gps/fix': gps.simulate(load_gps('ch_rw'), motion, seed=1, run='benchmark'),
        },
        {'imu': '/imu/data', 'gps': '/gps/fix'},
    )


def whole_run(profile: str, repetitions: int, *, flat: bool = True) -> dict[str, Any]:
    """Time of judge() on 30 s of IMU at 100 Hz and GPS at 10 Hz, and where it goes.

    The profiles are flat (`two_d_mode`): every part of a message measures seven states more.
    """
    run = recording(30.0)
    config = FilterConfig.from_file(config_path('judge', f'{profile}.yaml'))
    config = dataclasses.replace(config, two_d_mode=flat)
    navsat = NavsatConfig.from_file(config_path('judge', f'{profile}_navsat.yaml'))
    result = judge(run, config, navsat)
    fused = sum(part.fused + part.rejected for part in result.parts)
    times: dict[str, list[float]] = defaultdict(list)
    originals = {name: getattr(embedded, name) for name in ('build_inputs', 'replay')}

    def timed(name: str) -> Callable[..., Any]:
        def wrapper(*args: Any) -> Any:
            found: list[Any] = []
            times[name].append(seconds(lambda: found.append(originals[name](*args))))
            return found[0]

        return wrapper

    for name in originals:
        setattr(embedded, name, timed(name))
    try:
        for _ in range(repetitions):
            times['total'].append(seconds(lambda: judge(run, config, navsat)))
    finally:
        for name, original in originals.items():
            setattr(embedded, name, original)
    total, inputs, loop = (np.array(times[n]) for n in ('total', 'build_inputs', 'replay'))
    return {
        'milliseconds': spread((1e3 * total).tolist()),
        'inputs_ms': spread((1e3 * inputs).tolist()),
        'loop_ms': spread((1e3 * loop).tolist()),
        'rest_ms': spread((1e3 * (total - inputs - loop)).tolist()),
        'measurements': fused,
        'measurements_per_second_in_the_loop': fused / float(np.median(loop)),
        'times_faster_than_real_time': 30.0 / float(np.median(total)),
    }


def main() -> None:
    options = parse(__doc__ or '', repetitions=15)
    result = compare(options.repetitions)
    table(
        ('predict + correct 6 of 15', 'steps/s', 'judge is faster by', 'quartiles'),
        [
            (
                name,
                f'{found["steps_per_second"]["median"]:,.0f}',
                f'{found["judge_is_faster_by"]["median"]:.1f}',
                f'{found["judge_is_faster_by"]["lower_quartile"]:.1f} - '
                f'{found["judge_is_faster_by"]["upper_quartile"]:.1f}',
            )
            for name, found in result.items()
        ],
    )
    print()
    runs = {name: whole_run(name, 4 * options.repetitions) for name in ('paper_released', 'clean')}
    runs['clean, not two_d_mode'] = whole_run('clean', 4 * options.repetitions, flat=False)
    table(
        ('30 s, 100 + 10 Hz', 'total ms', 'inputs', 'loop', 'rest', 'measurements', 'x real time'),
        [
            (
                name,
                *(
                    f'{found[part]["median"]:.1f}'
                    for part in ('milliseconds', 'inputs_ms', 'loop_ms', 'rest_ms')
                ),
                str(found['measurements']),
                f'{found["times_faster_than_real_time"]:,.0f}',
            )
            for name, found in runs.items()
        ],
    )
    print()
    found = pieces(options.repetitions)
    table(
        ('one call of', 'ns'), [(name, f'{value["median"]:.0f}') for name, value in found.items()]
    )
    threads = in_threads(max(options.repetitions // 3, 3))
    print(f'two threads are faster than one by {threads["median"]:.2f}')
    write(
        options.out,
        'judge_speed',
        {'filters': result, 'runs': runs, 'pieces': found, 'two_threads_faster_by': threads},
    )


if __name__ == '__main__':
    main()
