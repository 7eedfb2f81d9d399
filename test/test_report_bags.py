# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Runs of a study as bags, read back by rosbags."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from cli_examples import contents
from report_examples import HOSTILE, renamed
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore
from study_examples import drawn_study

from sim2real_eval.metrics.options import REAL
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.study.bags import START_NS, write_bags
from sim2real_eval.study.outcome import StudyOutcome
from sim_sensors.core.errors import Sim2RealError


@pytest.fixture(scope='module')
def study() -> StudyOutcome:
    return drawn_study(judges=('clean',), scenarios=('circle',), runs=1, models={'m': 0.1})


@pytest.fixture(scope='module')
def folder(study: StudyOutcome, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('bags') / 'bags'
    write_bags(study, folder)
    return folder


def messages(bag: Path) -> dict[str, list[tuple[int, object]]]:
    messages_by_topic: dict[str, list[tuple[int, object]]] = {}
    with AnyReader([bag], default_typestore=get_typestore(Stores.ROS2_JAZZY)) as reader:
        for connection, stamp, data in reader.messages():
            message = reader.deserialize(data, connection.msgtype)
            messages_by_topic.setdefault(connection.topic, []).append((stamp, message))
    return messages_by_topic


def test_a_report_bag_contains_the_estimates_of_the_judge(
    study: StudyOutcome, folder: Path
) -> None:
    run = next(run for run in study.runs if not run.is_real)
    signals = study.signals(run.key)
    bag = folder / 'clean' / 'm' / 'circle_1_1'
    assert len(list(bag.glob('*.mcap'))) == 1
    topics = messages(bag)
    assert set(topics) == {
        '/truth/odometry', '/estimate/odometry', '/truth/speed', '/estimate/speed',
        '/error/speed', '/error/position', '/error/velocity', '/stated/position',
        '/stated/velocity',
    }  # fmt: skip
    odometry = topics['/estimate/odometry']
    stamps = np.array([stamp for stamp, _ in odometry])
    assert np.array_equal(stamps, START_NS + np.rint(signals.time * 1e9).astype(np.int64))
    for (stamp, message), position, velocity, sigma in zip(
        odometry, signals.position, signals.velocity, signals.position_sigma, strict=True
    ):
        assert (message.header.stamp.sec, message.header.stamp.nanosec) == divmod(stamp, 10**9)
        assert (message.header.frame_id, message.child_frame_id) == ('map', 'base_link')
        p, v = message.pose.pose.position, message.twist.twist.linear
        assert (p.x, p.y, p.z) == tuple(position)
        assert (v.x, v.y, v.z) == tuple(velocity)
        diagonal = message.pose.covariance.reshape(6, 6).diagonal()[:3]
        assert np.allclose(diagonal, sigma**2, rtol=1e-15)


def test_errors_in_the_bag_are_estimate_minus_truth(study: StudyOutcome, folder: Path) -> None:
    """Speed 1 m/s and white errors: the RMSE of the bag is that of the forward speed or less."""
    run = next(run for run in study.runs if not run.is_real)
    topics = messages(folder / 'clean' / 'm' / 'circle_1_1')
    estimate = np.array([message.data for _, message in topics['/estimate/speed']])
    error = np.array([message.data for _, message in topics['/error/speed']])
    assert np.allclose(error, estimate - 1.0, atol=1e-9)
    signals = study.signals(run.key)
    distance = np.array([message.data for _, message in topics['/error/position']])
    expected = np.hypot(*(signals.position - signals.true_position)[:, :2].T)
    assert np.allclose(distance, expected, rtol=1e-12)
    truth = topics['/truth/odometry']
    assert len(truth) == len(signals.time)
    for _, message in truth[::50]:
        q = message.pose.pose.orientation
        assert np.hypot(q.z, q.w) == pytest.approx(1.0, abs=1e-12)


def test_report_bags_are_read_as_recordings_with_a_truth(folder: Path) -> None:
    recording = read_recording(
        folder / 'clean' / REAL / 'circle_1_1', topics={'truth': '/truth/odometry'}
    )
    assert np.allclose(np.linalg.norm(recording.truth.linear_velocity, axis=1), 1.0)


def test_equal_studies_give_equal_bags(study: StudyOutcome, folder: Path, tmp_path: Path) -> None:
    write_bags(study, tmp_path / 'again' / 'bags')
    assert contents(tmp_path / 'again' / 'bags') == contents(folder)


def test_labels_with_path_separators_stay_inside_the_folder(tmp_path: Path) -> None:
    study = drawn_study(judges=('one',), scenarios=('line',), runs=2, models={'m': 0.1})
    study = renamed(
        study, judge={'one': '../../escape'}, model={'m': HOSTILE[3]},
        recording={'line_1': 'a/b', 'line_2': 'a\\b'},
    )  # fmt: skip
    bags = write_bags(study, tmp_path / 'bags')
    assert len(set(bags)) == 4
    assert all((bag / 'metadata.yaml').is_file() for bag in bags)
    assert {path.name for path in tmp_path.iterdir()} == {'bags'}
    index = json.loads((tmp_path / 'bags' / 'bags.json').read_text('utf-8'))['bags']
    assert [row['model'] for row in index] == [run.key.model for run in study.runs]


def test_a_study_without_positions_has_speeds_only(study: StudyOutcome, tmp_path: Path) -> None:
    def blind(key):
        signals = study.signals(key)
        nothing = np.full_like(signals.position, np.nan)
        return dataclasses.replace(
            signals, position=nothing, true_position=nothing, position_sigma=nothing,
            velocity_sigma=nothing,
        )  # fmt: skip

    bags = write_bags(StudyOutcome(study.record, study.runs, blind), tmp_path / 'bags')
    assert set(messages(bags[0])) == {'/truth/speed', '/estimate/speed', '/error/speed'}


def test_a_folder_with_other_files_is_not_changed(study: StudyOutcome, tmp_path: Path) -> None:
    (tmp_path / 'mine.txt').write_text('mine', encoding='utf-8')
    for overwrite in (False, True):
        with pytest.raises(Sim2RealError, match=r'exists|bags\.json'):
            write_bags(study, tmp_path, overwrite=overwrite)
    assert [path.name for path in tmp_path.iterdir()] == ['mine.txt']
