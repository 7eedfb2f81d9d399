# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The feature tracker: what it sees, how wrong it is, and the same bits however stepped."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from camera_examples import BENT, FORWARD, VGA, board, camera, cloud, swaying
from scipy import stats
from scipy.spatial.transform import Rotation

from sim_sensors.camera import camera as cameras
from sim_sensors.camera.camera import FIRST_TAG_ID, CameraModel, Mismatches, Scene
from sim_sensors.camera.features import CameraMeasurement
from sim_sensors.camera.pose import PoseEstimate
from sim_sensors.core.errors import MotionError, ParameterError, SensorError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.motion.trajectory import Trajectory
from sim_sensors.sensor.delivery import Delivery
from sim_sensors.world.world import Landmarks, Tags, World


def measured(
    model: CameraModel, world: World, frames: int = 60, seed: int = 1
) -> CameraMeasurement:
    return model.start(seed, 'run', world=world).measure(swaying(frames))


def at_origin(count: int = 1) -> Trajectory:
    """Rest at the origin, level, looking along x."""
    zero = np.zeros((count, 3))
    unit = np.tile([0.0, 0.0, 0.0, 1.0], (count, 1))
    return Trajectory(np.arange(count) / 30.0, zero, unit, zero, zero, zero, zero)


def landmarks(*places: tuple[float, float, float]) -> World:
    return World(landmarks=Landmarks(np.arange(len(places)), np.array(places)))


def test_features_agree_with_projection_by_scipy_matrices() -> None:
    """Lever arm and mounting are used; agreement to 1e-9 px."""
    model, world, truth = camera(), cloud(80), swaying(40)
    measurement = model.start(0, 'run', world=world).measure(truth)
    body = Rotation.from_quat(truth.orientation).as_matrix()
    optical = Rotation.from_euler('xyz', model.mounting_rpy).as_matrix() @ FORWARD
    count = 0
    for k in range(len(truth)):
        eye = truth.position[k] + body[k] @ model.lever_arm
        local = (world.landmarks.positions - eye) @ body[k] @ optical
        expected = BENT.project(local)
        inside = BENT.inside(expected)
        rows = slice(measurement.first[k], measurement.first[k + 1])
        assert measurement.ids[rows].tolist() == world.landmarks.ids[inside].tolist()
        assert np.abs(measurement.pixels[rows] - expected[inside]).max() < 1e-9
        assert np.abs(measurement.rays[rows] - (local[:, :2] / local[:, 2:])[inside]).max() < 1e-9
        count += inside.sum()
    assert 40 * 10 < count < 40 * 80


def test_points_on_the_left_have_small_u_and_points_above_have_small_v() -> None:
    world = landmarks((5.0, 1.0, 0.0), (5.0, 0.0, 1.0), (-5.0, 0.0, 0.0), (5.0, 0.0, 0.0))
    model = CameraModel(intrinsics=VGA, noise_std=(0.0, 0.0))
    measurement = model.start(0, 'run', world=world).measure(at_origin())
    assert measurement.ids.tolist() == [0, 1, 3]
    left, up, ahead = measurement.pixels
    assert left[0] < VGA.cx
    assert left[1] == pytest.approx(VGA.cy)
    assert up[1] < VGA.cy
    assert ahead == pytest.approx([VGA.cx, VGA.cy])
    # A body whose own axes are the optical ones, as that of [Ligorio2015].
    optical = model.mounted((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
    assert np.allclose(Rotation.from_quat(optical.optical_rotation()).magnitude(), 0.0, atol=1e-15)


def test_features_outside_the_border_or_the_depth_range_are_not_detected() -> None:
    world = landmarks((1.0, 0.0, 0.0), (3.0, 0.0, 0.0), (9.0, 0.0, 0.0), (4.0, 1.94, 0.0))
    model = CameraModel(intrinsics=VGA, noise_std=(0.0, 0.0))

    def ids(**changes: float) -> list[int]:
        changed = dataclasses.replace(model, **changes)  # type: ignore[arg-type]
        return changed.start(0, 'run', world=world).measure(at_origin()).ids.tolist()

    assert ids() == [0, 1, 2, 3]
    assert ids(nearest=2.0, farthest=8.0) == [1, 3]
    assert ids(border=20.0) == [0, 1, 2]
    assert ids(missed=1.0) == []


def test_corners_of_a_tag_are_visible_only_from_its_front() -> None:
    """Tag 7 faces the camera, tag 8 away; the first corner is left below for the camera."""
    towards = Rotation.from_euler('xyz', [np.pi / 2, 0.0, -np.pi / 2]).as_quat()
    away = Rotation.from_euler('xyz', [np.pi / 2, 0.0, np.pi / 2]).as_quat()
    places = np.array([[3.0, 0.5, 0.0], [3.0, -0.5, 0.0]])
    tags = Tags(np.array([7, 8]), places, np.array([towards, away]), np.array([0.2, 0.2]))
    model = CameraModel(intrinsics=VGA, noise_std=(0.0, 0.0))
    measurement = model.start(0, 'run', world=World(tags=tags)).measure(at_origin())
    assert measurement.ids.tolist() == [FIRST_TAG_ID + 28 + corner for corner in range(4)]
    below_left, below_right, above_right, above_left = measurement.pixels
    assert below_left[0] < below_right[0]
    assert below_left[1] > above_left[1]
    assert above_left[0] < above_right[0]
    assert measurement.has_pose.all()
    assert np.abs(measurement.position).max() < 1e-9


def test_correspondences_join_features_of_consecutive_frames() -> None:
    """Ages count the frames without a gap."""
    measurement = measured(camera(noise_std=(0.5, 0.5), missed=0.2), cloud(60))
    before: dict[int, FloatArray] = {}
    ages: dict[int, int] = {}
    fresh = 0
    for k in range(60):
        rows = slice(measurement.first[k], measurement.first[k + 1])
        now = {}
        for number, pixel, previous, age in zip(
            measurement.ids[rows].tolist(),
            measurement.pixels[rows],
            measurement.previous[rows],
            measurement.age[rows].tolist(),
            strict=True,
        ):
            now[number] = pixel
            ages[number] = ages[number] + 1 if number in before else 0
            assert age == ages[number]
            if number in before:
                assert (previous == before[number]).all()
            else:
                assert np.isnan(previous).all()
                fresh += 1
        # No more correspondences than features in the smaller set.
        assert (measurement.age[rows] > 0).sum() <= min(len(now), len(before))
        before = now
    assert fresh > 200


def test_pixel_noise_is_white_with_the_given_standard_deviation() -> None:
    """Kolmogorov's test, and lags of one frame; each 0.1 % false alarm, seeded."""
    measurement = measured(camera(noise_std=(0.4, 0.9)), cloud(60), frames=150)
    noise = (measurement.pixels - measurement.true_pixels) / [0.4, 0.9]
    assert len(noise) > 3000
    assert stats.kstest(noise.ravel(), 'norm').pvalue > 1e-3
    assert stats.pearsonr(noise[:, 0], noise[:, 1]).pvalue > 1e-3
    number = measurement.ids == np.bincount(measurement.ids).argmax()
    assert stats.pearsonr(noise[number][1:, 0], noise[number][:-1, 0]).pvalue > 1e-3


def test_the_share_of_wrong_correspondences_equals_the_parameter() -> None:
    """n f p (1 - (1 - p)^(n - 1)) of n to 4 deviations; at rest, so that all are tracked."""
    frames, share, part, n = 600, 0.3, 0.15, 48
    model = camera(mismatches=Mismatches(frames=share, features=part))
    measurement = model.start(3, 'run', world=board()).measure(at_origin(frames))
    assert np.diff(measurement.first).tolist() == [n] * frames
    wrong = (measurement.ids != measurement.true_ids).reshape(frames, n)
    assert not wrong[0].any()
    affected = wrong[1:].any(axis=1)
    count = frames - 1
    assert abs(affected.sum() - count * share) < 4.0 * np.sqrt(count * share * (1.0 - share))
    per_frame = n * part * (1.0 - (1.0 - part) ** (n - 1))
    spread = np.sqrt(n * part * (1.0 - part) / affected.sum())
    assert abs(wrong[1:][affected].sum(axis=1).mean() - per_frame) < 4.0 * spread
    # Each is at the place of another one, and all places stay taken.
    for k in np.flatnonzero(affected) + 1:
        rows = slice(k * n, (k + 1) * n)
        assert sorted(measurement.true_ids[rows]) == measurement.ids[rows].tolist()
    place = dict(zip(measurement.ids[:n].tolist(), measurement.true_pixels[:n], strict=True))
    true_place = np.array([place[number] for number in measurement.true_ids.tolist()])
    assert np.abs(measurement.pixels - true_place).max() < 1e-9
    # A mismatch is an event of its own frame: what was there before is what was measured there.
    assert np.abs(measurement.previous[n:] - measurement.true_pixels[n:]).max() < 1e-9


def test_error_sources_do_not_affect_each_other() -> None:
    plain = measured(camera(noise_std=(0.5, 0.5)), cloud(40))
    wrong = Mismatches(frames=1.0, features=0.5)
    mixed = measured(camera(noise_std=(0.5, 0.5), mismatches=wrong), cloud(40))
    right = mixed.ids == mixed.true_ids
    assert 0.4 < right.mean() < 0.7
    assert (mixed.pixels[right] == plain.pixels[right]).all()
    assert (mixed.previous[mixed.age > 0] == plain.previous[plain.age > 0]).all()
    # A landmark that is not found takes no other's noise.
    sparse = measured(camera(noise_std=(0.5, 0.5), missed=0.3), cloud(40))
    frames = np.repeat(np.arange(60), np.diff(plain.first)) * 1000 + plain.ids
    in_both = np.isin(frames, np.repeat(np.arange(60), np.diff(sparse.first)) * 1000 + sparse.ids)
    assert (sparse.pixels == plain.pixels[in_both]).all()


def test_stepwise_simulation_equals_one_run_bit_for_bit() -> None:
    wrong = Mismatches(frames=0.4, features=0.3)
    model = camera(noise_std=(0.5, 0.7), missed=0.1, mismatches=wrong, pose=PoseEstimate())
    truth = swaying(30)
    whole = model.start(2, 'run', world=board(4, 4)).measure(truth)
    assert whole.has_pose.sum() > 12
    for cuts in ([1] * 30, [1, 7, 15, 7], [0, 29, 0, 1]):
        sensor = model.start(2, 'run', world=board(4, 4))
        start, parts = 0, []
        for cut in cuts:
            parts.append(sensor.measure(truth._take(np.arange(start, start + cut))))
            start += cut
        for field in dataclasses.fields(CameraMeasurement):
            pieces = [getattr(part, field.name) for part in parts]
            if field.name == 'first':
                pieces = [np.diff(piece) for piece in pieces]
                expected = np.diff(whole.first)
            else:
                expected = getattr(whole, field.name)
            assert np.concatenate(pieces).tobytes() == expected.tobytes(), field.name


def test_normalised_squared_pose_errors_are_chi_square_distributed() -> None:
    """Mean of the squared normalised errors of the body's poses: 99.9 % band of chi-square."""
    model = camera(noise_std=(0.3, 0.3), pose=PoseEstimate())
    frames = 60
    truth = swaying(frames)
    measurement = model.start(6, 'run', world=cloud(60)).measure(truth)
    assert measurement.has_pose.all()
    turn = Rotation.from_quat(measurement.orientation)
    turn *= Rotation.from_quat(truth.orientation).inv()
    errors = np.concatenate([measurement.position - truth.position, turn.as_rotvec()], axis=1)
    squares = np.einsum(
        'ni,ni->n', errors, np.linalg.solve(measurement.pose_covariance, errors[..., None])[..., 0]
    )
    low, high = stats.chi2.interval(0.999, 6 * frames)
    assert low < squares.sum() < high


def test_poses_have_the_stamps_of_the_features_they_were_estimated_from() -> None:
    delivery = Delivery(jitter=0.01, drop_out=0.3)
    options = {'pose': PoseEstimate(), 'latency': 0.05, 'delivery': delivery}
    model = camera(noise_std=(0.2, 0.2), **options)
    motion = swaying(60)
    whole = cameras.simulate(
        dataclasses.replace(model, delivery=Delivery()), motion, seed=1, run='r', world=board()
    )
    sent = cameras.simulate(model, motion, seed=1, run='r', origin_ns=10**18, world=board())
    assert whole.features.stamp_ns[:3].tolist() == [0, 33333333, 66666667]
    assert (whole.features.arrival_ns - whole.features.stamp_ns == 50_000_000).all()
    assert 20 < len(sent.features) < 55
    assert set(sent.poses.stamp_ns.tolist()) == set(sent.features.stamp_ns.tolist())
    assert (sent.poses.arrival_ns == sent.features.arrival_ns).all()
    assert (sent.poses.frame, sent.features.frame) == ('map', 'camera_optical_frame')
    # Lost frames do not change the others.
    rows = np.isin(whole.features.stamp_ns, sent.features.stamp_ns - 10**18)
    assert (whole.features.take(rows).pixels == sent.features.pixels).all()
    assert (whole.poses.take(rows).position == sent.poses.position).all()


def test_wrong_parameters_of_a_camera_are_refused() -> None:
    for mapping, key in (
        ({'mismatches': {'frames': 1.5}}, 'mismatches.frames'),
        ({'focal': 3}, 'focal'),
    ):
        with pytest.raises(ParameterError, match=key):
            CameraModel.from_mapping(mapping, 'camera.yaml')


def test_ids_that_collide_or_exceed_31_bits_are_refused() -> None:
    tag = Tags(np.array([0]), np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0, 1.0]]), np.ones(1))
    mark = Landmarks(np.array([FIRST_TAG_ID]), np.zeros((1, 3)))
    with pytest.raises(SensorError, match=str(FIRST_TAG_ID)):
        Scene.from_world(World(landmarks=mark, tags=tag))
    with pytest.raises(SensorError, match='4294967296'):
        Scene.from_world(World(landmarks=Landmarks(np.array([2**32]), np.zeros((1, 3)))))


def test_times_before_the_latest_measurement_are_refused() -> None:
    sensor = camera().start(0, 'run', world=board())
    sensor.measure(swaying(3))
    with pytest.raises(MotionError):
        sensor.measure(swaying(3))
