# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""judge_node in a process of its own over DDS, in lockstep with simulated time."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')

from lifecycle_msgs.srv import ChangeState
from live_examples import (
    Published,
    arrivals,
    curve,
    estimate_bits,
    gps_bits,
    live_judge,
)  # fmt: skip
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from ros_judge_examples import Graph, Heard, Script, play, write_parameters
from std_srvs.srv import Empty, SetBool

from sim2real_eval.judge.external.graph import free_domain, private_context
from sim2real_eval.judge.robot_localization.advice import NO_MESSAGE
from sim2real_eval.judge.robot_localization.configuration import FilterConfig, NavsatConfig
from sim2real_eval.judge.robot_localization.embedded import judge
from sim2real_eval.judge.robot_localization.health import (
    ERROR,
    MESSAGES_REFUSED,
    NO_ESTIMATE,
    SEVERAL_PUBLISHERS,
    TOGGLED_OFF,
    WARN,
)
from sim2real_eval.judge.robot_localization.rehearsal import rehearse
from sim2real_eval.judge.robot_localization.replay_options import Clock, ReplayOptions
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.measurements import PoseArray

SECONDS = 1.6
STEP_NS = 10_000_000
# A quaternion without length.
NO_POSE = PoseArray(
    stamp_ns=[0], arrival_ns=[0], frame='odom', position=[[0.0, 0.0, 0.0]],
    orientation=[[0.0, 0.0, 0.0, 0.0]], pose_covariance=np.eye(6)[None],
)  # fmt: skip


@pytest.fixture(scope='module', autouse=True)
def isolated() -> Iterator[None]:
    with free_domain() as domain, private_context(domain):
        yield


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_parameters(tmp_path_factory.mktemp('judge_node'))


@pytest.fixture(scope='module')
def graph(folder: Path, run: Recording) -> Iterator[Graph]:
    # Compiles here, if at all, what the node would else compile while the test waits.
    rehearse(*configs(folder))
    graph = Graph(
        folder,
        [
            '--params-file', str(folder / 'params.yaml'), '-p', 'use_sim_time:=true',
            '-p', f'navsat_params_file:={folder}/navsat_params.yaml',
            '-p', f'static_transforms_file:={folder}/static_transforms.yaml',
        ],
    )  # fmt: skip
    yield graph
    graph.close()


@pytest.fixture(scope='module')
def run() -> Recording:
    return curve(SECONDS)


def configs(folder: Path) -> tuple[FilterConfig, NavsatConfig]:
    return (
        FilterConfig.from_file(folder / 'params.yaml'),
        NavsatConfig.from_file(folder / 'navsat_params.yaml'),
    )


def in_steps(folder: Path, run: Recording) -> tuple[Script, ReplayOptions]:
    """Return the recording with a clock of 100 Hz, and the options of the same batch run."""
    events = arrivals(live_judge(run, *configs(folder)), run, ReplayOptions())
    start, last = events[0][0], events[-1][0]
    script: Script = [('clock', start)]
    i, now = 0, start
    # run_on_ns of the case, cut to the grid of the clock.
    end = last + 100_000_000
    while now <= end:
        while i < len(events) and events[i][0] <= now:
            script.append(events[i][1:])
            i += 1
        if now > start:
            script.append(('clock', now))
        now += STEP_NS
    return script, ReplayOptions(clock=Clock(step_ns=STEP_NS, run_on_ns=100_000_000))


def assert_same(filtered: Heard, gps: Heard, expected: Published) -> None:
    odometry, positions = filtered.odometry, gps.odometry
    assert (odometry.frame, odometry.child_frame) == ('odom', 'base_link')
    assert (positions.frame, positions.child_frame) == ('odom', '')
    for received, rows, names in (
        (odometry, expected.filtered, (
            'stamp_ns', 'position', 'orientation', 'linear_velocity', 'angular_velocity',
            'pose_covariance', 'twist_covariance',
        )),
        (positions, expected.gps, ('stamp_ns', 'position', 'pose_covariance')),
    ):  # fmt: skip
        assert len(received) == len(rows)
        for name in names:
            published = np.concatenate([getattr(row, name) for row in rows])
            assert getattr(received, name).tobytes() == published.tobytes(), name
    assert (positions.orientation == [0.0, 0.0, 0.0, 1.0]).all()
    assert not positions.twist_covariance.any()


def test_the_node_equals_the_batch_run_bit_for_bit(
    graph: Graph, folder: Path, run: Recording
) -> None:
    """All inputs, navsat_transform, mounted sensors, and a subscriber that joins half-way."""
    script, case = in_steps(folder, run)
    config, navsat = configs(folder)
    expected = play(live_judge(run, config, navsat), script)
    judged = judge(run, config, navsat, case)
    assert estimate_bits(expected.filtered) + gps_bits(expected.gps) == b''.join(
        getattr(judged, name).tobytes()
        for name in (
            'stamp_ns', 'position', 'orientation', 'linear_velocity', 'angular_velocity',
            'pose_covariance', 'twist_covariance', 'tick_ns', 'gps_stamp_ns', 'gps_position',
            'gps_covariance',
        )
    )  # fmt: skip
    assert len(judged) > 40
    assert len(judged.gps_position) > 10
    half = len(script) // 2
    graph.play(script[:half])
    late = graph.listen('/odometry/filtered')
    status = graph.play(script[half:])
    assert_same(graph.filtered, graph.gps, expected)
    graph.until(lambda: len(graph.back.data) == len(expected.back) > 20)
    for name in ('stamp_ns', 'latitude', 'longitude', 'altitude', 'position_covariance'):
        array = getattr(graph.back.array, name)
        assert array.tobytes() == getattr(judged.filtered_fixes, name).tobytes(), name
    graph.until(lambda: late.data[-1:] == graph.filtered.data[-1:])
    assert late.data == graph.filtered.data[-len(late.data) :]
    assert len(late.data) < len(graph.filtered.data)
    assert {part['name']: part['fused'] for part in status['parts']} == {
        part.name: part.fused for part in judged.parts
    }
    assert {note['text'] for note in status['notes']} == set(map(str, judged.notes))


def test_a_clock_that_goes_back_resets_the_judge(
    graph: Graph, folder: Path, run: Recording
) -> None:
    """Repeated messages give the same bits, also if the clock pauses and jumps a second ahead."""
    script, _ = in_steps(folder, run)
    config, navsat = configs(folder)
    half = len(script) // 2
    stood: Script = [('clock', [t for name, t in script[:half] if name == 'clock'][-1])] * 5
    last = script[-1][1]
    script = script[:half] + stood + script[half:] + [('clock', last + 1_000_000_000)]
    script += [('clock', last + 1_000_000_000 + STEP_NS * k) for k in range(1, 6)]
    expected = play(live_judge(run, config, navsat), script)
    before = graph.status()
    filtered, gps = graph.listen('/odometry/filtered'), graph.listen('/odometry/gps')
    graph.reach(script[0][1], lambda status: bool(status['resets'] == before['resets'] + 1))
    graph.play(script[1:])
    assert_same(filtered, gps, expected)
    # The jump is predicted over at once, without making up for the ticks that it skipped.
    stamps = filtered.odometry.stamp_ns
    assert stamps[-1] > last + 1_000_000_000
    assert np.diff(stamps).max() > 900_000_000


def test_a_killed_node_restarts_without_its_previous_state(
    graph: Graph, folder: Path, run: Recording
) -> None:
    script, _ = in_steps(folder, run)
    config, navsat = configs(folder)
    script = script[len(script) // 2 :]
    while script[0][0] != 'clock':
        del script[0]
    graph.kill()
    graph.start()
    filtered, gps = graph.listen('/odometry/filtered'), graph.listen('/odometry/gps')
    graph.play(script)
    expected = play(live_judge(run, config, navsat), script)
    assert len(expected.gps) > 3
    assert_same(filtered, gps, expected)


def test_set_pose_and_reset_reach_the_judge(graph: Graph, folder: Path, run: Recording) -> None:
    """set_pose moves the estimate there; a reset sets the counts to zero and keeps the clock."""
    now = graph.status()['now_ns']
    pose = PoseArray(
        stamp_ns=[now], arrival_ns=[now], frame='odom', position=[[7.0, -3.0, 0.0]],
        orientation=[[0.0, 0.0, 1.0, 0.0]], pose_covariance=np.eye(6)[None],
    )  # fmt: skip
    graph.step('set_pose', pose)
    received = graph.listen('/odometry/filtered')
    graph.step('clock', now + 100_000_000)
    graph.until(lambda: bool(received.data))
    np.testing.assert_allclose(received.odometry.position[0], [7.0, -3.0, 0.0], atol=1e-2)
    np.testing.assert_allclose(abs(received.odometry.orientation[0, 2]), 1.0, atol=1e-3)
    graph.call(graph.reset_client)
    status = graph.status()
    assert all(part['received'] == 0 for part in status['parts'])
    assert status['now_ns'] == now + 100_000_000
    count = status['published']
    graph.step('clock', now + 200_000_000)
    assert graph.status()['published'] == count


def test_a_message_with_an_unknown_frame_is_reported(graph: Graph, run: Recording) -> None:
    """The status service and /diagnostics report it, also while the clock stands."""
    from diagnostic_msgs.msg import DiagnosticArray

    received: list[DiagnosticArray] = []
    graph.node.create_subscription(DiagnosticArray, '/diagnostics', received.append, 10)
    stray = dataclasses.replace(run.imu.take([0]), frame='imu_of_another_robot')
    early = run.imu.take([0]).stamp_ns + 3_600_000_000_000
    graph.step('imu0', dataclasses.replace(run.imu.take([0]), stamp_ns=early))
    graph.step('imu0', stray)
    status = graph.status()
    # The first would have moved the filter an hour ahead.
    assert status['refused'] == {'imu0': 2}

    def values() -> dict[str, str]:
        return {entry.key: entry.value for entry in received[-1].status[0].values}

    graph.until(lambda: bool(received) and values().get('imu0 refused') == '2')
    report = received[-1].status[0]
    assert report.name == '/ekf_filter_node: judge'
    assert report.level >= report.WARN
    assert len(report.message) <= 80
    assert 'imu_of_another_robot' in values()[MESSAGES_REFUSED.code]
    assert MESSAGES_REFUSED.code in [finding['code'] for finding in status['findings']]
    # 5 s after the last one a good message ends it, for set_pose without another message. The
    # clock stands, so that no estimate comes.
    graph.step('imu0', dataclasses.replace(run.imu.take([0]), stamp_ns=[status['now_ns']]))
    graph.step('set_pose', NO_POSE)
    graph.until(lambda: 'set_pose' in values().get(MESSAGES_REFUSED.code, ''))
    graph.until(lambda: MESSAGES_REFUSED.code not in values())
    assert NO_ESTIMATE.code in values()
    assert received[-1].status[0].level == bytes([ERROR])
    assert 'odom1 pose fused' in values()


def test_a_silent_input_is_a_warning_until_it_is_heard_again(graph: Graph, run: Recording) -> None:
    """After 5 s of the node's clock in which the other inputs go on."""
    now = graph.status()['now_ns']
    wheels = run.messages['/wheel/odom'].take([0])
    graph.call(graph.reset_client)

    def silent(*names: str, seconds: float) -> list[str]:
        nonlocal now
        for _ in range(round(seconds / 0.25)):
            now += 250_000_000
            for name, array in (('odom0', wheels), ('imu0', run.imu.take([0]))):
                if name not in names:
                    stamped = dataclasses.replace(array, stamp_ns=np.array([now], dtype=np.int64))
                    graph.step(name, stamped)
            graph.step('clock', now)
        return [
            finding['subject'].split()[0]
            for finding in graph.status()['findings']
            if finding['code'] == NO_MESSAGE.code
        ]

    assert 'imu0' in silent('imu0', seconds=7.0)
    assert graph.status()['level'] == WARN
    assert 'imu0' not in silent(seconds=1.0)


def request(graph: Graph, kind: Any, name: str, message: Any) -> Any:
    """Call a service of the node, again and again until both sides have found each other."""
    client = graph.node.create_client(kind, name)
    graph.until(client.service_is_ready)
    futures = [client.call_async(message)]
    asked = time.monotonic()

    def is_answered() -> bool:
        nonlocal asked
        if time.monotonic() > asked + 2.0:
            futures.append(client.call_async(message))
            asked = time.monotonic()
        return any(future.done() for future in futures)

    graph.until(is_answered)
    graph.node.destroy_client(client)
    return next(future.result() for future in futures if future.done())


def change_state(graph: Graph, label: str) -> bool:
    message = ChangeState.Request()
    message.transition.label = label
    return bool(request(graph, ChangeState, '/ekf_filter_node/change_state', message).success)


def set_parameter(graph: Graph, name: str, value: object) -> bool:
    message = SetParameters.Request(parameters=[Parameter(name, value=value).to_parameter_msg()])
    answer = request(graph, SetParameters, '/ekf_filter_node/set_parameters', message)
    return bool(answer.results[0].successful)


def test_toggle_and_the_services_of_robot_localization(
    graph: Graph, folder: Path, run: Recording
) -> None:
    """Names of 3.8, types of std_srvs, because robot_localization is not installed here."""
    script = in_steps(folder, run)[0][:80]
    graph.reach(script[0][1] + 3_600_000_000_000, lambda status: True)
    resets = graph.status()['resets']
    graph.reach(script[0][1], lambda status: bool(status['resets'] > resets))
    graph.play(script[1:])
    before = graph.status()
    assert before['parts'][0]['fused'] > 0
    assert request(graph, SetBool, '/toggle', SetBool.Request(data=False)).success
    assert not request(graph, SetBool, '/toggle', SetBool.Request(data=False)).success
    received = graph.listen('/odometry/filtered')
    now = before['now_ns']
    stray = dataclasses.replace(run.imu.take([0]), stamp_ns=[now], arrival_ns=[now])
    graph.step('imu0', stray)
    for step in (1, 2):
        graph.step('clock', now + step * 100_000_000)
    status = graph.status()
    assert TOGGLED_OFF.code in [finding['code'] for finding in status['findings']]
    assert [part['fused'] for part in status['parts']] == [
        part['fused'] for part in before['parts']
    ]
    graph.until(lambda: len(received.data) >= 2)
    first, last = (received.odometry.take([row]) for row in (0, -1))
    assert last.stamp_ns[0] == now + 200_000_000 > first.stamp_ns[0]
    assert first.position.tobytes() == last.position.tobytes()
    assert first.pose_covariance.tobytes() == last.pose_covariance.tobytes()
    assert request(graph, SetBool, '/toggle', SetBool.Request(data=True)).success
    request(graph, Empty, '/enable', Empty.Request())
    request(graph, Empty, '/reset', Empty.Request())
    status = graph.status()
    assert status['resets'] >= resets + 2
    assert all(part['received'] == 0 for part in status['parts'])


def test_another_configuration_needs_no_other_process(
    graph: Graph, folder: Path, run: Recording
) -> None:
    """Deactivated, set and activated, the node gives the bits of a judge with those parameters."""
    noise = [0.3] * 6 + [0.5] * 9
    assert not set_parameter(graph, 'process_noise_covariance', noise)
    before = graph.listeners()
    assert change_state(graph, 'deactivate')
    assert not change_state(graph, 'deactivate')
    graph.until(lambda: not graph.node.count_publishers('/odometry/filtered'))
    assert set_parameter(graph, 'process_noise_covariance', noise)
    assert set_parameter(graph, 'frequency', 20.0)
    assert set_parameter(graph, 'odom1_pose_rejection_threshold', 2.0)
    for name, value in (('frequncy', 3.0), ('frequency', -1.0), ('world_frame', 7)):
        assert not set_parameter(graph, name, value)
    assert change_state(graph, 'activate')
    graph.match(before)
    # Setting a parameter to its present value is allowed: `ros2 param load` of a dump sets all of
    # them.
    assert set_parameter(graph, 'process_noise_covariance', noise)
    assert not set_parameter(graph, 'frequency', 30.0)

    filtered, gps = graph.listen('/odometry/filtered'), graph.listen('/odometry/gps')
    script, _ = in_steps(folder, run)
    config, navsat = configs(folder)
    sources = tuple(
        dataclasses.replace(source, pose_threshold=2.0) if source.name == 'odom1' else source
        for source in config.sources
    )
    config = dataclasses.replace(
        config, process_noise=np.diag(noise), frequency=20.0, sensor_timeout=0.05, sources=sources
    )
    graph.reach(script[0][1], lambda status: bool(status['resets'] == 1))
    graph.play(script[1:])
    assert_same(filtered, gps, play(live_judge(run, config, navsat), script))
    assert graph.status()['compiled'] == 0


def test_a_manager_cleans_up_and_starts_the_node_again(graph: Graph) -> None:
    before = graph.listeners()
    for label in ('deactivate', 'cleanup', 'configure', 'activate'):
        assert change_state(graph, label)
    graph.match(before)
    assert graph.status()['published'] == 0


def test_nothing_is_compiled_and_little_is_logged_while_the_clock_loops(
    graph: Graph, folder: Path, run: Recording
) -> None:
    """The log has one line per finding, however often the clock goes back."""
    script, _ = in_steps(folder, run)
    graph.log.flush()
    log = Path(graph.log.name)
    lines = len(log.read_text().splitlines())
    late = dataclasses.replace(
        run.imu.take([0]), stamp_ns=run.imu.take([0]).stamp_ns + 3_600_000_000_000
    )
    for _ in range(3):
        graph.reach(script[0][1], lambda status: True)
        for shift in range(4):
            stamp_ns = late.stamp_ns + shift * 1_000_000_000
            graph.step('imu0', dataclasses.replace(late, stamp_ns=stamp_ns))
            graph.step('set_pose', NO_POSE)
        graph.play(script[1:40])
        graph.call(graph.reset_client)
    status = graph.status()
    assert status['refused'] == {'imu0': 12, 'set_pose': 12}
    assert status['compiled'] == 0
    warnings = [line for line in log.read_text().splitlines()[lines:] if '[WARN]' in line]
    assert sum(MESSAGES_REFUSED.code in line for line in warnings) <= 6
    assert len(warnings) <= 10, warnings


def test_a_stranger_on_a_topic_is_named_and_forgotten_when_it_ends(graph: Graph) -> None:
    """Another process publishes on the IMU's topic, and is killed."""
    from diagnostic_msgs.msg import DiagnosticArray

    received: list[DiagnosticArray] = []
    subscription = graph.node.create_subscription(
        DiagnosticArray, '/diagnostics', received.append, 10
    )

    def codes() -> set[str]:
        return {entry.key for entry in received[-1].status[0].values} if received else set()

    graph.until(lambda: bool(codes()) and SEVERAL_PUBLISHERS.code not in codes())
    stranger = subprocess.Popen([sys.executable, '-c', STRANGER])
    try:
        graph.until(lambda: SEVERAL_PUBLISHERS.code in codes())
        assert received[-1].status[0].level > received[-1].status[0].OK
        assert len(received[-1].status[0].message) <= 80
    finally:
        stranger.kill()
        stranger.wait()
    graph.until(lambda: SEVERAL_PUBLISHERS.code not in codes())
    graph.node.destroy_subscription(subscription)


STRANGER = """
import rclpy
from sensor_msgs.msg import Imu
rclpy.init()
node = rclpy.create_node('stranger')
node.create_publisher(Imu, '/imu/data', 10)
rclpy.spin(node)
"""
