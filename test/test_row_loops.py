# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Row loops run in the interpreter or compiled, with the same bits."""

from __future__ import annotations

import copy
import importlib
import pkgutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import sim_sensors
from sim_sensors.core import compilation
from sim_sensors.core.errors import MotionError
from sim_sensors.gps import simulators as gps_simulators
from sim_sensors.imu import gazebo as imu_gazebo
from sim_sensors.imu import simulators as imu_simulators
from sim_sensors.motion import vehicles
from sim_sensors.noise import electronics, processes
from sim_sensors.sensor import delivery, sensor
from sim_sensors.world import geodesy, world

N = 2000
RNG = np.random.default_rng(1)
DT = RNG.choice([0.01, 0.001, 0.0099999, 0.1], N)
THREE = RNG.standard_normal((N, 3))
PLACES = RNG.uniform([-90.0, -180.0, -100.0], [90.0, 180.0, 5000.0], (N, 3))
TIMES, STD = processes.relaxation_processes(1.0, 1000.0)
FLICKER = RNG.standard_normal((N, len(TIMES) + 1, 3))
STEPS = np.ceil(DT / 0.01 - 1e-9).astype(np.int64)
CAR = (0.3, 0.1, 0.2, 4.0, 0.05, -0.2, 0.4)
CONSTANTS = (2.9, 0.3, 4.0, 12.0, 300.0, 0.02, 0.4, 0.05, 0.1, 0.05)

CASES: list[tuple[Any, tuple[Any, ...]]] = [
    (processes._gauss_markov, (np.ones(3), np.ones(3), np.array([1.0, 30.0, 900.0]), DT, THREE)),
    (
        processes._flicker,
        (np.ones((len(TIMES), 3)), STD[:, None] * np.ones((1, 3)), TIMES, DT, FLICKER),
    ),
    (electronics._filter, (np.zeros((3, 5)), 30.0, 1, THREE, THREE**2, DT)),
    (electronics._filter, (np.zeros((3, 5)), 30.0, 2, THREE, THREE**2, DT)),
    (electronics._increments, (np.zeros(3), np.array([0.1, 0.0, 0.003]), THREE, DT)),
    (electronics._decay, (np.array([3.0]), np.array([5.0]), 100.0, DT)),
    (geodesy._to_enu, (PLACES, np.array([43.07, -89.4, 260.0]))),
    (geodesy._small_step, (PLACES, THREE)),
    (geodesy._chrono_sphere, (43.07, -89.4, 1e3 * THREE)),
    (geodesy._hector, (43.07, -89.4, 1e3 * THREE)),
    (world._field, (THREE, THREE[:5], THREE[5:10], 0.5)),
    (delivery._lost_messages, (DT, np.abs(np.sin(THREE[:, 0])), 0.3, 0.1, False)),
    (sensor._outer_products, (np.zeros(4), THREE)),
    (
        gps_simulators._integrate,
        (
            *(np.zeros(3), np.zeros(3), DT, STEPS, RNG.standard_normal((STEPS.sum(), 3))),
            *(0.01, 1.0, -0.3, 2.0, 3.0),
        ),
    ),
    (imu_gazebo._drift, (np.zeros(3), np.ones(3), np.array([0.1, 0.5, 0.9]), DT, THREE)),
    (imu_simulators._euler_drift, (np.zeros(3), np.ones(3), 30.0, DT, THREE)),
    (vehicles._advance, (np.empty((N, 7)), CAR, 0.6, 0.1, 1e-3, CONSTANTS)),
    (vehicles._rates, (CAR, 0.6, 0.1, CONSTANTS)),
    (vehicles._add_step, (CAR, CAR, 1e-3)),
]


def bits(values: Any) -> list[bytes]:
    arrays = values if isinstance(values, tuple) else (values,)
    return [np.asarray(array).tobytes() for array in arrays]


@pytest.mark.parametrize(('loop', 'arguments'), CASES, ids=[c[0].__name__ for c in CASES])
def test_a_row_loop_gives_the_same_bits_compiled_and_in_the_interpreter(
    loop: Any, arguments: tuple[Any, ...]
) -> None:
    first, second = copy.deepcopy(arguments), copy.deepcopy(arguments)
    assert bits(loop.dispatcher(*first)) == bits(loop.__wrapped__(*second))
    # Arguments that are states are advanced alike.
    assert bits(first) == bits(second)


def test_every_row_loop_is_compared() -> None:
    loops = set()
    for info in pkgutil.walk_packages(sim_sensors.__path__, 'sim_sensors.'):
        if info.name.startswith(('sim_sensors.ros', 'sim_sensors.motion.mujoco')):
            continue
        module = importlib.import_module(info.name)
        loops |= {
            value.__wrapped__
            for value in vars(module).values()
            if isinstance(value, compilation._RowLoop)
        }
    assert loops == {loop.__wrapped__ for loop, _ in CASES}


@pytest.mark.parametrize(
    ('rows', 'is_loaded'), [(compilation.FEW_ROWS, 'False'), (compilation.FEW_ROWS + 1, 'True')]
)
def test_few_rows_need_no_numba(rows: int, is_loaded: str) -> None:
    code = (
        'import sys\n'
        'import numpy as np\n'
        'from sim_sensors.world.geodesy import DEFAULT_ORIGIN\n'
        f'DEFAULT_ORIGIN.to_enu(*np.zeros((3, {rows})))\n'
        'print("numba" in sys.modules)\n'
    )
    assert subprocess.check_output([sys.executable, '-c', code], text=True).strip() == is_loaded


@pytest.mark.parametrize('count', [1, compilation.FEW_ROWS + 1])
@pytest.mark.parametrize('wrong', [np.inf, np.nan, 1e300])
def test_places_that_wgs84_cannot_convert_are_refused(count: int, wrong: float) -> None:
    places = np.zeros((count, 3))
    places[-1, 0] = wrong
    with pytest.raises(MotionError):
        geodesy.DEFAULT_ORIGIN.to_geodetic(places)
    if not np.isfinite(wrong):
        with pytest.raises(MotionError):
            geodesy.DEFAULT_ORIGIN.to_enu(*places.T)


def test_a_row_loop_that_diverges_gives_what_the_compiled_one_does() -> None:
    """Python raises for sin(inf); compiled code continues with NaN."""
    enu = np.array([[1.0, 2.0, 3.0], [np.inf, 0.0, 0.0]])
    expected = geodesy._chrono_sphere.dispatcher(43.07, -89.4, enu)
    assert bits(geodesy._chrono_sphere(43.07, -89.4, enu)) == bits(expected)
    value = np.array([1.0])
    args = (value, np.array([0.0]), 1.0, np.array([0.5, -1e300]))
    assert bits(electronics._decay(*args)) == bits(electronics._decay.dispatcher(*args))


def test_a_servo_too_fast_for_the_integrator_is_one_line() -> None:
    car = vehicles.AckermannVehicle(steering_lag=1e-4)
    start = vehicles.VehicleState(0.0, 0.0, 0.0, 0.0)
    with pytest.raises(MotionError, match='not finite'):
        car.drive(
            lambda time, state: vehicles.VehicleCommand(0.5, 0.3),
            duration=1.0,
            start=start,
            control_rate=100.0,
        )
