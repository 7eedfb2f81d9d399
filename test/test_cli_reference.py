# SPDX-License-Identifier: Apache-2.0
"""`sim2real reference`: what it writes, what it says of it, and that the label stays."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from cli_examples import call, contents, segments
from recording_examples import arrays_equal
from smoother_examples import drive

from sim2real_eval.cli.main import main
from sim2real_eval.common.errors import RecordingError
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
def seen() -> Recording:
    """A drive with truth; its positions are about the first fix, as the reference's."""
    return drive(HalfSine(duration=12.0, speed=5.0), 21)[0]


@pytest.fixture(scope='module')
def blind(seen: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('blind') / 'blind_1'
    write_recording(seen.with_messages('truth', None), folder)
    return folder


@pytest.fixture(scope='module')
def referenced(blind: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('referenced')
    assert main(['reference', str(blind), '--out', str(folder)]) == 0
    return folder / 'drive_1'


@pytest.mark.parametrize('storage', ['mcap', 'csv'])
def test_the_recording_comes_back_with_a_labelled_truth(
    storage: str, blind: Path, seen: Recording, tmp_path: Path, capsys: Capture
) -> None:
    outcome = call(capsys, 'reference', blind, '--storage', storage, '--out', tmp_path)
    assert outcome.status == 0, outcome.err
    assert 'median deviation: position 0.' in outcome.out
    assert 'a smoother uses future measurements' in outcome.err
    assert (tmp_path / 'drive_1' / 'reference.png').read_bytes().startswith(b'\x89PNG')
    made, given = read_recording(tmp_path / 'drive_1'), read_recording(blind)
    for topic, array in given.messages.items():
        assert arrays_equal(made.messages[topic], array), topic
    assert set(made.transforms) == set(given.transforms)
    assert made.truth is not None
    assert seen.truth is not None
    # Within five of the deviations that it states, along each axis: position and velocity.
    at = np.searchsorted(seen.truth.stamp_ns, made.truth.stamp_ns)
    off = made.truth.position - seen.truth.position[at]
    assert (
        np.abs(off) < 5.0 * np.sqrt(np.einsum('nii->ni', made.truth.pose_covariance)[:, :3])
    ).all()
    label = made.reference
    assert label is not None
    assert label.topic == made.roles['truth'] == '/ground_truth/odometry'
    assert label.made_by.startswith('sim2real_sensors ')
    assert 'gtsam 4' in label.made_by
    assert label.made_from == ('/imu/data', '/gps/fix')
    assert label.settings['inertial']['output_frequency'] == 100.0
    assert 0.0 < label.deviation['position_m'] < 1.0
    assert any(note.code == NOT_INDEPENDENT for note in made.notes)
    # And once more through the other form.
    other = 'csv' if storage != 'csv' else 'mcap'
    write_recording(made, tmp_path / 'copy', storage=other)
    assert read_recording(tmp_path / 'copy').reference == label


def test_equal_inputs_give_equal_bytes(
    blind: Path, referenced: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert call(capsys, 'reference', blind, '--out', tmp_path).status == 0
    assert contents(tmp_path / 'drive_1') == contents(referenced)


@pytest.mark.usefixtures('blank_pictures')
def test_a_truth_gives_way_only_when_told(
    seen: Recording, tmp_path: Path, capsys: Capture
) -> None:
    write_recording(seen, tmp_path / 'in')
    refused = call(capsys, 'reference', tmp_path / 'in', '--out', tmp_path / 'out')
    assert refused.status == 2
    assert 'has a truth (/ground_truth/odometry); give --replace-truth' in refused.complaints[0]
    assert not (tmp_path / 'out').exists()
    told = call(
        capsys, 'reference', tmp_path / 'in', '--replace-truth', '--pose-rate', 50, '--json',
        '--out', tmp_path / 'out',
    )  # fmt: skip
    assert told.status == 0, told.err
    (said,) = json.loads(told.out)
    assert set(said['deviation']) == {'position_m', 'height_m', 'speed_m_s', 'heading_rad'}
    made = read_recording(said['out'])
    assert made.truth is not None
    assert len(made.truth) == said['estimates']
    assert np.diff(made.truth.stamp_ns).tolist() == [20_000_000] * (len(made.truth) - 1)
    again = call(
        capsys, 'reference', tmp_path / 'in', '--replace-truth', '--out', tmp_path / 'out'
    )
    assert again.status == 2
    assert 'exists already' in again.complaints[0]


@pytest.mark.usefixtures('blank_pictures')
def test_whoever_compares_with_it_is_told(
    referenced: Path, tmp_path: Path, capsys: Capture
) -> None:
    """In the notes of vepd and in study.json."""
    outcome = call(
        capsys, 'vepd', '--real', referenced, '--models', 'ch_rw',
        '--judge-config', 'clean', '--jobs', 1, '--out', tmp_path / 'result',
    )  # fmt: skip
    assert outcome.status == 0, outcome.err
    assert 'not independent of the sensors' in (tmp_path / 'result/findings.txt').read_text()
    record = json.loads((tmp_path / 'result' / 'study.json').read_text(encoding='utf-8'))
    assert any(note['code'] == NOT_INDEPENDENT for note in record['notes'])


def test_a_twin_of_it_has_a_true_truth(referenced: Path) -> None:
    """Sensors that are simulated on the reference were made from it; with one real one left it
    stays a reference.
    """
    maker = TwinMaker(read_recording(referenced), seed=1)
    both = maker.make(Twin('both', load_gps('ch_rw'), load_imu('chrono')))
    one = maker.make(Twin('one', load_gps('ch_rw'), None))
    assert both.reference is None
    assert one.reference is not None


def test_without_gps_and_with_a_simulated_imu_it_is_a_true_truth(
    referenced: Path, tmp_path: Path, capsys: Capture
) -> None:
    words = 'simulate', '--truth', referenced, '--gps', 'none', '--imu', 'chrono'
    assert call(capsys, *words, '--out', tmp_path / 'out').status == 0
    assert read_recording(tmp_path / 'out' / referenced.name).reference is None


def test_another_truth_topic_has_not_the_label(referenced: Path) -> None:
    assert read_recording(referenced, topics={'truth': None}).reference is None


@pytest.mark.parametrize(
    ('truth', 'problem'),
    [
        ({'nature': 'guess'}, "truth.nature: 'guess' is not allowed; must be reference or indep"),
        ({'made_by': 'me'}, 'truth.nature: None is not allowed'),
        ({'nature': 'reference', 'tpoic': '/a'}, 'truth.tpoic: unknown key (did you mean topic?)'),
        ({'nature': 'reference', 'made_from': 3}, 'truth.made_from: must be a list'),
        ('reference', "truth: 'reference' is not allowed; must be a mapping"),
    ],
)
def test_a_wrong_label_is_refused(
    truth: object, problem: str, seen: Recording, tmp_path: Path
) -> None:
    write_recording(seen, tmp_path / 'in', storage='csv')
    file = tmp_path / 'in' / 'recording.yaml'
    content = yaml.safe_load(file.read_text(encoding='utf-8'))
    file.write_text(yaml.safe_dump({**content, 'truth': truth}), encoding='utf-8')
    with pytest.raises(RecordingError, match=re.escape(problem)):
        read_recording(tmp_path / 'in')


def test_a_truth_that_is_said_to_be_independent_is_one(seen: Recording, tmp_path: Path) -> None:
    write_recording(seen, tmp_path / 'in', storage='csv')
    file = tmp_path / 'in' / 'recording.yaml'
    file.write_text(file.read_text(encoding='utf-8') + 'truth: {nature: independent}\n')
    made = read_recording(tmp_path / 'in')
    assert made.reference is None
    assert made.truth is not None


def test_without_gtsam_one_line_says_what_to_install(
    blind: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, 'gtsam', None)
    outcome = call(capsys, 'reference', blind, '--out', tmp_path / 'out')
    assert outcome.status == 2
    assert "pip install 'sim2real_sensors[gtsam]'" in outcome.complaints[0]
    assert len(outcome.complaints) == 1


@pytest.mark.usefixtures('blank_pictures')
def test_start_heading_and_settings_are_taken(
    blind: Path, tmp_path: Path, capsys: Capture
) -> None:
    wrong = call(capsys, 'reference', blind, '--initial-heading', 'nan', '--out', tmp_path / 'o')
    assert wrong.status == 2
    assert 'must be a number [deg]' in wrong.complaints[0]
    wrong = call(capsys, 'reference', blind, '--config', 'gone', '--out', tmp_path / 'o')
    assert wrong.status == 2
    assert "'gone' is unknown" in wrong.complaints[0]
    told = call(capsys, 'reference', blind, '--initial-heading', 40, '--out', tmp_path / 'o')
    assert told.status == 0
    assert 'heading 40 deg as given' in told.err
    mast = tmp_path / 'mast.yaml'
    mast.write_text('[{parent: base_link, child: gps_link, translation: [0.0, 0.0, 30.0]}]')
    assert (
        call(capsys, 'reference', blind, '--transforms', mast, '--out', tmp_path / 'high').status
        == 0
    )
    without = read_recording(tmp_path / 'o' / 'drive_1').truth
    high = read_recording(tmp_path / 'high' / 'drive_1').truth
    assert without is not None
    assert high is not None
    # Height is counted from the first fix, which is one of the antenna.
    assert np.median(high.position[:, 2] - without.position[:, 2]) < -20.0


@pytest.mark.usefixtures('blank_pictures')
def test_a_segment_of_a_real_drive(real_dir: Path, tmp_path: Path, capsys: Capture) -> None:
    """The receiver's velocity, which the reference has not seen, agrees to 5 cm/s rms."""
    (path,) = segments(real_dir, [3])
    outcome = call(capsys, 'reference', path, '--replace-truth', '--out', tmp_path)
    assert outcome.status == 0, outcome.err
    made, given = read_recording(tmp_path / 'drive0708_seg03').truth, read_recording(path).truth
    assert made is not None
    assert given is not None
    speeds = [np.hypot(*truth.linear_velocity[:, :2].T) for truth in (made, given)]
    inside = (given.stamp_ns >= made.stamp_ns[0]) & (given.stamp_ns <= made.stamp_ns[-1])
    found = np.interp(given.stamp_ns[inside], made.stamp_ns, speeds[0])
    assert np.sqrt(np.mean((found - speeds[1][inside]) ** 2)) < 0.05
