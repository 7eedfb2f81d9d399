# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""docs/howto/simulators.md: a bag laid out as each section says becomes what it should be.

The bags have the topics, frames and axes of the simulators and the motion of a circle; what is
read with the command and the recording.yaml of a section must be that motion in the axes of ROS.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from recording_examples import TYPESTORE
from rosbags.rosbag2 import StoragePlugin, Writer
from scipy.spatial.transform import Rotation

from sim2real_eval.cli.parser import build_parser
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim2real_eval.study.options import PROFILE, StudyOptions
from sim2real_eval.study.run_plan import Judging, RunPlan, one_sided_covariances
from sim_sensors.gps.gps import load_gps
from sim_sensors.gps.gps import simulate as simulate_gps
from sim_sensors.imu.imu import ImuModel, load_imu
from sim_sensors.imu.imu import simulate as simulate_imu
from sim_sensors.imu.models import IdealImu
from sim_sensors.imu.orientation import Orientation
from sim_sensors.motion.motions import truth_of
from sim_sensors.motion.scenarios import Circle

PAGE = Path(__file__).parents[1] / 'docs' / 'howto' / 'simulators.md'
SECTIONS = dict(re.findall(r'^## (.+?)\n(.*?)(?=^## |\Z)', PAGE.read_text('utf-8'), re.M | re.S))
POSE = 'geometry_msgs/msg/PoseStamped'
ODOMETRY = 'nav_msgs/msg/Odometry'
ORIGIN_NS = 1_700_000_000_000_000_000
EXACT = IdealImu(orientation=Orientation(mode='truth'))
FRD = np.array([1.0, -1.0, -1.0])
NED = Rotation.from_matrix([[0, 1, 0], [1, 0, 0], [0, 0, -1]])
DOWN = Rotation.from_euler('x', np.pi)


@dataclasses.dataclass(frozen=True)
class Layout:
    """Frames of IMU, fix and truth (frame, child), type of the truth, and axes."""

    imu: str
    gps: str
    truth: tuple[str, str]
    kind: str = ODOMETRY
    imu_down: bool = False
    ned: bool = False
    status: int = 0
    imu_at: tuple[float, ...] = (0.0, 0.0, 0.0)
    gps_at: tuple[float, ...] = (0.0, 0.0, 0.0)


LAYOUTS = {
    'Isaac Sim': Layout('drone_base_link_frd', 'map_ned', ('map', ''), POSE, imu_down=True),
    'CARLA': Layout(
        'ego_vehicle/imu',
        'ego_vehicle/gnss',
        ('map', 'ego_vehicle'),
        imu_at=(2.0, 0.0, 2.0),
        gps_at=(1.0, 0.0, 2.0),
    ),
    'PX4 SITL': Layout('base_link', 'base_link', ('x500_0/odom', 'x500_0/base_footprint')),
    'AirSim': Layout(
        'Car', 'Car', ('Car', 'Car/odom_local_ned'), imu_down=True, ned=True, status=3
    ),
    'Chrono': Layout('imu', 'gps', ('chassis', ''), POSE),
    'Webots': Layout('imu', 'gps', ('odom', 'base_link')),
}


def line_of(section: str) -> list[str]:
    block = re.search(r'```sh\n(.*?)```', SECTIONS[section], re.S)[1]
    return shlex.split(block.replace('\\\n', ' '))[1:]


def topics_of(section: str) -> dict[str, str]:
    words = line_of(section)
    topics = [words[k + 1].split('=') for k, word in enumerate(words) if word == '--topic']
    return {'truth': '/ground_truth/odometry', **dict(topics)}


def drive_of(
    layout: Layout, imu: ImuModel = EXACT, gps: str = 'ch_rw', duration: float = 6.0
) -> SimpleNamespace:
    """Return the messages of a circle in ROS axes, with the sensors of a layout."""
    motion, labels = Circle(duration=duration, radius=3.0), {'seed': 5, 'run': 'a'}
    imu = dataclasses.replace(imu, lever_arm=layout.imu_at)
    gps = dataclasses.replace(load_gps(gps), lever_arm=layout.gps_at)
    return SimpleNamespace(
        imu=simulate_imu(imu, motion, origin_ns=ORIGIN_NS, **labels),
        gps=simulate_gps(gps, motion, origin_ns=ORIGIN_NS, **labels),
        truth=truth_of(motion, start_ns=ORIGIN_NS),
    )


def write_bag(section: str, path: Path, drive: SimpleNamespace) -> None:
    """Write a bag in the layout of a simulator; its IMU states no covariances."""
    layout, names = LAYOUTS[section], topics_of(section)
    types = TYPESTORE.types
    vector = lambda v: types['geometry_msgs/msg/Vector3'](*v)  # noqa: E731
    quaternion = lambda r: types['geometry_msgs/msg/Quaternion'](*r.as_quat())  # noqa: E731

    def header(stamp, frame):
        time = types['builtin_interfaces/msg/Time'](*(int(part) for part in divmod(stamp, 10**9)))
        return types['std_msgs/msg/Header'](time, frame)

    def attitude(q, *, down, ned):
        turn = Rotation.from_quat(q)
        return (NED if ned else Rotation.identity()) * turn * (DOWN if down else DOWN**0)

    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as bag:

        def add(role, kind, stamps, messages):
            connection = bag.add_connection(names[role], kind, typestore=TYPESTORE)
            for stamp, message in zip(stamps, messages, strict=True):
                bag.write(connection, int(stamp), TYPESTORE.serialize_cdr(message, kind))

        sign = FRD if layout.imu_down else np.ones(3)
        zeros = np.zeros(9)
        add('imu', 'sensor_msgs/msg/Imu', drive.imu.stamp_ns, (
            types['sensor_msgs/msg/Imu'](
                header(stamp, layout.imu),
                quaternion(attitude(q, down=layout.imu_down, ned=layout.ned)), zeros,
                vector(sign * rate), zeros, vector(sign * force), zeros,
            )
            for stamp, q, rate, force in zip(
                drive.imu.stamp_ns, drive.imu.orientation, drive.imu.angular_velocity,
                drive.imu.linear_acceleration, strict=True,
            )
        ))  # fmt: skip
        fixes = drive.gps
        status = types['sensor_msgs/msg/NavSatStatus'](layout.status, 1)
        add('gps', 'sensor_msgs/msg/NavSatFix', fixes.stamp_ns, (
            types['sensor_msgs/msg/NavSatFix'](
                header(stamp, layout.gps), status, *place, stated.ravel(), 0
            )
            for stamp, *place, stated in zip(
                fixes.stamp_ns, fixes.latitude, fixes.longitude, fixes.altitude,
                fixes.position_covariance, strict=True,
            )
        ))  # fmt: skip
        truth = drive.truth
        axes, sign = (NED, FRD) if layout.ned else (Rotation.identity(), np.ones(3))

        def true(k):
            pose = types['geometry_msgs/msg/Pose'](
                types['geometry_msgs/msg/Point'](*axes.apply(truth.position[k])),
                quaternion(attitude(truth.orientation[k], down=layout.ned, ned=layout.ned)),
            )
            head = header(truth.stamp_ns[k], layout.truth[0])
            if layout.kind == POSE:
                return types[POSE](head, pose)
            twist = types['geometry_msgs/msg/Twist'](
                vector(sign * truth.linear_velocity[k]), vector(sign * truth.angular_velocity[k])
            )
            return types[ODOMETRY](
                head, layout.truth[1],
                types['geometry_msgs/msg/PoseWithCovariance'](pose, np.zeros(36)),
                types['geometry_msgs/msg/TwistWithCovariance'](twist, np.zeros(36)),
            )  # fmt: skip

        add('truth', layout.kind, truth.stamp_ns, map(true, range(len(truth))))
    text = re.search(r'```yaml\n(.*?)```', SECTIONS[section], re.S)[1]
    (path / 'recording.yaml').write_text(text, 'utf-8')


def test_every_simulator_has_a_layout() -> None:
    """MuJoCo has none: its commands run here as they are on the page."""
    about_all = 'Give a simulator the noise of your sensor'
    assert set(SECTIONS) == {*LAYOUTS, 'MuJoCo', about_all}


@pytest.mark.parametrize('section', LAYOUTS)
def test_a_bag_in_the_layout_of_a_simulator_is_read_as_the_true_motion(
    section: str, tmp_path
) -> None:
    parsed = build_parser('vepd').parse_args(line_of(section))
    for name in parsed.models.split(','):
        load_gps(name)
    load_imu(parsed.imu)
    layout = LAYOUTS[section]
    drive = drive_of(layout)
    write_bag(section, tmp_path / 'bag', drive)
    read = read_recording(tmp_path / 'bag', topics=topics_of(section))
    pairs = (
        (read.truth.position, drive.truth.position, 1e-9),
        (read.imu.angular_velocity, drive.imu.angular_velocity, 1e-9),
        (read.imu.linear_acceleration, drive.imu.linear_acceleration, 1e-9),
        (read.truth.linear_velocity, drive.truth.linear_velocity, 1e-2),
        (read.gps.latitude, drive.gps.latitude, 0.0),
    )
    for converted, expected, within in pairs:
        np.testing.assert_allclose(converted, expected, atol=within, rtol=0)
    heading = [
        np.unwrap(Rotation.from_quat(messages.orientation).as_euler('xyz')[:, 2])
        for messages in (read.truth, read.imu, drive.truth)
    ]
    np.testing.assert_allclose(heading[0], heading[2], atol=1e-9)
    if section != 'Isaac Sim':  # which publishes no orientation
        np.testing.assert_allclose(heading[1], heading[2], atol=1e-9)
    assert not [note for note in read.notes if note.severity == 'decisive']
    maker = TwinMaker(read, seed=0)
    for frame, place in ((read.imu.frame, layout.imu_at), (read.gps.frame, layout.gps_at)):
        np.testing.assert_allclose(maker.mounting(frame)[0], place)


@pytest.mark.parametrize('section', LAYOUTS)
def test_the_models_of_a_simulator_are_nearest_to_its_data(section: str, tmp_path) -> None:
    """The sensors of the simulator, with the recording.yaml of the page, judged as by `vepd`."""
    parsed = build_parser('vepd').parse_args(line_of(section))
    names, imu = parsed.models.split(','), load_imu(parsed.imu)
    write_bag(section, tmp_path / 'bag', drive_of(LAYOUTS[section], imu, names[0], 12.0))
    real = read_recording(tmp_path / 'bag', topics=topics_of(section))
    twins = [Twin(name, load_gps(name), imu) for name in names]
    plan = RunPlan(real, twins, Judging(JudgeSetup.load(PROFILE), StudyOptions(seed=3)))
    scores = {run.model: plan.score(run, plan.judge(run)).score for run in plan}
    own_score, other_score = (
        abs(scores[name].rmse - scores['real'].rmse)
        + abs(scores[name].entropy_difference - scores['real'].entropy_difference)
        for name in names
    )
    assert own_score < 0.7 * other_score
    assert not one_sided_covariances(plan.maker.real, plan.recording(plan.twins[0]))
