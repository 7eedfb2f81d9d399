# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Fixes on their way to the filter: world transform, timer and refusals."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from judge_examples import (
    START_NS,
    YAW,
    filter_config,
    fixes,
    imu,
    mask,
    navsat_config,
    recording,
    stamps,
)
from pyproj import Geod
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.robot_localization.configuration import NavsatConfig
from sim2real_eval.judge.robot_localization.embedded import judge
from sim2real_eval.judge.robot_localization.fixes import new_navsat, to_utm
from sim2real_eval.judge.robot_localization.navsat import (
    Navsat,
    NavsatState,
    lost_fixes,
    new_navsat_state,
    receive_fix,
    receive_heading,
    receive_odometry,
    tick,
)
from sim2real_eval.judge.robot_localization.replay_options import Clock, ReplayOptions
from sim2real_eval.recording.recording import Recording, StaticTransform

GEOD = Geod(ellps='WGS84')
POSITION = {'odom0': 'odometry/gps', 'odom0_config': mask('x', 'y')}


def east_drive(rate: float, speed: float = 2.0, seconds: float = 10.0) -> tuple[np.ndarray, ...]:
    """Stamps, latitudes and longitudes of a geodesic to the east from (43, -89.4)."""
    stamp_ns = stamps(rate, seconds)
    distance = speed * (stamp_ns - START_NS) * 1e-9
    n = len(stamp_ns)
    start = np.full(n, -89.4), np.full(n, 43.0)
    longitude, latitude, _ = GEOD.fwd(*start, np.full(n, 90.0), distance)
    return stamp_ns, np.asarray(latitude), np.asarray(longitude)


def run(
    folder: Path,
    *,
    fix_rate: float = 10.0,
    yaw: float = 0.0,
    attitude: bool = True,
    transforms: tuple[StaticTransform, ...] = (),
    clock: Clock = Clock(),  # noqa: B008
    status: int = 0,
    **navsat: object,
) -> JudgedRun:
    stamp_ns, latitude, longitude = east_drive(fix_rate)
    run = recording(
        {
            'imu': imu(stamps(100.0, 10.0), yaw=yaw, attitude=attitude),
            'fix': fixes(stamp_ns, latitude, longitude, status=status),
        },
        transforms,
    )
    config = filter_config(folder, two_d_mode=True, frequency=50.0, **POSITION, **YAW)
    return judge(run, config, navsat_config(folder, **navsat), ReplayOptions(clock))


def steps_of(judged: JudgedRun) -> np.ndarray:
    """Mean velocity of the positions that navsat_transform published."""
    span = (judged.gps_stamp_ns[-1] - judged.gps_stamp_ns[0]) * 1e-9
    return (judged.gps_position[-1] - judged.gps_position[0]) / span


def test_an_eastward_drive_is_estimated_as_eastward(tmp_path: Path) -> None:
    """2 m/s along +x; the UTM plane is 0.04 % small here, and turned by the convergence."""
    judged = run(tmp_path, zero_altitude=True)
    velocity = steps_of(judged)
    _, _, convergence = to_utm(np.array([43.0]), np.array([-89.4]))
    assert np.hypot(velocity[0], velocity[1]) == pytest.approx(2.0, rel=6e-4)
    heading = math.atan2(velocity[1], velocity[0])
    # The transform takes the convergence off the grid, so that x is true east.
    assert abs(heading) < 1e-5 < abs(convergence[0])
    assert not judged.gps_position[:, 2].any()


@pytest.mark.parametrize(
    ('extra', 'turn'),
    [
        ({}, 0.0),
        ({'yaw_offset': 0.5}, -0.5),
        ({'magnetic_declination_radians': 0.25}, -0.25),
        ({'yaw_offset': 0.5, 'magnetic_declination_radians': 0.25}, -0.75),
    ],
)
def test_offsets_are_added_to_the_heading(
    tmp_path: Path, extra: dict[str, float], turn: float
) -> None:
    """A heading that is larger by an offset turns the track by the opposite."""
    velocity = steps_of(run(tmp_path, zero_altitude=True, **extra))
    assert math.atan2(velocity[1], velocity[0]) == pytest.approx(turn, abs=1e-5)


def test_the_track_is_rotated_by_the_yaw_of_the_filter_minus_the_heading(tmp_path: Path) -> None:
    """The filter's yaw comes from the same IMU here, so both agree and the track stays."""
    velocity = steps_of(run(tmp_path, yaw=1.0, zero_altitude=True))
    assert math.atan2(velocity[1], velocity[0]) == pytest.approx(0.0, abs=1e-5)


def test_the_yaw_of_the_mounting_is_subtracted_from_the_heading(tmp_path: Path) -> None:
    """An IMU that is mounted turned by 0.3 rad reports 1.3 when the robot heads 1.0."""
    turned = (0.0, 0.0, math.sin(0.15), math.cos(0.15))
    transforms = (
        StaticTransform('base_link', 'imu_link', rotation=turned),
        StaticTransform('base_link', 'gps_link'),
    )
    velocity = steps_of(run(tmp_path, yaw=1.3, transforms=transforms, zero_altitude=True))
    assert math.atan2(velocity[1], velocity[0]) == pytest.approx(0.0, abs=1e-5)


def test_an_absent_orientation_is_interpreted_as_heading_east(tmp_path: Path) -> None:
    """The original ignores the covariance of -1; a finding reports it."""
    absent = run(tmp_path, yaw=0.0, attitude=False)
    present = run(tmp_path, yaw=0.0)
    assert absent.gps_position.tobytes() == present.gps_position.tobytes()
    assert any(note.code == 'rl.navsat_no_heading' for note in absent.notes)
    assert not any(note.code == 'rl.navsat_no_heading' for note in present.notes)


def test_the_first_tick_publishes_nothing(tmp_path: Path) -> None:
    """The tick at 120 ms sets the transform from the fix at 100 ms; the next publishes a fix."""
    judged = run(tmp_path)
    assert (judged.gps_stamp_ns[:3] - START_NS).tolist() == [200_000_000, 300_000_000, 400_000_000]
    # Its position is relative to the datum, where the odometry was then.
    assert judged.gps_position[0, 0] == pytest.approx(0.2, rel=1e-2)


def test_fixes_slower_than_the_timer_are_published_one_tick_later(tmp_path: Path) -> None:
    """1 Hz fixes, 10 Hz timer: the fix that set the transform is published at the next tick."""
    judged = run(tmp_path, fix_rate=1.0)
    assert (judged.gps_stamp_ns[:2] - START_NS).tolist() == [0, 1_000_000_000]


def test_a_10_hz_timer_uses_half_of_the_fixes_of_a_20_hz_receiver(tmp_path: Path) -> None:
    judged = run(tmp_path, fix_rate=20.0)
    assert 97 <= len(judged.gps_stamp_ns) <= 100
    # The last fix has no successor that could overtake it.
    assert (np.diff(judged.gps_stamp_ns[:-1]) == 100_000_000).all()
    assert len(run(tmp_path, fix_rate=20.0, frequency=50.0).gps_stamp_ns) >= 197


def test_the_phase_of_the_timer_can_be_set(tmp_path: Path) -> None:
    """Ticks 1 ms before each fix see the fix of 99 ms earlier; the filter gets it later."""
    early = Clock(navsat_origin_ns=START_NS - 1_000_000)
    late = Clock(navsat_origin_ns=START_NS + 1_000_000)
    assert run(tmp_path, clock=early).gps_stamp_ns[0] == START_NS + 100_000_000
    assert run(tmp_path, clock=late).gps_stamp_ns[0] == START_NS + 200_000_000


def ticked(node: Navsat, memory: NavsatState) -> tuple[int, list[float]]:
    """Run the timer once."""
    position = np.zeros(3)
    fix = tick(node, memory, position, np.zeros((6, 6)))
    return fix, position.tolist()


def node_with_a_transform(*, publish_filtered_gps: bool) -> tuple[Navsat, NavsatState]:
    """A node that has published fix 0, with three fixes 1 m apart to the east."""
    config = NavsatConfig(publish_filtered_gps=publish_filtered_gps)
    node = new_navsat(config, 3)
    node.fixes['easting'] = np.arange(3.0)
    memory = new_navsat_state()
    receive_heading(node, memory, np.array([0.0, 0.0, 0.0, 1.0]))
    receive_fix(node, memory, 0)
    assert ticked(node, memory)[0] == -1
    receive_odometry(node, memory, np.zeros(6))
    assert ticked(node, memory)[0] == -1
    receive_odometry(node, memory, np.zeros(6))
    assert ticked(node, memory)[0] == 0
    return node, memory


def test_a_fix_waits_for_a_new_filtered_odometry() -> None:
    """It is published once, relative to the odometry at which the transform was fixed."""
    node, memory = node_with_a_transform(publish_filtered_gps=False)
    receive_fix(node, memory, 2)
    assert ticked(node, memory)[0] == -1
    receive_odometry(node, memory, np.ones(6))
    assert ticked(node, memory) == (2, [2.0, 0.0, 0.0])
    assert ticked(node, memory)[0] == -1


@pytest.mark.parametrize(('publish', 'passed_on'), [(False, 1), (True, -1)])
def test_publishing_filtered_gps_consumes_the_odometry_at_every_tick(
    publish: bool, passed_on: int
) -> None:
    """An odometry before an empty tick is not used for the fix after it."""
    node, memory = node_with_a_transform(publish_filtered_gps=publish)
    receive_odometry(node, memory, np.zeros(6))
    assert ticked(node, memory)[0] == -1
    receive_fix(node, memory, 1)
    assert ticked(node, memory)[0] == passed_on


def test_a_replaced_fix_is_counted_as_dropped_once_the_transform_is_fixed() -> None:
    node, memory = node_with_a_transform(publish_filtered_gps=False)
    receive_fix(node, memory, 1)
    assert lost_fixes(memory) == 0
    receive_fix(node, memory, 2)
    assert lost_fixes(memory) == 1


def test_the_covariance_is_rotated_with_the_track(tmp_path: Path) -> None:
    """diag(1e-4, 2e-4, 3e-4) turned by -0.5 rad and the convergence: R C R', rest zero."""
    judged = run(tmp_path, yaw_offset=0.5)
    _, _, convergence = to_utm(np.array([43.0]), np.array([-89.4]))
    R = Rotation.from_euler('z', -0.5 - convergence[0]).as_matrix()
    expected = np.zeros((6, 6))
    expected[:3, :3] = R @ np.diag([1e-4, 2e-4, 3e-4]) @ R.T
    np.testing.assert_allclose(judged.gps_covariance[3], expected, atol=1e-7)
    # The turn is exact up to the yaw that the filter had settled on.
    assert judged.gps_covariance[3, 0, 1] != 0.0


def test_with_use_odometry_yaw_the_heading_is_that_of_the_filter(tmp_path: Path) -> None:
    """Only the convergence turns the track; the IMU has no effect."""
    velocity = steps_of(run(tmp_path, yaw=0.7, use_odometry_yaw=True, zero_altitude=True))
    assert math.atan2(velocity[1], velocity[0]) == pytest.approx(0.0, abs=1e-5)


def test_messages_without_a_fix_are_ignored(tmp_path: Path) -> None:
    judged = run(tmp_path, status=-1)
    assert len(judged.gps_stamp_ns) == 0
    codes = {note.code for note in judged.notes}
    assert {'navsat.messages_without_fix', 'navsat.no_fix'} <= codes


def wrong_places(places: dict[int, tuple[float, float]], rate: float = 10.0) -> Recording:
    """Recording of a drive to the east with some fixes at other places."""
    stamp_ns, latitude, longitude = east_drive(rate)
    for index, (north, east) in places.items():
        latitude[index], longitude[index] = north, east
    messages = fixes(stamp_ns, latitude, longitude)
    return recording({'imu': imu(stamps(100.0, 10.0)), 'fix': messages})


@pytest.mark.parametrize(
    'place', [(0.0, 0.0), (48.0, 11.0), (43.0, -80.0), (-43.0, 90.0)], ids=str
)
def test_fixes_outside_the_zone_are_dropped_and_told(
    tmp_path: Path, place: tuple[float, float]
) -> None:
    """As navsat_transform does; the estimate is that without these messages."""
    config = filter_config(tmp_path, two_d_mode=True, frequency=50.0, **POSITION, **YAW)
    navsat = navsat_config(tmp_path)
    judged = judge(wrong_places(dict.fromkeys((40, 41, 77), place)), config, navsat)
    (note,) = [note for note in judged.notes if note.code == 'navsat.fixes_beyond_zone']
    assert (note.numbers['dropped'], note.numbers['fixes']) == (3, 100)
    assert (note.numbers['latitude'], note.numbers['longitude']) == place
    assert np.abs(judged.position).max() < 30.0
    whole = wrong_places({})
    kept = whole.messages['fix'].take(np.delete(np.arange(100), [40, 41, 77]))
    without = judge(whole.with_messages('gps', kept), config, navsat)
    np.testing.assert_array_equal(judged.position, without.position)


def test_a_first_fix_far_from_the_others_is_named(tmp_path: Path) -> None:
    """As in navsat_transform, its zone is kept, and the others are outside it."""
    config = filter_config(tmp_path, two_d_mode=True, frequency=50.0, **POSITION, **YAW)
    judged = judge(wrong_places({0: (48.0, 11.0)}), config, navsat_config(tmp_path))
    (note,) = [note for note in judged.notes if note.code == 'navsat.most_beyond_zone']
    assert (note.numbers['dropped'], note.numbers['latitude']) == (99, 48.0)
    # One of the remedies: a tangent plane, with which nothing is dropped.
    again = judge(
        wrong_places({0: (48.0, 11.0)}), config, navsat_config(tmp_path, use_local_cartesian=True)
    )
    assert not [note for note in again.notes if 'beyond_zone' in note.code]


def test_a_place_without_utm_zone_is_refused(tmp_path: Path) -> None:
    config = filter_config(tmp_path, **POSITION, **YAW)
    arctic = wrong_places(dict.fromkeys(range(100), (86.0, 15.0)))
    with pytest.raises(JudgeError, match='use_local_cartesian'):
        judge(arctic, config, navsat_config(tmp_path))
    judge(arctic, config, navsat_config(tmp_path, use_local_cartesian=True))


def test_a_recording_without_fixes_is_refused(tmp_path: Path) -> None:
    only_imu = recording({'imu': imu(stamps(100.0, 1.0))})
    with pytest.raises(JudgeError, match='needs fixes'):
        judge(only_imu, filter_config(tmp_path, **POSITION), navsat_config(tmp_path))


def test_fixes_of_unknown_status_are_used(tmp_path: Path) -> None:
    """The status is -2 in messages in which nobody set it."""
    assert len(run(tmp_path, status=-2).gps_stamp_ns) == len(run(tmp_path).gps_stamp_ns) > 0


@pytest.fixture
def no_imu() -> Recording:
    stamp_ns, latitude, longitude = east_drive(10.0)
    return recording({'fix': fixes(stamp_ns, latitude, longitude)})


def test_a_run_without_heading_publishes_no_fix(tmp_path: Path, no_imu: Recording) -> None:
    """It is refused without an IMU; with use_odometry_yaw and no other sensor nothing starts."""
    config = filter_config(tmp_path, **POSITION)
    with pytest.raises(JudgeError, match='use_odometry_yaw'):
        judge(no_imu, config, navsat_config(tmp_path))
    judged = judge(no_imu, config, navsat_config(tmp_path, use_odometry_yaw=True))
    assert len(judged) == len(judged.gps_stamp_ns) == 0
    assert any(note.code == 'navsat.fixes_unused' for note in judged.notes)


def test_gps_odometry_without_navsat_parameters_is_refused(
    tmp_path: Path, no_imu: Recording
) -> None:
    with pytest.raises(JudgeError, match='navsat_transform_node'):
        judge(no_imu, filter_config(tmp_path, **POSITION))


@pytest.mark.parametrize(('known', 'missing'), [('imu', 'gps'), ('gps', 'imu')])
def test_unknown_frames_are_refused(tmp_path: Path, known: str, missing: str) -> None:
    """No transform is assumed if the recording has some."""
    with pytest.raises(JudgeError, match=f"'{missing}_link' to 'base_link'"):
        run(tmp_path, transforms=(StaticTransform('base_link', f'{known}_link'),))
