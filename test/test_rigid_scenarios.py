# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Constant twist, constant acceleration and tables are exact and equal those of GTSAM."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scenario_examples import assert_states_alike, gtsam_scenario, load_gtsam, random_scenario
from test_trajectory import assert_consistent, assert_identical, chunked

from sim_sensors.core.errors import MotionError, ParameterError
from sim_sensors.motion.motions import motion_names, motion_of, truth_of
from sim_sensors.motion.spatial_scenarios import Accelerating, ConstantTwist, DiscreteScenario
from sim_sensors.motion.trajectory import Motion, NavState

NUMBERS = range(20)
HEADER = 't,q_w,q_x,q_y,q_z,v_x,v_y,v_z,p_x,p_y,p_z,w_x,w_y,w_z,a_x,a_y,a_z'


def table(motion: Motion, times: np.ndarray) -> tuple[np.ndarray, ...]:
    m = motion.at(times)
    return times, m.position, m.orientation, m.angular_velocity, m.velocity, m.acceleration


def write_table(path: Path, motion: Motion, times: np.ndarray, first: float = 0.0) -> Path:
    m = motion.at(times)
    q = m.orientation[:, [3, 0, 1, 2]]
    rows = np.column_stack(
        [times + first, q, m.velocity, m.position, m.angular_velocity, m.acceleration]
    )
    lines = [','.join(f'{value!r}' for value in row) for row in rows.tolist()]
    path.write_text('\n'.join([HEADER, *lines, '']), encoding='utf-8')
    return path


def assert_equal_to_gtsam(
    scenario: Any, gtsam_result: Any, t: float, names: tuple[str, ...], tolerance: float
) -> None:
    limits = {'rtol': 0.0, 'atol': tolerance}
    expected = gtsam_result.pose(t).matrix()
    np.testing.assert_allclose(scenario.pose(t), expected, err_msg='gtsam pose', **limits)
    for name in names:
        values, expected = getattr(scenario, name)(t), getattr(gtsam_result, name)(t)
        np.testing.assert_allclose(values, expected, err_msg=f'gtsam {name}', **limits)


@pytest.mark.parametrize('number', NUMBERS)
def test_derivatives_are_consistent(number: int) -> None:
    times = np.linspace(0.0137, 4.97, 60)
    assert_consistent(random_scenario(number).at, times, atol=2e-8, step=1e-3)


@pytest.mark.parametrize('number', NUMBERS)
def test_the_motion_equals_that_of_gtsam(
    number: int, record_property: Callable[[str, object], None]
) -> None:
    gtsam = load_gtsam()
    scenario = random_scenario(number)
    gtsam_result = gtsam_scenario(gtsam, scenario)
    for t in (0.0, 0.123, 2.0, 5.0):
        record_property('pose', np.abs(scenario.pose(t) - gtsam_result.pose(t).matrix()).max())
        assert_states_alike(scenario.nav_state(t), gtsam_result.navState(t), 2e-13)
        names = ('omega_b', 'velocity_n', 'velocity_b', 'acceleration_n', 'acceleration_b')
        assert_equal_to_gtsam(scenario, gtsam_result, t, names, 2e-13)
        np.testing.assert_allclose(scenario.rotation(t), scenario.pose(t)[:3, :3])


def test_a_constant_twist_without_climb_is_a_circle() -> None:
    motion = ConstantTwist(angular_velocity=(0.0, 0.0, 0.5), velocity=(2.0, 0.0, 0.0))
    positions = motion.at(np.linspace(0.0, 20.0, 50)).position
    np.testing.assert_allclose(np.linalg.norm(positions - [0.0, 4.0, 0.0], axis=1), 4.0)
    np.testing.assert_allclose(motion.acceleration_b(7.0), [0.0, 1.0, 0.0], atol=1e-15)


def test_state_differences_and_retractions_equal_those_of_gtsam() -> None:
    gtsam = load_gtsam()
    for number in NUMBERS:
        motion = random_scenario(number)
        first, second = motion.nav_state(0.3), motion.nav_state(2.0)
        xi = first.local_coordinates(second)
        gtsam_result = gtsam_scenario(gtsam, motion)
        expected = gtsam_result.navState(0.3).localCoordinates(gtsam_result.navState(2.0))
        np.testing.assert_allclose(xi, expected, atol=1e-12, err_msg='gtsam localCoordinates')
        difference = first.retract(xi).local_coordinates(second)
        np.testing.assert_allclose(difference, np.zeros(9), atol=1e-13)


@pytest.mark.parametrize('upstream', [False, True])
def test_the_motion_does_not_depend_on_the_chunking_of_times(upstream: bool) -> None:
    times = np.linspace(0.0, 4.9, 101)
    for motion in (
        random_scenario(0),
        random_scenario(1),
        DiscreteScenario(*table(random_scenario(2), np.linspace(0, 5, 11)), as_upstream=upstream),
    ):
        assert_identical(motion.at(times), chunked(motion, times, [1, 7, 20, 73]))


@pytest.mark.parametrize('number', NUMBERS)
def test_a_table_as_upstream_equals_that_of_gtsam(tmp_path: Path, number: int) -> None:
    """Uneven rows, and a first time that is not 0."""
    gtsam = load_gtsam()
    times = np.array([0.0, 0.1, 0.4, 1.5, 3.0, 5.0])
    path = write_table(tmp_path / 'table.csv', random_scenario(number), times, first=100.0)
    scenario = DiscreteScenario.from_csv(path, as_upstream=True)
    gtsam_result = gtsam.DiscreteScenario.FromCSV(str(path))
    assert scenario.duration() == pytest.approx(5.0)
    for t in (0.0, 0.05, 0.25, 1.5, 2.9, 4.999):
        names = ('omega_b', 'velocity_n', 'acceleration_n')
        assert_equal_to_gtsam(scenario, gtsam_result, t, names, 1e-12)


def test_interpolated_columns_are_consistent_with_their_derivatives() -> None:
    """Exact at the rows, derivatives consistent between, error falling as h^4 at least."""
    motion = random_scenario(3)
    errors = []
    for n in (11, 21):
        rows = np.linspace(0.0, 5.0, n)
        discrete = DiscreteScenario(*table(motion, rows))
        np.testing.assert_allclose(
            discrete.at(rows).position, motion.at(rows).position, atol=1e-14
        )
        times = np.linspace(0.01, 4.99, 83)
        assert_consistent(discrete.at, times, atol=1e-6, step=1e-4)
        errors.append(np.abs(discrete.at(times).position - motion.at(times).position).max())
        linear = DiscreteScenario(*table(motion, rows), as_upstream=True)
        with pytest.raises(AssertionError):
            assert_consistent(linear.at, times, atol=1e-3, step=1e-4)
    assert errors[1] <= errors[0] / 15.0 + 1e-13


@pytest.mark.parametrize(
    ('text', 'complaint'),
    [
        ('', 'column t'),
        (HEADER.replace('a_z', 'b'), 'column a_z'),
        (HEADER, '0 rows'),
        (f'{HEADER}\n0,1', "line 2: q_x ''"),
        (f'{HEADER}\n0,1{",0" * 14},x\n', "line 2: a_z 'x'"),
        (f'{HEADER}\n0,1{",0" * 14},nan\n', "a_z 'nan'"),
        (f'{HEADER}\n7,1{",0" * 15}\n7,1{",0" * 15}\n', 'time 7 s'),
        (f'{HEADER}\n0,2{",0" * 15}\n1,2{",0" * 15}\n', 'norm 2'),
    ],
)
def test_wrong_tables_are_refused_by_file_and_place(
    tmp_path: Path, text: str, complaint: str
) -> None:
    path = tmp_path / 'table.csv'
    path.write_text(text, encoding='utf-8')
    with pytest.raises(MotionError, match=f'{path}.*{complaint}'):
        DiscreteScenario.from_csv(path)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(MotionError, match='outside the motion'):
        ConstantTwist(duration=2.0).nav_state(2.1)
    with pytest.raises(ParameterError, match='velocity'):
        Accelerating.from_mapping({'velocity': 'fast'}, 'here')
    rows: list[Any] = list(table(random_scenario(0), np.linspace(0.0, 1.0, 5)))
    rows[3] = rows[3][:-1]
    with pytest.raises(MotionError, match='angular velocities'):
        DiscreteScenario(*rows)
    with pytest.raises(MotionError, match='norm 2'):
        NavState(np.array([0.0, 0.0, 0.0, 2.0]), np.zeros(3), np.zeros(3))
    with pytest.raises(MotionError, match='velocity'):
        NavState(np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3), np.zeros(2))


@pytest.mark.parametrize('kind', [ConstantTwist, Accelerating])
def test_rigid_scenarios_can_be_used_as_motions_of_simulate(kind: type) -> None:
    assert kind.kind in motion_names()
    motion = motion_of(
        kind.kind, seed=0, run='x', duration=3.0, parameters={'angular_velocity': [0.1, 0.2, 0.3]}
    )
    truth = truth_of(motion)
    assert len(truth.stamp_ns) == 301
    np.testing.assert_allclose(truth.angular_velocity, np.tile([0.1, 0.2, 0.3], (301, 1)))
