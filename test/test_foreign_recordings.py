# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The generator of benchmarks/foreign: physics, messages, faults and their remedies."""

from __future__ import annotations

import ast
import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest
from pyproj import Transformer
from scipy.spatial.transform import Rotation

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / 'benchmarks'))

import foreign
from foreign import earth
from foreign.errors import growth, is_mended, measure_errors
from foreign.faults import TOPICS, faulty_setups, load_faults
from foreign.sensors import IMU, Log, make_log
from foreign.setups import PECULIARITIES, PLACES, Setup, clean_setups, draw_setup
from foreign.validate_check import read_streams
from foreign.vehicles import VEHICLES, make_motion
from foreign.writer import STORE, TYPES, serialise, write_bag

FAULTS = load_faults()
# What no correction of recording.yaml undoes, or with numbers that differ between recordings.
BY_NUMBERS = [
    name for name, one in FAULTS.items() if one.correction and '...' not in one.correction
]


def test_the_generator_imports_nothing_of_the_package() -> None:
    names = set()
    for path in Path(foreign.__path__[0]).glob('*.py'):
        if path.name != 'validate_check.py':
            for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
                if isinstance(node, ast.Import):
                    names |= {alias.name.partition('.')[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    names.add(str(node.module).partition('.')[0])
    assert names <= {*sys.stdlib_module_names, 'numpy', 'scipy', 'rosbags'}


@pytest.mark.parametrize('vehicle', VEHICLES)
def test_rates_and_forces_integrate_to_the_motion(vehicle: str) -> None:
    """Dead reckoning with exact sensors at 1 kHz for 20 s errs by less than 0.02 m, 1e-4 rad."""
    motion = make_motion(vehicle, np.random.default_rng(3), 30.0, hills=0.1, rest=2.0)
    step, arm = 1e-3, np.array([0.5, -0.2, 1.0])
    time = np.arange(4.0, 24.0, step)
    state, middle = motion.at(time), motion.at(time + 0.5 * step)
    place, speed, _ = state.point(arm)
    force = middle.attitude.inv().apply(middle.point(arm)[2] + [0.0, 0.0, 9.81])
    attitude, velocity, position = state.attitude[0], speed[0], place[0]
    for rate, sensed in zip(middle.rate[:-1], force[:-1], strict=True):
        half = attitude * Rotation.from_rotvec(0.5 * step * rate)
        change = step * (half.apply(sensed) - [0.0, 0.0, 9.81])
        position = position + step * velocity + 0.5 * step * change
        velocity = velocity + change
        attitude = attitude * Rotation.from_rotvec(step * rate)
    assert np.linalg.norm(position - place[-1]) < 0.02
    assert (attitude * state.attitude[-1].inv()).magnitude() < 1e-4


@pytest.mark.parametrize('origin', PLACES)
def test_places_agree_with_proj(origin: earth.Place) -> None:
    enu = np.random.default_rng(0).normal(0.0, 500.0, (20, 3))
    latitude, longitude, height = earth.to_geodetic(enu, origin)
    chain = (
        '+proj=pipeline +step +proj=cart +ellps=WGS84 +step +proj=topocentric +ellps=WGS84 '
        f'+lat_0={origin[0]} +lon_0={origin[1]} +h_0={origin[2]}'
    )
    theirs = Transformer.from_pipeline(chain).transform(
        np.radians(longitude), np.radians(latitude), height, radians=True
    )
    np.testing.assert_allclose(np.transpose(theirs), enu, atol=1e-6)
    np.testing.assert_allclose(earth.to_enu(latitude, longitude, height, origin), enu, atol=1e-6)


def test_messages_are_those_of_rosbags() -> None:
    setup = _setup('car', peculiarity='poses at 20 Hz without velocities', magnetometer=True)
    streams = [*make_log(setup).streams.values()]
    streams += make_log(dataclasses.replace(setup, peculiarity='')).streams.values()
    kinds = set()
    for stream in streams:
        row = serialise(stream)[5].tobytes()
        message = STORE.deserialize_cdr(row, TYPES[stream.kind])
        assert bytes(STORE.serialize_cdr(message, TYPES[stream.kind])) == row
        stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        assert stamp == pytest.approx(1_717_236_000 + stream.time[5], abs=1e-6)
        kinds.add(stream.kind)
    assert kinds == set(TYPES)


def test_clean_recordings_state_their_errors_within_a_factor_of_two() -> None:
    """And meet every vehicle, peculiarity and mounting."""
    setups = clean_setups(0, 60)
    assert {setup.vehicle for setup in setups} == set(VEHICLES)
    assert {setup.peculiarity for setup in setups} == {'', *PECULIARITIES}
    for setup in setups[:12]:
        log = make_log(setup)
        errors = measure_errors(log, log.streams, log.transforms)
        stated = {name: size for name, size in errors.items() if name.endswith('stated')}
        assert max(stated.values()) < np.log(2.0), (setup, stated)


@pytest.mark.parametrize('name', FAULTS)
def test_a_fault_changes_its_own_input_alone(name: str) -> None:
    fault = FAULTS[name]
    clean, faulty = (make_log(_of_fault(name)) for _ in range(2))
    fault.plant(faulty)
    for topic, stream in clean.streams.items():
        same = bytes(serialise(stream)) == bytes(serialise(faulty.streams[topic]))
        is_own = topic == TOPICS[fault.role] and name != 'lever_arm_undeclared'
        assert same != is_own, topic


@pytest.mark.parametrize('name', BY_NUMBERS)
def test_the_natural_correction_mends_a_fault(name: str, tmp_path: Path) -> None:
    """Written in recording.yaml, it brings the errors of the input back to those without fault."""
    fault = FAULTS[name]
    if 'translation' in fault.correction:
        pytest.skip('it is a transform')
    log = make_log(_of_fault(name))
    clean = _errors_of_role(log, fault.role)
    fault.plant(log)
    faulty = measure_errors(log, log.streams, log.transforms)
    write_bag(log, tmp_path / 'bag')
    text = f'corrections: {{{fault.role}: {{{fault.correction}}}}}\n'
    (tmp_path / 'bag' / 'recording.yaml').write_text(text, encoding='utf-8')
    mended = measure_errors(log, *read_streams(tmp_path / 'bag'))
    assert is_mended(clean, faulty, mended), (clean, faulty, mended)
    assert growth(faulty, mended) == []


def _errors_of_role(log: Log, role: str) -> dict[str, float]:
    errors = measure_errors(log, log.streams, log.transforms)
    return {name: error for name, error in errors.items() if name.startswith(role)}


def _of_fault(name: str) -> Setup:
    (setup,) = [one for fault, one in faulty_setups(0, len(FAULTS)) if fault.name == name]
    return dataclasses.replace(setup, duration=60.0, imu_rate=min(setup.imu_rate, 100.0))


def _setup(vehicle: str, **fixed: object) -> Setup:
    drawn = {'odometry': True, 'duration': 20.0, **fixed}
    return draw_setup(np.random.default_rng(0), vehicle, **drawn)


def test_the_imu_is_declared_where_it_is() -> None:
    """Turned by its transform, the force at rest points up."""
    for mounting in ('upside_down', 'tilted', 'upright'):
        log = make_log(_setup('truck', mounting=mounting, misalignment=0.0, hills=0.0))
        force = log.streams[IMU].values['force'][:50].mean(axis=0)
        up = log.transforms['imu_link'][1].apply(force)
        np.testing.assert_allclose(up, log.gravity(), atol=0.3)
