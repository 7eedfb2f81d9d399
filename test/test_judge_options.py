# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Options of the judge on the command line and in case.yaml."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cli_examples import call
from judge_examples import mask, odometry, parameter_file, recording, stamps

from sim2real_eval.judge.robot_localization.replay_options import Options, ReplayOptions
from sim2real_eval.judge.setup import JudgeSetup, check_for_nodes
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.writing import write_recording
from sim_sensors.core.errors import ParameterError

Capture = pytest.CaptureFixture[str]
UKF = Options(unscented=True)


def turn(folder: Path) -> Path:
    """Write a recorded turn of 4 s and parameters for either filter; return its path."""
    clock = stamps(20.0, 4.0)
    t = (clock - clock[0]) * 1e-9
    rng = np.random.default_rng(5)
    array = odometry(
        clock,
        position=np.stack([2.0 * t, 0.3 * t * t, 0.0 * t], axis=1),
        yaw=0.3 * t + 0.05 * rng.standard_normal(len(t)),
    )
    path = folder / 'turn'
    write_recording(recording({'/odom': array}), path, storage='csv')
    odom = {'odom0': 'odom', 'odom0_config': mask('x', 'y', 'yaw')}
    more = {'two_d_mode': True, 'alpha': 0.1, 'initial_estimate_covariance': [0.1] * 15}
    parameter_file(folder, {**odom, **more})
    return path


def test_options_on_the_command_line_override_the_case(tmp_path: Path, capsys: Capture) -> None:
    run = turn(tmp_path)

    def estimate(*options: object, case: str = '') -> bytes:
        (run / 'case.yaml').write_text(case or '{}')
        out = tmp_path / 'out'
        configured = ('--config', tmp_path / 'params.yaml', '--out', out, '--overwrite')
        outcome = call(capsys, 'judge', run, *configured, *options)
        assert outcome.status == 0, outcome
        (written,) = out.glob('*.csv')
        return written.read_bytes()

    extended = estimate()
    unscented = estimate('--filter', 'ukf')
    textbook = estimate('--filter', 'ukf', '--correct', 'unscented')
    late = estimate('--latency', '/odom=0.2')
    assert len({extended, unscented, textbook, late}) == 4
    settings = 'node: ukf_node\ncorrect: [unscented]\n'
    assert estimate(case='node: ukf_node') == unscented
    assert estimate(case=settings) == textbook
    assert estimate('--correct', 'unscented', case='node: ukf_node') == textbook
    assert estimate('--correct', 'none', case=settings) == unscented
    assert estimate('--filter', 'ekf', '--correct', 'none', case=settings) == extended
    assert estimate(case='latency: {odom: 0.2}') == late
    assert estimate('--latency', 'odom=0', case='latency: {odom: 0.2}') == extended


def test_the_corrected_unscented_filter_is_close_to_the_extended_filter(tmp_path: Path) -> None:
    """They differ by 1 cm in a gentle turn, and the original one by 4 cm."""
    path, file = turn(tmp_path), tmp_path / 'params.yaml'
    run = read_recording(path)
    extended, original, textbook = (
        JudgeSetup.load(file, options=options).judge(run).position
        for options in (Options(), UKF, Options(unscented=True, correct=frozenset({'unscented'})))
    )
    near, far = np.abs(textbook - extended).max(), np.abs(original - extended).max()
    assert near < 0.5 * far


@pytest.mark.parametrize(
    ('arguments', 'named'),
    [
        (('--correct', 'gravy'), "'gravy'"), (('--correct', 'unscented'), 'unscented'),
        (('--latency', 'odom'), "'odom'"), (('--latency', 'odom=-1'), 'odom: -1.0'),
        (('--latency', '=1'), "''"), (('--latency', '/gps=1'), 'gps'),
        (('--transforms', 'gone.yaml'), 'gone.yaml'),
    ],
)  # fmt: skip
def test_a_wrong_option_is_refused_by_its_value(
    tmp_path: Path, capsys: Capture, arguments: tuple[str, ...], named: str
) -> None:
    configured = ('--config', tmp_path / 'params.yaml', '--out', tmp_path / 'out')
    outcome = call(capsys, 'judge', turn(tmp_path), *configured, *arguments)
    assert outcome.status in (1, 2)
    assert any(named in line for line in outcome.complaints), outcome
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize(
    ('case', 'named'),
    [
        ('latency: {odom: .nan}', 'latency.odom: nan'),
        ('correct: gravity', "correct: 'gravity'"),
        ('correct: [[gravity]]', "correct: ['gravity']"),
        ('transforms: "a\\0b"', 'x00b'),
        ('front_end: [enu]', "front_end: ['enu']"),
        ('node: ekf_node\ncorrect: [unscented]', 'correct: unscented'),
    ],
)
def test_a_wrong_key_of_a_case_is_refused_by_name(
    tmp_path: Path, capsys: Capture, case: str, named: str
) -> None:
    run = turn(tmp_path)
    (run / 'case.yaml').write_text(case)
    configured = ('--config', tmp_path / 'params.yaml', '--out', tmp_path / 'out')
    outcome = call(capsys, 'judge', run, *configured)
    assert outcome.status == 2
    (line,) = outcome.err.splitlines()
    assert named in line


@pytest.mark.parametrize(
    ('case', 'name'),
    [
        (ReplayOptions(correct=frozenset({'gravity'})), 'correct'),
        (ReplayOptions(latency_ns={'imu': 1}), 'latency'),
        (ReplayOptions(front_end='enu'), 'front_end'),
    ],
)
def test_options_of_the_embedded_judge_are_refused_for_nodes(
    case: ReplayOptions, name: str
) -> None:
    check_for_nodes(ReplayOptions(latency_ns={'imu': 0}), 'robot_localization')
    check_for_nodes(ReplayOptions(correct=frozenset({'gravity', 'unscented'})), 'judge_node')
    with pytest.raises(ParameterError, match=r'^correct: is not possible with judge_node'):
        check_for_nodes(ReplayOptions(correct=frozenset({'differential'})), 'judge_node')
    with pytest.raises(ParameterError, match=f'^{name}: is not possible with robot_localization'):
        check_for_nodes(case, 'robot_localization')
