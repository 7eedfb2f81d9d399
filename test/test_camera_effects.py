# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Rolling shutter, boxes that hide features, and lines: against geometry and Monte Carlo."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from camera_examples import VGA, board, camera, cloud

from sim_sensors.camera.camera import CameraModel
from sim_sensors.camera.features import LineArray
from sim_sensors.core.seeding import stream
from sim_sensors.motion.scenarios import FigureEight, Standstill
from sim_sensors.motion.trajectory import Trajectory
from sim_sensors.world.world import Boxes, Landmarks, World, world_from_mapping

ROW = 30e-6


def wall(count: int, distance: float = 4.0) -> World:
    """Points on a wall across the x axis, denser than the image of a VGA camera reaches."""
    y, z = np.meshgrid(np.linspace(-3.0, 3.0, count), np.linspace(-2.5, 2.5, count))
    places = np.stack([np.full(y.size, distance), y.ravel(), z.ravel()], axis=1)
    return World(landmarks=Landmarks(np.arange(len(places)), places))


def moving(velocity: tuple[float, float, float], rate: tuple[float, float, float]) -> Trajectory:
    """One frame from the origin, looking along x."""
    zero, unit = np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0, 1.0]])
    twist = {'velocity': np.array([velocity]), 'angular_velocity': np.array([rate])}
    return Trajectory(
        time=np.zeros(1), position=zero, orientation=unit, acceleration=zero,
        angular_acceleration=zero, **twist,
    )  # fmt: skip


@pytest.mark.parametrize(
    ('velocity', 'rate'),
    [((0.0, 2.0, 0.0), (0.0, 0.0, 0.0)), ((0.0, 0.0, 0.0), (0.0, 0.0, 0.5)),
     ((1.0, 0.0, -1.0), (0.2, 0.3, 0.0))],
)  # fmt: skip
def test_a_rolling_shutter_shifts_by_pixel_velocity_times_delay(
    velocity: tuple[float, float, float], rate: tuple[float, float, float]
) -> None:
    """Against pixels of the same points 0.1 ms later; the shift reaches 10 px at the bottom."""
    world, still = wall(15), moving(velocity, rate)
    model = CameraModel(intrinsics=VGA, noise_std=(0.0, 0.0))

    def pixels_by_id(row_time: float, at: Trajectory) -> dict[int, np.ndarray]:
        shutter = dataclasses.replace(model, row_time=row_time)
        measurement = shutter.start(1, 'a', world=world).measure(at)
        return dict(zip(measurement.ids.tolist(), measurement.pixels, strict=True))

    step = 1e-4
    turn = 0.5 * step * np.array([rate])
    pose = {'position': step * np.array([velocity])}
    pose['orientation'] = np.concatenate([turn, np.ones((1, 1))], axis=1)
    later = dataclasses.replace(still, **pose)
    views = ((ROW, still), (0.0, still), (0.0, later))
    rolling, first, then = (pixels_by_id(*view) for view in views)
    both = sorted(rolling.keys() & first.keys() & then.keys())
    assert len(both) > 60
    shift = np.array([rolling[k] - first[k] for k in both])
    speed = np.array([(then[k] - first[k]) / step for k in both])
    delay = ROW * (np.array([rolling[k][1] for k in both]) + 0.5)
    assert np.abs(shift).max() > 2.0
    np.testing.assert_allclose(shift, speed * delay[:, None], atol=0.02 * np.abs(shift).max())


def test_a_rolling_shutter_has_no_effect_at_rest() -> None:
    world, still = cloud(80), moving((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    global_shutter, rolling_shutter = (
        dataclasses.replace(camera(), row_time=row).start(1, 'a', world=world).measure(still)
        for row in (0.0, ROW)
    )
    np.testing.assert_array_equal(global_shutter.ids, rolling_shutter.ids)
    np.testing.assert_allclose(global_shutter.pixels, rolling_shutter.pixels, atol=1e-9)


def test_each_row_is_projected_from_the_pose_at_its_exposure() -> None:
    """Against a camera with a global shutter at the time of each row, to 0.01 px."""
    drive = FigureEight(duration=20.0, speed=3.0)
    places = stream(1, 'sphere', 'test', 'rows').standard_normal((600, 3))
    places *= 30.0 / np.linalg.norm(places, axis=1, keepdims=True)
    big = World(landmarks=Landmarks(np.arange(600), places))
    model = CameraModel(intrinsics=VGA, noise_std=(0.0, 0.0), row_time=2.0 * ROW)
    measurement = model.start(1, 'a', world=big).measure(drive.at(np.array([9.0])))
    assert len(measurement.ids) > 10
    still = dataclasses.replace(model, row_time=0.0)
    for k in range(0, len(measurement.ids), 3):
        time = 9.0 + model.row_time * (measurement.pixels[k, 1] + 0.5)
        still_view = still.start(1, 'a', world=big).measure(drive.at(np.array([time])))
        row = np.flatnonzero(still_view.ids == measurement.ids[k])
        np.testing.assert_allclose(still_view.pixels[row][0], measurement.pixels[k], atol=0.01)


def test_a_box_hides_points_within_its_solid_angle() -> None:
    """A square of 0.5 m at 2 m covers 1 m by 1 m of a wall at 4 m: geometry of shadows."""
    world = wall(101)
    model = CameraModel(intrinsics=VGA, noise_std=(0.0, 0.0))
    box = Boxes([[2.05, 0.3, 0.1]], [[0.0, 0.0, 0.0, 1.0]], [[0.1, 0.5, 0.5]])  # type: ignore[arg-type]
    still = moving((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    free, hidden = (
        set(model.start(1, 'a', world=scene).measure(still).ids.tolist())
        for scene in (world, dataclasses.replace(world, boxes=box))
    )
    lost = world.landmarks.positions[sorted(free - hidden)]
    assert hidden < free
    # From 2 m, where the front of the box is, to 4 m everything doubles.
    np.testing.assert_allclose([lost[:, 1].min(), lost[:, 1].max()], [0.1, 1.1], atol=0.06)
    np.testing.assert_allclose([lost[:, 2].min(), lost[:, 2].max()], [-0.3, 0.7], atol=0.05)
    per_point = 6.0 * 5.0 / 100.0**2
    assert len(lost) * per_point == pytest.approx(1.0, rel=0.05)


def test_a_rotated_box_hides_only_points_behind_or_inside_it() -> None:
    mapping = {'boxes': [{'position': [3, 0, 0], 'rpy': [0, 0, np.pi / 4], 'size': [1, 1, 1]}]}
    boxes = world_from_mapping(mapping, 'test').boxes
    front = 3 - np.sqrt(0.5)
    points = np.array([[front, 0, 0], [1, 0, 0], [6, 0, 0], [6, 1.3, 0], [6, 1.5, 0], [3, 0, 0]])
    hidden = boxes.hide(np.zeros(3), points).tolist()
    # The edges of the square are 0.7 m to the sides at 3 m: 1.41 m at 6 m.
    assert hidden == [False, False, True, True, False, True]


def test_the_covariance_of_a_line_agrees_with_20000_random_draws() -> None:
    """20000 draws: variances to 4 %, three standard errors; a lever about pixel (0, 0)."""
    first, second, std = np.array([120.0, 300.0]), np.array([420.0, 60.0]), np.array([0.5, 0.8])
    rng = stream(1, 'line', 'test', 'noise')
    ends = (end + std * rng.standard_normal((20000, 2)) for end in (first, second))
    drawn = LineArray.through_pixels(*ends, std)
    true = LineArray.through_pixels(first[None], second[None], std)
    spread = np.cov(np.stack([drawn.angle, drawn.distance]))
    np.testing.assert_allclose(np.diag(spread), np.diag(true.covariance[0]), rtol=0.04)
    assert spread[0, 1] == pytest.approx(true.covariance[0, 0, 1], rel=0.05)
    normal = np.array([np.cos(true.angle[0]), np.sin(true.angle[0])])
    np.testing.assert_allclose([normal @ first, normal @ second], true.distance[0], rtol=1e-12)


def test_angle_differences_of_lines_are_wrapped() -> None:
    """A nearly vertical line leans to either side: the normal turns from 0 to pi."""
    lean = LineArray.through_pixels([[100.0, 0.0]] * 2, [[101.0, 200.0], [99.0, 200.0]], 0.5)
    upright = LineArray.through_pixels([[100.0, 0.0]] * 2, [[100.0, 200.0]] * 2, 0.5)
    angle, distance = lean.differences(upright)
    np.testing.assert_allclose(np.abs(angle), np.arctan(1.0 / 200.0))
    assert angle[0] == pytest.approx(-angle[1])
    np.testing.assert_allclose(distance, 0.0, atol=2e-3)


def test_lines_connect_the_features_detected_in_each_frame() -> None:
    """Straight edges of a board go through all corners between their ends, frame by frame."""
    model = camera(intrinsics=VGA, missed=0.2)
    messages = model.start(1, 'a', world=board()).simulate(Standstill(duration=2.0))
    lines = LineArray.from_features(messages.features, [[0, 7], [40, 47], [0, 99]], 0.5)
    assert 40 < len(lines.frame) < 2 * len(messages.features)
    assert {tuple(pair) for pair in lines.ids.tolist()} == {(0, 7), (40, 47)}
    for frame, (first, last), angle, distance in zip(
        lines.frame, lines.ids, lines.angle, lines.distance, strict=True
    ):
        rows = messages.features.rows(frame)
        ids = messages.features.ids[rows]
        on_edge = messages.features.pixels[rows][(ids >= first) & (ids <= last)]
        np.testing.assert_allclose(on_edge @ [np.cos(angle), np.sin(angle)], distance, atol=1e-6)
