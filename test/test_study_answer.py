# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The answer of a study: nearest model, tests, disagreement and main doubt."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path

import pytest
from comparison_examples import compare_one, study_of, twin
from preflight_examples import good
from study_examples import drawn_study

from sim2real_eval.cli.parser import build_parser
from sim2real_eval.cli.sensors import twins
from sim2real_eval.cli.study_screen import _show_secondary
from sim2real_eval.common.findings import Severity, to_records
from sim2real_eval.judge.estimate import DIVERGED
from sim2real_eval.judge.robot_localization.advice import NO_START_HEADING
from sim2real_eval.metrics.options import MOVING_START, SLOW_TRUTH
from sim2real_eval.preflight.findings import COVARIANCE_LARGE, RATE_UNIT
from sim2real_eval.report.answer import (
    _SHARED,
    _SHARED_SWITCHES,
    answer_lines,
    detail_lines,
    next_step,
    plain_answer,
)
from sim2real_eval.study.answer import TransferView, study_answer
from sim2real_eval.study.options import StudyOptions
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.secondary_results import side_results
from sim2real_eval.study.study_file import StudyFile
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.shipped import config_path


def _answer_texts(outcome: StudyOutcome) -> dict[str, str]:
    return {line.head: line.text for line in answer_lines(study_answer(outcome))}


def test_a_model_with_errors_of_the_real_size_is_nearest_and_not_distinguishable() -> None:
    # Errors are drawn from one law for `same`, and are six times as large for `far`.
    outcome = drawn_study(judges=('clean',), runs=6, models={'same': 0.05, 'far': 0.3})
    answer = study_answer(outcome)
    assert (answer.nearest, answer.next, answer.recordings) == ('same', 'far', 12)
    assert (answer.distinguishable, answer.gap_distinguishable) == (False, True)
    assert answer.probability > 0.95


def test_a_single_model_with_errors_of_another_size_is_distinguishable() -> None:
    outcome = drawn_study(judges=('clean',), runs=6, models={'far': 0.3})
    answer = study_answer(outcome)
    assert (answer.nearest, answer.next, answer.distinguishable) == ('far', None, True)


def test_the_cost_is_the_error_of_speed_until_a_transfer_was_run() -> None:
    outcome = drawn_study(judges=('clean',), runs=6, models={'model': 0.3})
    answer = study_answer(outcome)
    cost = _answer_texts(outcome)['Cost']
    assert f'{answer.rmse:.3f}' in cost
    assert f'{answer.real_rmse:.3f}' in cost
    assert 'sim2real transfer' in cost
    transfer = TransferView('clean', 'speed', 'model', 0.04, 0.01, 0.08, 0.01, True)
    transferred = dataclasses.replace(answer, transfer=transfer)
    for text in (answer_lines(transferred)[1].text, plain_answer(transferred)):
        assert '4 % [1, 8] more speed error' in text
        assert 'sim2real transfer' not in text
    assert transferred.to_mapping()['transfer']['loss'] == 0.04


def test_a_transfer_loss_that_is_proven_is_named_beside_the_metrics() -> None:
    """The transfer is a test of its own: it changes nothing of the joint test of the metrics."""
    transfer = TransferView('clean', 'speed', 'model', 0.4, 0.3, 0.5, 0.01, True)
    for std, by_metrics in ((0.05, False), (0.3, True)):
        answer = study_answer(drawn_study(judges=('clean',), runs=6, models={'model': std}))
        assert answer.distinguishable is by_metrics
        for view, is_named in (
            (transfer, True),
            (transfer._replace(distinguishable=False, p_value=0.2), False),
        ):
            transferred = dataclasses.replace(answer, transfer=view)
            verdict = answer_lines(transferred)[0].text
            assert ('transfer' in verdict) is is_named
            assert ('not distinguishable' in verdict) is not by_metrics
            assert transferred.distinguishable is by_metrics


def test_the_weaker_measure_of_a_transfer_without_truth_is_named() -> None:
    answer = study_answer(drawn_study(judges=('clean',), runs=6, models={'model': 0.3}))
    model = {'model': 'model', 'loss': 0.04, 'low': None, 'high': None, 'adjusted': None}
    record = {'judge': {'name': 'clean'}, 'quantity': 'likelihood', 'models': [model]}
    transfer = TransferView.from_record(record, 'model')
    assert (transfer.best, transfer.loss, transfer.distinguishable) == ('model', 0.04, None)
    assert TransferView.from_record(record, 'other').loss is None
    text = answer_lines(dataclasses.replace(answer, transfer=transfer))[1].text
    assert 'likelihood' in text
    assert 'ground truth' in text


def test_no_model_is_nearest_by_a_position_in_which_all_agree() -> None:
    """The positions of `same` differ from the real ones by rounding, those of `far` not at all."""
    outcome = drawn_study(judges=('clean',), runs=6, models={'far': 0.3, 'same': 0.05})
    runs = []
    for run in outcome.runs:
        error = 0.1 * int(run.key.recording[-1]) + (1e-15 if run.key.model == 'same' else 0.0)
        runs.append(dataclasses.replace(run, values={**run.values, 'position_rmse': error}))
    answer = study_answer(dataclasses.replace(outcome, runs=tuple(runs)))
    assert [pose.nearest for pose in answer.poses if pose.quantity == 'position'] == ['same']
    assert answer.nearest == 'same'


def test_a_file_of_the_name_real_is_a_model(tmp_path: Path) -> None:
    file = tmp_path / 'real.yaml'
    file.write_bytes(Path(config_path('demo', 'gps.yaml')).read_bytes())
    labels = [twin.label for twin in twins(str(file), 'chrono,ideal')]
    assert labels == ['real+chrono', 'real+ideal']
    for imu in ('real', 'chrono'):
        with pytest.raises(ParameterError, match='another name'):
            twins(str(file), imu)


def test_printing_all_tables_computes_side_results_once(tmp_path: Path) -> None:
    outcome = drawn_study(judges=('clean',), scenarios=('line',), models={'m': 0.1})
    side_results(outcome)
    before = side_results.cache_info().misses
    _show_secondary(outcome, tmp_path)
    assert side_results.cache_info().misses == before


@pytest.mark.parametrize('models', [{'same': 0.05}, {'far': 0.3}, {'same': 0.05, 'far': 0.3}])
@pytest.mark.parametrize('runs', [1, 6])
def test_an_answer_has_three_lines(models: dict[str, float], runs: int) -> None:
    answer = study_answer(drawn_study(judges=('clean',), runs=runs, models=models))
    assert [line.head for line in answer_lines(answer)] == ['Nearest model', 'Cost', 'Main doubt']


def test_a_shared_imu_model_is_a_reservation_about_a_gps_comparison() -> None:
    def notes(gps: str, imu: str) -> list[str]:
        file = StudyFile('', StudyOptions(), (), twins(gps, imu), ())
        return [note.words['imu'] for note in file.notes]

    assert notes('airsim,ch_rw', 'chrono') == ['chrono']
    assert notes('airsim', 'chrono') == notes('airsim,ch_rw', 'real') == []
    assert notes('airsim,ch_rw', 'chrono,airsim') == notes('real', 'chrono,airsim') == []


def test_a_truth_made_from_the_fixes_is_a_reservation_only_about_receivers() -> None:
    """Fixes without errors look as if the truth was made from them."""
    recording = good(gps='baseline')
    variants = (twin('ch_rw'), twin(None))
    notes = [compare_one(recording, study_of(variant))[0].notes for variant in variants]
    receiver, inertial = ({note.code: note for note in findings} for findings in notes)
    assert receiver['study.truth_of_fixes'].severity is Severity.DECISIVE
    assert 'study.truth_of_fixes' not in inertial
    assert inertial['check.truth_of_fixes'].severity is Severity.ASSUMED
    outcome = drawn_study(judges=('clean',), runs=1, scenarios=('line',))
    notes = to_records([receiver['study.truth_of_fixes']])
    outcome = dataclasses.replace(outcome, record={**outcome.record, 'notes': notes})
    assert study_answer(outcome).doubt.code == 'study.truth_of_fixes'


def test_a_difference_that_only_other_metrics_detect_is_in_the_answer() -> None:
    # Speed is estimated with one law, positions lie metres apart.
    outcome = drawn_study(judges=('clean',), runs=6, models={'same': 0.05})
    runs = tuple(
        dataclasses.replace(
            run, values={**run.values, 'position_rmse': number + (0.0 if run.is_real else 300.0)}
        )
        for number, run in enumerate(outcome.runs)
    )
    shifted = dataclasses.replace(outcome, runs=runs)
    answer = study_answer(shifted)
    assert answer.view.p_value > 0.05
    assert answer.view.distinguished_by == ('position',)
    assert answer.distinguishable is True
    assert answer.to_mapping()['distinguishable'] is True
    assert 'position' in _answer_texts(shifted)['Nearest model']


def test_one_recording_is_too_few_for_an_answer() -> None:
    outcome = drawn_study(judges=('clean',), runs=1, scenarios=('line',))
    assert study_answer(outcome).distinguishable is None
    assert '1 recording cannot show' in _answer_texts(outcome)['Nearest model']


def test_judges_with_a_different_nearest_model_are_named() -> None:
    first = drawn_study(judges=('clean',), runs=6, models={'a': 0.05, 'b': 0.3})
    # The models of the second judge are exchanged.
    other = drawn_study(judges=('other',), runs=6, models={'a': 0.3, 'b': 0.05})
    both = dataclasses.replace(
        first,
        runs=first.runs + other.runs,
        load=lambda key: (first if key.judge == 'clean' else other).signals(key),
    )
    answer = study_answer(both)
    assert answer.nearest == 'a'
    assert [view.judge for view in answer.dissenting] == ['other']
    assert 'judge other names b' in _answer_texts(both)['Main doubt']


@pytest.mark.parametrize(
    ('blocks', 'more', 'text'),
    [(None, '1', '1 more recording '), (None, '5', '5 more recordings '),
     (6, '1', '1 more block '), (6, '5', '5 more blocks ')],
)  # fmt: skip
def test_further_motions_are_blocks_where_recordings_share_blocks(
    blocks: int | None, more: str, text: str
) -> None:
    answer = study_answer(drawn_study(judges=('clean',), runs=6, models={'a': 0.05, 'b': 0.05}))
    answer = dataclasses.replace(
        answer, blocks=blocks, gap_distinguishable=False, more_motions=more, doubts=()
    )
    assert text in answer_lines(answer)[2].text
    assert text in next(
        line.text for line in detail_lines(answer) if line.head == 'The next model'
    )


def test_reservations_about_real_runs_precede_those_about_simulated_runs() -> None:
    notes = [
        dataclasses.replace(MOVING_START(speed=3.0), runs=(('simulated', 9, 9),)),
        dataclasses.replace(MOVING_START(speed=4.0), runs=(('real', 3, 6), ('simulated', 9, 9))),
        dataclasses.replace(SLOW_TRUTH(rate=4.0, grid=15.0, half=2.0), runs=(('real', 6, 6),)),
        NO_START_HEADING('imu0', topic='imu/data').restrict_to('judge other'),
    ]
    outcome = drawn_study(judges=('clean', 'other'), runs=1, scenarios=('line',))
    outcome = dataclasses.replace(outcome, record={**outcome.record, 'notes': to_records(notes)})
    doubts = study_answer(outcome).doubts
    assert [doubt.numbers['speed'] for doubt in doubts] == [4.0, 3.0]


def test_a_wrong_unit_precedes_the_covariance_that_contradicts_the_data() -> None:
    stated = {'quantity': 'angular velocity', 'error': 0.1, 'stated': 3e-4}
    notes = [
        COVARIANCE_LARGE('/imu/data', **stated, role='imu', key='rate_std'),
        RATE_UNIT('/imu/data', scale=57.3, role='imu', set=0.01745),
    ]
    records = to_records(dataclasses.replace(note, runs=(('real', 6, 6),)) for note in notes)
    outcome = drawn_study(judges=('clean',), runs=1, scenarios=('line',))
    outcome = dataclasses.replace(outcome, record={**outcome.record, 'notes': records})
    codes = [doubt.code for doubt in study_answer(outcome).doubts]
    assert codes == ['check.rate_unit', 'check.covariance_small_large']


def test_findings_about_other_models_are_no_reservation_about_the_nearest() -> None:
    outcome = drawn_study(judges=('clean',), runs=6, models={'same': 0.05, 'far': 0.3})
    numbers = {'estimates': 9, 'count': 1, 'first': 0.5}
    for model, count in (('far', 0), ('same', 1)):
        notes = [dataclasses.replace(DIVERGED(**numbers), runs=((f'simulated {model}', 1, 6),))]
        record = {**outcome.record, 'notes': to_records(notes)}
        assert len(study_answer(dataclasses.replace(outcome, record=record)).doubts) == count


def test_the_next_step_follows_from_what_is_not_known_yet() -> None:
    answer = study_answer(drawn_study(judges=('clean',), runs=6, models={'ch_rw': 0.05}))
    transfer = TransferView('clean', 'speed', 'ch_rw', 0.04, 0.01, 0.08, 0.01, True)
    few = dataclasses.replace(
        answer, views=(dataclasses.replace(answer.view, distinguishable=None),)
    )
    stand_ins = {'recordings': [{'name': 'a', 'stand_in': {}}]}
    own = {
        'command': ['sim2real', 'vepd', 'my bags/a', '--out', 'result'],
        'recordings': [{'name': 'a', 'path': 'my bags/a'}],
        'phrases': {'ch_rw': 'a walk'},
    }
    many = {**own, 'recordings': [{'name': f'{n}', 'path': f'{n}'} for n in range(1000)]}
    commands = [
        next_step(*place).command.split()
        for place in (
            (answer, stand_ins),
            (few, own),
            (answer, own),
            (dataclasses.replace(answer, transfer=transfer), own),
        )
    ]
    assert [command[1] for command in commands] == ['vepd', 'vepd', 'transfer', 'gate']
    assert shlex.split(next_step(answer, own).command)[2:] == [
        'my bags/a', '--models', 'ch_rw', '--study', 'RESULT', '--out', 'cost'
    ]  # fmt: skip
    assert 'BAGS' in next_step(answer, many).command


def test_commands_are_proposed_with_the_options_of_the_comparison() -> None:
    answer = study_answer(drawn_study(judges=('clean',), runs=6, models={'ch_rw': 0.05}))
    options = [word for option in _SHARED for word in (option, '5')]
    options += [_SHARED_SWITCHES[0]]
    command = ['sim2real', 'vepd', 'a', '--resamples', '500', *options, '--out', 'x']
    record = {
        'command': command, 'recordings': [{'name': 'a', 'path': 'a'}], 'phrases': {'ch_rw': 'w'}
    }  # fmt: skip
    few = dataclasses.replace(
        answer, views=(dataclasses.replace(answer.view, distinguishable=None),)
    )
    again = shlex.split(next_step(few, record).command)
    assert again == [
        'sim2real', 'vepd', 'BAGS', '--models', 'ch_rw', *options, '--out', 'NEW_RESULT'
    ]  # fmt: skip
    words = shlex.split(next_step(answer, record).command)
    assert words[:5] == ['sim2real', 'transfer', 'a', '--models', 'ch_rw']
    assert words[5:-4] == options
    for verb in ('vepd', 'transfer'):
        actions = build_parser(verb)._subparsers
        assert actions is not None
        (parser,) = actions._group_actions[0].choices.values()
        known = {option for action in parser._actions for option in action.option_strings}
        assert known >= {*_SHARED, *_SHARED_SWITCHES}
