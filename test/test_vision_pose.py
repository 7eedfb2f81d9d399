# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Vision poses. Bounds are 4.5 standard errors (7e-6 per comparison); seeds are fixed."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from wheel_examples import dance, pieces, same_bits, straight

from sim_sensors.core.errors import ParameterError, SensorError
from sim_sensors.motion.scenarios import Circle, Standstill
from sim_sensors.sensor.catalogue import preset_names
from sim_sensors.vision import vision_pose
from sim_sensors.vision.vision_pose import Frc2024, Gate, TagDistance, VisionModel, load_vision
from sim_sensors.world.world import Tags, World, load_world

SIGMAS = 4.5
RING = load_world('tag_ring')
EXACT = TagDistance(position=0.0, heading=0.0)
FIELDS = (
    'position', 'orientation', 'pose_covariance', 'distance', 'count', 'accepted', 'flipped',
    'true_position',
)  # fmt: skip


def wall(*places, toward=math.pi):
    """Tags of 20 cm whose faces look into the direction `toward`, rad from x to y."""
    turn = Rotation.from_euler('z', toward) * Rotation.from_euler('xyz', [np.pi / 2, 0, np.pi / 2])
    n = len(places)
    turns = np.tile(turn.as_quat(), (n, 1))
    return World(tags=Tags(np.arange(n), np.array(places), turns, [0.2] * n))


def seen_by_camera(world, at, heading=0.0, **changes):
    """How many tags a camera at a place sees."""
    model = VisionModel(lever_arm=(0.0, 0.0, 0.0), mounting_rpy=(0.0, 0.0, heading), **changes)
    still = Standstill(duration=1.0).at([0.0])
    placed = dataclasses.replace(still, position=np.array([at], dtype=float))
    measurement = model.start(0, 'run', world=world).measure(placed)
    return int(measurement.count[0]), float(measurement.distance[0])


def test_tags_are_visible_only_from_the_front_in_the_image_and_nearby() -> None:
    world = wall((5.0, 0.0, 0.0), (5.0, 1.0, 0.0))
    assert seen_by_camera(world, (0, 0, 0)) == (2, pytest.approx(0.5 * (5 + math.sqrt(26))))
    assert seen_by_camera(world, (10, 0, 0), heading=math.pi)[0] == 0, 'from behind'
    assert seen_by_camera(world, (0, 0, 0), heading=math.pi)[0] == 0, 'looking away'
    assert seen_by_camera(world, (0, 0, 0), max_range=5.05) == (1, pytest.approx(5.0))
    # A third of the picture to each side at 1 m: half of its width is tan(0.2) = 0.2027 m.
    near_wall, narrow = wall((1.0, 0.0, 0.0)), (0.4, 0.4)
    assert seen_by_camera(near_wall, (0, 0.102, 0), field_of_view=narrow)[0] == 1
    assert seen_by_camera(near_wall, (0, 0.104, 0), field_of_view=narrow)[0] == 0, (
        'a corner is outside'
    )
    assert seen_by_camera(near_wall, (0, 0, 0.104), field_of_view=narrow)[0] == 0, 'above'
    for angle, count in ((1.29, 1), (1.31, 0)):
        at = (1.0 - 3.0 * math.cos(angle), 3.0 * math.sin(angle), 0.0)
        assert seen_by_camera(near_wall, at, heading=-angle)[0] == count, 'seen from the side'


def test_the_view_of_tags_agrees_with_projection_by_scipy() -> None:
    """On a random flight: a tag counts if all its corners are in front and inside the picture."""
    rng = np.random.default_rng(3)
    model = VisionModel(lever_arm=(0.3, -0.1, 0.6), mounting_rpy=(0.1, -0.2, 0.4))
    n = 300
    base = dance(np.arange(n) / 10.0)
    truth = dataclasses.replace(
        base, orientation=Rotation.random(n, random_state=4).as_quat(),
        position=rng.uniform(-4.0, 4.0, (n, 3)),
    )  # fmt: skip
    measurement = model.start(0, 'run', world=RING).measure(truth)
    mounting = Rotation.from_euler('xyz', model.mounting_rpy)
    corners, tags = RING.tags.corners(), RING.tags
    normals = Rotation.from_quat(tags.orientations).apply([0, 0, 1])
    for k in range(n):
        body = Rotation.from_quat(truth.orientation[k])
        camera = truth.position[k] + body.apply(model.lever_arm)
        count = 0
        for tag in range(len(tags)):
            local = (body * mounting).inv().apply(corners[tag] - camera)
            across = np.abs(np.arctan2(local[:, 1], local[:, 0])) <= model.field_of_view[0] / 2
            up = np.abs(np.arctan2(local[:, 2], local[:, 0])) <= model.field_of_view[1] / 2
            sight = camera - tags.positions[tag]
            away = np.linalg.norm(sight)
            facing = math.acos(sight @ normals[tag] / away) <= model.max_incidence
            count += int(across.all() and up.all() and facing and away <= model.max_range)
        assert measurement.count[k] == count
    assert (np.bincount(measurement.count)[:2] > 10).all()


def errors(model, world, runs=2000):
    """Errors of position and rotation about the world's axes, and what is stated."""
    truth = straight(runs, 30.0, 0.0)
    measurement = model.start(2, 'run', world=world).measure(truth)
    turn = Rotation.from_quat(measurement.orientation)
    turn *= Rotation.from_quat(truth.orientation).inv()
    return np.hstack([measurement.position - truth.position, turn.as_rotvec()]), measurement


@pytest.mark.parametrize(('distance', 'count'), [(2.0, 1), (4.0, 1), (4.0, 4)])
def test_the_error_follows_the_power_law_and_the_stated_covariance_matches(
    distance, count
) -> None:
    """0.01 d^2 / sqrt(n) m and 0.005 d^2 / sqrt(n) rad, white."""
    places = [(distance, 0.0, 0.02 * k) for k in range(count)]
    law = TagDistance(position=0.01, heading=0.005)
    model = VisionModel(lever_arm=(0.0, 0.0, 0.03), noise=law, gate=Gate(enabled=False))
    normalised, measurement = errors(model, wall(*places))
    assert (measurement.count == count).all()
    d = measurement.distance[0]
    expected = d**2 / math.sqrt(count) * np.repeat([0.01, 0.005], 3)
    assert np.abs(normalised.mean(axis=0) / expected).max() < SIGMAS / math.sqrt(2000)
    assert np.abs(normalised.std(axis=0) / expected - 1.0).max() < SIGMAS * math.sqrt(0.5 / 2000)
    np.testing.assert_allclose(np.sqrt(np.diag(measurement.pose_covariance[0])), expected)
    information = np.linalg.inv(measurement.pose_covariance)
    nees = np.einsum('ni,nij,nj->n', normalised, information, normalised)
    assert nees.mean() == pytest.approx(6.0, abs=SIGMAS * math.sqrt(12.0 / 2000))


def test_frc_numbers_are_variances_if_exact_and_deviations_as_upstream() -> None:
    distance, count = np.array([1.0, 1.0, 5.0, 5.0]), np.array([1, 2, 1, 3])
    numbers = np.array([[1.44, 100.0], [0.7, 0.9], [36.0, 100.0], [4.0, 0.9]])
    upstream = Frc2024(variant='as_upstream').deviations(distance, count)
    np.testing.assert_allclose(upstream, numbers)
    np.testing.assert_allclose(Frc2024().deviations(distance, count) ** 2, numbers)
    model = VisionModel(noise=EXACT, covariance=Frc2024(), lever_arm=(0.0, 0.0, 0.0))
    normalised, measurement = errors(model, wall((5.0, 0.0, 0.0)), runs=5)
    assert not normalised.any()
    np.testing.assert_allclose(np.diag(measurement.pose_covariance[0]), [36.0] * 3 + [100.0] * 3)


def test_without_tags_in_view_there_is_no_message() -> None:
    """A circle in the ring: some frames see none; the others have true poses."""
    gate = Gate(enabled=False)
    model = VisionModel(noise=EXACT, lever_arm=(0.2, 0.0, 0.5), latency=0.02, gate=gate)
    motion = Circle(radius=3.0, speed=2.0, duration=20.0)
    poses = vision_pose.simulate(model, motion, seed=0, run='run', world=RING)
    measurement = model.start(0, 'run', world=RING).measure(motion.at(np.arange(601) / 30.0))
    assert 50 < (measurement.count == 0).sum() < 300
    assert len(poses) == (measurement.count > 0).sum()
    truth = motion.at(poses.stamp_ns * 1e-9)
    np.testing.assert_allclose(poses.position, truth.position, atol=1e-12)
    np.testing.assert_allclose(poses.orientation, truth.orientation, atol=1e-12)
    assert (poses.arrival_ns - poses.stamp_ns == 20_000_000).all()
    assert poses.frame == 'map'


def test_the_ambiguous_pose_fits_the_image_of_the_tag() -> None:
    """The centre keeps its pixel, and the normal is mirrored at the line of sight."""
    world = wall((3.0, 0.5, 0.7))
    model = VisionModel(
        noise=EXACT, ambiguity=0.3, lever_arm=(0.2, 0.0, 0.5), gate=Gate(enabled=False)
    )
    truth = straight(2000, 30.0, 2e-4)
    measurement = model.start(1, 'run', world=world).measure(truth)
    assert (measurement.count == 1).all()
    share = measurement.flipped.mean()
    assert abs(share - 0.3) < SIGMAS * math.sqrt(0.21 / 2000)
    k = int(np.flatnonzero(measurement.flipped)[0])
    normal, centre = np.array([-1.0, 0.0, 0.0]), world.tags.positions[0]

    def in_camera(position, orientation):
        body = Rotation.from_quat(orientation)
        camera = position + body.apply(model.lever_arm)
        return body.inv().apply(centre - camera), body.inv().apply(normal)

    right = in_camera(truth.position[k], truth.orientation[k])
    wrong = in_camera(measurement.position[k], measurement.orientation[k])
    np.testing.assert_allclose(wrong[0], right[0], atol=1e-12)
    sight = -right[0] / np.linalg.norm(right[0])
    mirrored = 2.0 * (right[1] @ sight) * sight - right[1]
    np.testing.assert_allclose(wrong[1], mirrored, atol=1e-12)
    assert np.linalg.norm(measurement.position[k] - truth.position[k]) > 0.3


def test_the_gate_rejects_single_tag_poses_that_are_high_far_or_jump() -> None:
    gate = Gate(top_speed=2.0)
    times = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 3.0])
    position = np.array(
        [[0, 0, 0], [0, 0, 1.1], [0, 0, 0], [1.5, 0, 0], [9, 0, 0], [9, 0.5, 0], [0, 0, 0]],
        dtype=float,
    )
    distance = np.array([3.0, 3.0, 7.1, 3.0, 3.0, 3.0, 3.0])
    count = np.array([1, 1, 1, 1, 2, 1, 0])
    expected = [True, False, False, True, True, True, False]
    whole = gate.start().accept(times, position, distance, count)
    # 1.5 m in 0.3 s is within 1 m + 2 m/s x 0.3 s; two tags are accepted anywhere.
    np.testing.assert_array_equal(whole, expected)
    slow = dataclasses.replace(gate, top_speed=1.0).start()
    assert slow.accept(times, position, distance, count).tolist()[3] is False
    all_of_them = Gate(enabled=False).start().accept(times, position, distance, count)
    np.testing.assert_array_equal(all_of_them, count > 0)
    strict = dataclasses.replace(gate, single_tag_only=False).start()
    assert strict.accept(times, position, distance, count).tolist()[4] is False


def test_the_gate_rejects_most_wrong_poses() -> None:
    """Wrong poses are more than 2 m off on a circle."""
    model = dataclasses.replace(load_vision('tags'), ambiguity=0.2, noise=EXACT)
    truth = Circle(radius=3.0, speed=2.0, duration=60.0).at(np.arange(1800) / 30.0)
    measurement = model.start(5, 'run', world=RING).measure(truth)
    off = np.linalg.norm(measurement.position - truth.position, axis=1)
    wrong = measurement.flipped & (off > 2.0)
    assert wrong.sum() > 50
    assert measurement.accepted[wrong].mean() < 0.3
    right = (measurement.count > 0) & ~measurement.flipped & (measurement.distance < 7.0)
    assert measurement.accepted[right].mean() > 0.8


@pytest.mark.parametrize('name', preset_names('vision'))
def test_stepwise_simulation_equals_one_call_bit_for_bit(name: str) -> None:
    model = dataclasses.replace(load_vision(name), ambiguity=0.3)
    truth = Circle(radius=3.0, speed=2.0, duration=10.0).at(np.arange(300) / 30.0)
    whole = model.start(4, 'run', world=RING).measure(truth)
    for places in ([1, 2, 2, 50, 51, 200], range(1, 300)):
        sensor = model.start(4, 'run', world=RING)
        parts = [sensor.measure(piece) for piece in pieces(truth, places)]
        same_bits(parts, whole, FIELDS)


def test_a_stepped_camera_delivers_messages_like_the_batch_run() -> None:
    model = load_vision('frc_2024')
    motion = Circle(radius=3.0, speed=2.0, duration=5.0)
    poses = vision_pose.simulate(model, motion, seed=3, run='run', world=RING)
    sensor = model.start(3, 'run', world=RING)
    stamps = np.rint(np.arange(176) * 1e9 / 35.0).astype(np.int64)
    arrived = []
    for k in range(0, 176, 7):
        measurement = sensor.measure(motion.at(np.minimum(stamps[k : k + 7] * 1e-9, motion.end)))
        sent = sensor.channel.deliver(measurement.messages(stamps[k : k + 7], 'map'))
        arrived += list(zip(sent.stamp_ns.tolist(), sent.arrival_ns.tolist(), strict=True))
    assert arrived == list(zip(poses.stamp_ns.tolist(), poses.arrival_ns.tolist(), strict=True))


def test_a_world_without_tags_and_an_unknown_covariance_are_refused() -> None:
    with pytest.raises(SensorError, match='tags'):
        VisionModel().start(0, 'run', world=World())
    with pytest.raises(ParameterError, match='covariance'):
        VisionModel.from_mapping({'covariance': {'model': 'none'}}, 'my.yaml')
