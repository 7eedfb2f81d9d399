# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Readers of files and messages with valid inputs, which fuzzing.py changes."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from cli_examples import pictures_left_blank
from recording_examples import drive

from sim2real_eval import read_recording, run_judge, simulate, write_recording
from sim2real_eval.characterization.data_sheet import read_sheet
from sim2real_eval.characterization.signal_files import read_signals
from sim2real_eval.cli.main import main as sim2real
from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.external.declaration import RosStack
from sim2real_eval.judge.inertial.settings import InertialSettings
from sim2real_eval.judge.robot_localization.configuration import FilterConfig, NavsatConfig
from sim2real_eval.judge.robot_localization.live import LiveJudge
from sim2real_eval.judge.robot_localization.rehearsal import rehearse
from sim2real_eval.judge.robot_localization.replay_options import ReplayOptions
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.series import VelocitySeries, read_series, write_series
from sim2real_eval.preflight import check
from sim2real_eval.recording.cdr import decode, encode
from sim2real_eval.recording.message_types import MESSAGE_TYPES, MessageType
from sim2real_eval.recording.metadata import FrameTree, TransformFile
from sim2real_eval.recording.poses import read_trajectory
from sim2real_eval.recording.recording import Recording
from sim2real_eval.report.study_report import study_report
from sim2real_eval.study.gate import GatedResult, GateOptions, judge_result
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.study_file import StudyFile
from sim_sensors import motion_of
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import (
    FixArray,
    MessageArray,
    OdometryArray,
    PoseArray,
    TwistArray,
)
from sim_sensors.core.shipped import config_path
from sim_sensors.live import LiveOdometry, LiveSensor
from sim_sensors.motion.waypoints import read_waypoints
from sim_sensors.sensor.catalogue import KINDS, kinds
from sim_sensors.sensor.sensor import SensorModel
from sim_sensors.world.world import load_world

TAKEN = ('/imu/data', '/gps/fix', '/pose', '/cmd_vel')
"""Topics that a live judge subscribes to: measurements, poses and commands."""
TRUTH = '/ground_truth/odometry'

SHEETS = Path(__file__).parents[1] / 'docs' / 'howto' / 'sheets'


@dataclasses.dataclass(frozen=True)
class Target:
    """A reader, and inputs that it takes.

    `seeds` are whole files, or folders of which one file is changed at a time.
    """

    name: str
    seeds: Sequence[Path]
    read: Callable[[Path], object]


def targets(folder: Path) -> list[Target]:
    """Return all readers; `folder` is for the recordings that they begin with."""
    recording = drive(40)
    for storage in ('mcap', 'sqlite3', 'csv'):
        write_recording(recording, folder / storage, storage=storage)
    (folder / 'csv' / 'recording.yaml').write_text(
        'name: one\nscenario: line\nlever_arms: {imu: [0.1, 0, 0.2]}\n'
        'corrections: {imu: {rate_scale: 0.5}}\ntruth: {low_pass: 12}\n'
        'transforms:\n- {parent: base_link, child: imu_link, translation: [0, 0, 1]}\n'
    )
    texts = {
        'way.csv': 't,x,y,theta\n' + ''.join(f'{t},{t * 0.5},{t * t},0.1\n' for t in range(9)),
        'truth.tum': ''.join(f'{t}.5 {t} 0 1 0 0 0 1\n' for t in range(9)),
        'truth.kitti': '1 0 0 1 0 1 0 2 0 0 1 3\n' * 5,
        'robot.urdf': '<robot name="a"><link name="base_link"/><link name="imu_link"/><joint '
        'name="j" type="fixed"><parent link="base_link"/><child link="imu_link"/>\n'
        '<origin xyz="0 0 1" rpy="0 0.1 0"/></joint></robot>',
        'transforms.yaml': '- parent: base_link\n  child: imu_link\n  translation: [0, 0, 1]\n'
        '  rotation_xyzw: [0, 0, 0, 1]\n',
        'case.yaml': 'latency: {/gps/fix: 0.2}\ncorrect: [gravity]\n',
        'estimator.yaml': 'command: ekf --ros-args\ninputs: {gps: gps/fix, imu: {topic: imu}}\n'
        'output: {topic: odometry/filtered}\nframes: {base: base_link}\nreset: /reset\n'
        'clock: {step: 0.01}\nparameters: {frequency: 50.0}\n',
        'signals.csv': 't,gx,gy,gz,ax,ay,az\n'
        + ''.join(f'{t / 100},0.1,0.2,{t % 7},0,0.{t % 5},9.8\n' for t in range(60)),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    files = {name: [folder / name] for name in texts}
    series = VelocitySeries([0.0, 0.1, 0.2], [1.0, 1.1, 1.2], [0.0, 0.1, 0.2], [1.0, 1.2, 1.1])
    write_series(folder / 'series.csv', series)
    motion = motion_of('circle', duration=2.2)
    judges = shipped('judge')
    wired, truth = serialised(recording, folder), recording.require('truth')
    setup = JudgeSetup.load('clean')
    judge = LiveJudge(setup.filter, setup.navsat, FrameTree([], assume_identity=True))
    rehearse(setup.filter, setup.navsat)
    return [
        *(Target(storage, [folder / storage], judged) for storage in ('mcap', 'sqlite3', 'csv')),
        *(
            Target(
                f'{kind.name} model', shipped(kind.name), functools.partial(measured, kind, motion)
            )
            for kind in kinds()
        ),
        Target('world', shipped('worlds'), load_world),
        Target('filter', [p for p in judges if 'navsat' not in p.name], FilterConfig.from_file),
        Target('navsat', [p for p in judges if 'navsat' in p.name], NavsatConfig.from_file),
        Target('study', shipped('studies'), StudyFile.read),
        Target('case', files['case.yaml'], ReplayOptions.from_file),
        Target('inertial', shipped('inertial'), InertialSettings.load),
        Target('waypoints', files['way.csv'], read_waypoints),
        Target('trajectory', files['truth.tum'] + files['truth.kitti'], read_trajectory),
        Target('urdf', files['robot.urdf'] + files['transforms.yaml'], TransformFile.from_file),
        Target('estimator', files['estimator.yaml'], RosStack.from_file),
        Target('signals', files['signals.csv'], read_signals),
        Target('sheet', sorted(SHEETS.glob('*.yaml')), read_sheet),
        Target('series', [folder / 'series.csv'], read_series),
        Target('result', [study_record(folder)], gate_and_report),
        Target(
            'message to a judge',
            [wired[topic] for topic in TAKEN],
            functools.partial(heard, recording=recording, judge=judge),
        ),
        Target('odometry to a sensor', [wired[TRUTH]], functools.partial(sensed, truth=truth)),
    ]


def shipped(kind: str) -> list[Path]:
    """Return the configuration files of a kind."""
    return sorted(config_path(kind).glob('*.yaml'))


def judged(path: Path) -> None:
    """Read a recording, check it, and run the default judge on it."""
    recording = read_recording(path)
    check(recording)
    run_judge(recording)


def measured(kind: type[SensorModel[Any]], motion: Any, path: Path) -> None:
    """Load a model and measure with it: what is accepted has to give finite numbers."""
    model = kind.load(path)
    if getattr(model, 'rate', 1.0) > 2000.0:
        return
    world = 'tag_ring' if kind.name == 'vision' else 'default'
    sees = kind.name in ('mag', 'camera', 'vision')
    surroundings = {'world': load_world(world)} if sees else {}
    messages = kind.simulate(model, motion, seed=1, run='1', **surroundings)
    if isinstance(messages, MessageArray):
        for field in dataclasses.fields(messages):
            values = getattr(messages, field.name)
            if isinstance(values, np.ndarray) and values.dtype.kind == 'f':
                assert not np.isinf(values).any(), f'{field.name} is infinite'


def study_record(folder: Path) -> Path:
    """Compare a model with two drives; return the record of the study."""
    out = folder / 'study'
    drives = []
    for name in ('line', 'half_sine'):
        drive = simulate(motion_of(name, duration=6.0), 'zed_f9p_rtk', 'chrono', name=name)
        write_recording(drive, folder / name)
        drives.append(str(folder / name))
    words = ['--models', 'ch_gauss', '--resamples', '200', '--jobs', '1', '--quiet']
    with pictures_left_blank(), contextlib.redirect_stdout(io.StringIO()):
        assert sim2real(['vepd', *drives, *words, '--out', str(out)]) == 0
    return out / 'study.json'


def gate_and_report(path: Path) -> None:
    """Read the record of a study, hold it against a limit, and make its page."""
    judge_result(GatedResult.read(path), GateOptions(max_vepd=0.5))
    study_report(StudyOutcome.read(path), path.parent)


def serialised(recording: Recording, folder: Path) -> dict[str, Path]:
    """Write a message of each kind that nodes take, as it comes over the wire, by its topic."""
    files = {}
    for topic in (*TAKEN, TRUTH):
        array = recording.messages[topic]
        files[topic] = folder / f'{topic.strip("/").replace("/", "_")}.cdr'
        files[topic].write_bytes(encode(wire_type(array), array.take([1]), topic)[0])
    return files


def wire_type(array: MessageArray) -> MessageType:
    """Return the type of ROS whose messages an array holds."""
    return next(kind for kind in MESSAGE_TYPES.values() if kind.array is type(array))


def received(path: Path, kind: MessageType, now_ns: int) -> MessageArray:
    """Decode a message that arrives now; one from the future is refused, as by the node."""
    array = decode(kind, [path.read_bytes()], np.array([now_ns]), path.name).array
    if array.stamp_ns[0] - now_ns > 10**10:
        raise JudgeError(f'{path.name}: stamped ahead of the clock')
    return array


def send_message(live: LiveJudge, topic: str, array: MessageArray, now_ns: int) -> None:
    """Let a judge have a message, as its node does."""
    if isinstance(array, FixArray):
        live.receive_fix(array)
    elif isinstance(array, PoseArray):
        live.set_pose(array, now_ns)
    elif isinstance(array, TwistArray):
        live.receive_command(array)
    else:
        live.receive('imu0', array)


def heard(path: Path, recording: Recording, judge: LiveJudge) -> None:
    """Give a live judge a changed message among good ones: its estimates are numbers again when
    more good ones have come.
    """
    judge.reset()
    topic = next(name for name in TAKEN if name.strip('/').replace('/', '_') == path.stem)
    refused = None
    estimates = []
    for number in range(16):
        for name in TAKEN[:2]:
            array = recording.messages[name]
            now_ns = int(recording.messages[TAKEN[0]].stamp_ns[number])
            if (array.stamp_ns == now_ns).any():
                send_message(judge, name, array.take(array.stamp_ns == now_ns), now_ns)
        if number == 6:
            try:
                kind = wire_type(recording.messages[topic])
                send_message(judge, topic, received(path, kind, now_ns), now_ns)
            except Sim2RealError as error:
                refused = error
        judge.navsat_tick()
        estimates.append(judge.tick(now_ns))
    last = [estimate for estimate in estimates if estimate is not None][-1]
    assert np.isfinite(last.position).all()
    assert np.isfinite(last.linear_velocity).all()
    assert np.isfinite(last.pose_covariance).all()
    if refused is not None:
        raise refused


def sensed(path: Path, truth: OdometryArray) -> None:
    """Give a live sensor a changed odometry message among good ones: it measures finite values."""
    model = KINDS.get('imu').load('chrono')
    odometry = LiveOdometry(velocity='auto', gap_factor=5.0, longest_gap=1.0)
    sensor: LiveSensor[Any] = LiveSensor(lambda: model.start(1, '1'), 100.0, odometry)
    refused = None
    for number in range(len(truth)):
        sensor.push(truth.take([number]))
        if number == 8:
            try:
                sensor.push(received(path, wire_type(truth), int(truth.stamp_ns[number])))
            except Sim2RealError as error:
                refused = error
        for stamp_ns, measured in sensor.measure():
            messages = measured.messages(stamp_ns, 'imu_link')
            assert np.isfinite(messages.linear_acceleration).all()
    if refused is not None:
        raise refused
