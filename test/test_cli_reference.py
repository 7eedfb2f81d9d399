# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real reference`: the recording, its findings and its label."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from cli_examples import call, contents, segments
from recording_examples import arrays_equal
from smoother_examples import drive

from sim2real_eval.cli.main import main
from sim2real_eval.common.findings import RecordingError
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.scenarios import HalfSine

pytest.importorskip('gtsam')

Capture = pytest.CaptureFixture[str]
NOT_INDEPENDENT = 'recording.reference_truth'


@pytest.fixture(scope='module')
def truth_recording() -> Recording:
    """A drive with truth; positions are relative to the first fix, as in the reference."""
    return drive(HalfSine(duration=12.0, speed=5.0), 21)[0]


@pytest.fixture(scope='module')
def blind(truth_recording: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('blind') / 'blind_1'
    write_recording(truth_recording.with_messages('truth', None), folder)
    return folder


@pytest.fixture(scope='module')
def referenced(blind: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('referenced')
    assert main(['reference', str(blind), '--out', str(folder)]) == 0
    return folder / 'drive_1'


@pytest.mark.parametrize('storage', ['mcap', 'csv'])
def test_the_reference_is_labelled_as_such_and_is_within_its_covariance(
    storage: str, blind: Path, truth_recording: Recording, tmp_path: Path, capsys: Capture
) -> None:
    outcome = call(capsys, 'reference', blind, '--storage', storage, '--out', tmp_path)
    assert outcome.status == 0, outcome.err
    assert (tmp_path / 'drive_1' / 'reference.png').is_file()
    result, source = read_recording(tmp_path / 'drive_1'), read_recording(blind)
    for topic, array in source.messages.items():
        assert arrays_equal(result.messages[topic], array), topic
    assert set(result.transforms) == set(source.transforms)
    # The errors stay within five stated standard deviations along each axis.
    at = np.searchsorted(truth_recording.truth.stamp_ns, result.truth.stamp_ns)
    off = result.truth.position - truth_recording.truth.position[at]
    deviation = np.sqrt(np.einsum('nii->ni', result.truth.pose_covariance)[:, :3])
    assert (np.abs(off) < 5.0 * deviation).all()
    label = result.reference
    assert label.topic == result.roles['truth'] == '/ground_truth/odometry'
    assert 'gtsam 4' in label.made_by
    assert label.made_from == ('/imu/data', '/gps/fix')
    assert label.settings['inertial']['output_frequency'] == 100.0
    assert 0.0 < label.deviation['position_m'] < 1.0
    assert any(note.code == NOT_INDEPENDENT for note in result.notes)
    # The label survives a copy in the other storage format.
    other = 'csv' if storage != 'csv' else 'mcap'
    write_recording(result, tmp_path / 'copy', storage=other)
    assert read_recording(tmp_path / 'copy').reference == label


def test_equal_inputs_give_equal_bytes(
    blind: Path, referenced: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert call(capsys, 'reference', blind, '--out', tmp_path).status == 0
    assert contents(tmp_path / 'drive_1') == contents(referenced)


@pytest.mark.usefixtures('blank_pictures')
def test_a_truth_is_replaced_only_on_request(
    truth_recording: Recording, tmp_path: Path, capsys: Capture
) -> None:
    write_recording(truth_recording, tmp_path / 'in')
    refused = call(capsys, 'reference', tmp_path / 'in', '--out', tmp_path / 'out')
    assert refused.status == 2
    assert '--replace-truth' in refused.complaints[0]
    assert not (tmp_path / 'out').exists()
    replaced = call(
        capsys, 'reference', tmp_path / 'in', '--replace-truth', '--pose-rate', 50, '--json',
        '--out', tmp_path / 'out',
    )  # fmt: skip
    assert replaced.status == 0, replaced.err
    (summary,) = json.loads(replaced.out)
    assert set(summary['deviation']) == {'position_m', 'height_m', 'speed_m_s', 'heading_rad'}
    result = read_recording(summary['out'])
    assert len(result.truth) == summary['estimates']
    assert np.diff(result.truth.stamp_ns).tolist() == [20_000_000] * (len(result.truth) - 1)
    again = call(
        capsys, 'reference', tmp_path / 'in', '--replace-truth', '--out', tmp_path / 'out'
    )
    assert again.status == 2


@pytest.mark.usefixtures('blank_pictures')
def test_vepd_reports_that_a_reference_is_not_independent(
    referenced: Path, tmp_path: Path, capsys: Capture
) -> None:
    """The finding is in study.json."""
    outcome = call(
        capsys, 'vepd', referenced, '--models', 'ch_rw',
        '--judge-config', 'clean', '--jobs', 1, '--out', tmp_path / 'result',
    )  # fmt: skip
    assert outcome.status == 0, outcome.err
    record = json.loads((tmp_path / 'result' / 'study.json').read_text(encoding='utf-8'))
    assert any(note['code'] == NOT_INDEPENDENT for note in record['notes'])


def test_a_twin_without_real_sensors_has_an_independent_truth(referenced: Path) -> None:
    """A twin that keeps one real sensor keeps the label of the reference."""
    maker = TwinMaker(read_recording(referenced), seed=1)
    both = maker.make(Twin('both', load_gps('ch_rw'), load_imu('chrono')))
    gps_only = maker.make(Twin('one', load_gps('ch_rw'), None))
    assert both.reference is None
    assert gps_only.reference is not None


def test_a_recording_read_without_truth_has_no_label(referenced: Path) -> None:
    assert read_recording(referenced, topics={'truth': None}).reference is None


@pytest.mark.parametrize(
    ('truth', 'key'),
    [
        ({'nature': 'guess'}, r"truth\.nature: 'guess'"),
        ({'made_by': 'me'}, r'truth\.nature: None'),
        ({'nature': 'reference', 'tpoic': '/a'}, r'truth\.tpoic'),
        ({'nature': 'reference', 'made_from': 3}, r'truth\.made_from'),
        ('reference', "truth: 'reference'"),
    ],
)
def test_a_wrong_label_is_refused_by_its_key(
    truth: object, key: str, truth_recording: Recording, tmp_path: Path
) -> None:
    write_recording(truth_recording, tmp_path / 'in', storage='csv')
    file = tmp_path / 'in' / 'recording.yaml'
    content = yaml.safe_load(file.read_text(encoding='utf-8'))
    file.write_text(yaml.safe_dump({**content, 'truth': truth}), encoding='utf-8')
    with pytest.raises(RecordingError, match=key):
        read_recording(tmp_path / 'in')


def test_a_truth_labelled_independent_is_not_reported_as_a_reference(
    truth_recording: Recording, tmp_path: Path
) -> None:
    write_recording(truth_recording, tmp_path / 'in', storage='csv')
    file = tmp_path / 'in' / 'recording.yaml'
    file.write_text(file.read_text(encoding='utf-8') + 'truth: {nature: independent}\n')
    recording = read_recording(tmp_path / 'in')
    assert recording.reference is None
    assert recording.truth is not None


def test_without_gtsam_the_error_says_in_one_line_what_to_install(
    blind: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, 'gtsam', None)
    outcome = call(capsys, 'reference', blind, '--out', tmp_path / 'out')
    assert outcome.status == 2
    (complaint,) = outcome.complaints
    assert 'pip install gtsam' in complaint


@pytest.mark.usefixtures('blank_pictures')
def test_wrong_heading_and_settings_are_refused(
    blind: Path, tmp_path: Path, capsys: Capture
) -> None:
    for option, value in (('--initial-heading', 'nan'), ('--config', 'gone')):
        wrong = call(capsys, 'reference', blind, option, value, '--out', tmp_path / 'o')
        assert wrong.status == 2
        assert value in wrong.complaints[0]


@pytest.mark.usefixtures('blank_pictures')
def test_a_lever_arm_of_the_antenna_moves_the_reference(
    blind: Path, tmp_path: Path, capsys: Capture
) -> None:
    """Heights are relative to the first fix, which is the position of the antenna."""
    mast = tmp_path / 'mast.yaml'
    mast.write_text('[{parent: base_link, child: gps_link, translation: [0.0, 0.0, 30.0]}]')
    heights = []
    for out, more in (('low', ('--initial-heading', 40)), ('high', ('--transforms', mast))):
        done = call(capsys, 'reference', blind, *more, '--out', tmp_path / out)
        assert done.status == 0
        heights.append(read_recording(tmp_path / out / 'drive_1').truth.position[:, 2])
    assert np.median(heights[1] - heights[0]) < -20.0


@pytest.mark.usefixtures('blank_pictures')
def test_the_reference_of_a_real_drive_agrees_with_the_receiver(
    real_dir: Path, tmp_path: Path, capsys: Capture
) -> None:
    """The reference agrees to 5 cm/s rms with the receiver's velocity, which it does not use."""
    (path,) = segments(real_dir, [3])
    outcome = call(capsys, 'reference', path, '--replace-truth', '--out', tmp_path)
    assert outcome.status == 0, outcome.err
    folders = tmp_path / 'drive0708_seg03', path
    reference, recorded = (read_recording(folder).truth for folder in folders)
    speeds = [np.hypot(*truth.linear_velocity[:, :2].T) for truth in (reference, recorded)]
    inside = (recorded.stamp_ns >= reference.stamp_ns[0]) & (
        recorded.stamp_ns <= reference.stamp_ns[-1]
    )
    reference_speed = np.interp(recorded.stamp_ns[inside], reference.stamp_ns, speeds[0])
    assert np.sqrt(np.mean((reference_speed - speeds[1][inside]) ** 2)) < 0.05
