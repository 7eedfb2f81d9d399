# SPDX-License-Identifier: Apache-2.0
"""All runs of a study, and where their signals are."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_eval.common.findings import from_records
from sim2real_eval.metrics.distances import POOLED, VepdRow, vepd_table
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.metrics.scores import RunScore, prepare, resample
from sim2real_eval.metrics.series import VelocitySeries, all_speeds, speed
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.study.run import EstimateSignals, RunKey, StudyRun
from sim2real_eval.study.store import RunStore
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray

MARK = 'study.json'
"""File that says that a folder holds a study."""


@dataclasses.dataclass(frozen=True, eq=False)
class StudyOutcome:
    """What a study came to.

    Attributes
    ----------
    record : mapping
        Everything needed to repeat and to read the study, as plain values: `title`, `about`,
        `seed`, `repetitions`, `component`, `metric`, `synthetic` (whether recordings are
        stand-ins), `versions`, `judges`, `models`, `recordings`, `failures`, `notes`; of a
        study that was run also `command` (words that carry it out), `shipped` (whether its file is
        had by name), `format`, `state`, `simulate_on`, `conditions`, `uncertainty`,
        `start_heading`, `match_rates`.
    runs : tuple of StudyRun
        Judge by judge, in each recording by recording: the real run, then variant by variant.
    load : callable
        Returns the signals of a run.

    Examples
    --------
    See `sim2real_eval.run_study`, which returns one; of a folder that holds a study:

    >>> StudyOutcome.read('no_such_folder')
    Traceback (most recent call last):
    sim_sensors.core.errors.Sim2RealError: no_such_folder/study.json: cannot be read: ...
    """

    record: Mapping[str, Any]
    runs: tuple[StudyRun, ...]
    load: Callable[[RunKey], EstimateSignals]

    @classmethod
    def read(cls, folder: str | Path) -> StudyOutcome:
        """Read a finished study; signals are read when asked for.

        Parameters
        ----------
        folder : str or Path
            Of the study; or its study.json alone, whatever it is called, of which there are no
            signals.

        Raises
        ------
        Sim2RealError
            When it holds no study, or one that is not finished.
        """
        path = Path(folder)
        path = path if path.is_file() else path / MARK
        try:
            record = json.loads(path.read_text(encoding='utf-8'))
            state = record['state']
            found = record.pop('runs', [])
            runs = tuple(
                StudyRun(
                    RunKey(one['judge'], one['recording'], one['model'], one['repetition']),
                    one['scenario'],
                    one['group'],
                    one['values'],
                    from_records(one['notes']),
                )
                for one in found
            )
        except OSError as error:
            raise Sim2RealError(
                f'{path}: cannot be read: {error.strerror}; must be a folder that `sim2real '
                'study`, `vepd` or `demo` wrote'
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Sim2RealError(f'{path}: is not the record of a study') from None
        if state != 'finished':
            raise Sim2RealError(f'{folder}: the study is not finished; give its command again')
        return cls(record, runs, RunStore(path.parent).signals)

    @property
    def judges(self) -> list[str]:
        """Labels of the judges, in the order of the study."""
        return list(dict.fromkeys(run.key.judge for run in self.runs))

    @property
    def models(self) -> list[str]:
        """Labels of the simulated variants, in the order of the study."""
        return list(dict.fromkeys(run.key.model for run in self.runs if not run.is_real))

    @property
    def scenarios(self) -> list[str]:
        """Scenarios, in the order of the recordings."""
        return list(dict.fromkeys(run.scenario for run in self.runs))

    @property
    def groups(self) -> list[str]:
        """Groups, in the order of the recordings; one empty label if there is none."""
        return list(dict.fromkeys(run.group for run in self.runs))

    @property
    def compared(self) -> list[tuple[str, str]]:
        """Pairs of judge and group that have both real and simulated runs, in order."""
        kinds: dict[tuple[str, str], set[bool]] = {}
        for run in self.runs:
            kinds.setdefault((run.key.judge, run.group), set()).add(run.is_real)
        return [pair for pair, found in kinds.items() if len(found) == 2]

    def of(
        self, judge: str, model: str, *, scenario: str | None = None, group: str | None = None
    ) -> list[StudyRun]:
        """Return the runs of a model, or `real`, under a judge, of one scenario, group or all."""
        return [
            run
            for run in self.runs
            if (run.key.judge, run.key.model) == (judge, model)
            and scenario in (None, run.scenario)
            and group in (None, run.group)
        ]

    def by_model(self, judge: str, group: str) -> dict[str, list[StudyRun]]:
        """Return the runs of each source that has any, `real` first."""
        return {
            model: runs
            for model in (REAL, *self.models)
            if (runs := self.of(judge, model, group=group))
        }

    def part(self, group: str) -> StudyOutcome:
        """Return what there is of a group of recordings."""
        return dataclasses.replace(
            self, runs=tuple(run for run in self.runs if run.group == group)
        )

    def signals(self, key: RunKey) -> EstimateSignals:
        """Read the signals of a run.

        Raises
        ------
        Sim2RealError
            When the file cannot be read.
        """
        return self.load(key)

    def series(self, key: RunKey) -> VelocitySeries:
        """Return what was scored of a run: the component of the study, warm-up left out."""
        signals = self.signals(key)
        component = self.record['component']
        whole = VelocitySeries(
            se_time=signals.time,
            se_vel=speed(signals.velocity, signals.orientation, component),
            gt_time=signals.true_time,
            gt_vel=speed(signals.true_velocity, signals.true_orientation, component),
            name=f'{key.recording} ({key.model})',
        )
        return prepare(whole, MetricOptions.from_mapping(self.record['metric'], 'metric'))

    def forward_rmse(self, judge: str, group: str | None = None) -> dict[tuple[str, str], float]:
        """Return the mean body-forward RMSE in m/s by (model, scenario), `all` for pooled."""
        found: dict[tuple[str, str], list[float]] = {}
        for model in (REAL, *self.models):
            for run in self.of(judge, model, group=group):
                for scenario in (run.scenario, POOLED):
                    found.setdefault((model, scenario), []).append(run.values['forward_rmse'])
        return {place: float(np.mean(values)) for place, values in found.items()}

    def table(self, judge: str, group: str | None = None) -> list[VepdRow]:
        """Return the VEPD of every model per scenario and pooled, under a judge."""

        def scores(model: str) -> dict[str, list[RunScore]]:
            found: dict[str, list[RunScore]] = {}
            for run in self.of(judge, model, group=group):
                found.setdefault(run.scenario, []).append(run.score)
            return found

        return vepd_table(scores(REAL), {model: scores(model) for model in self.models})


# Estimated and true speed of a run of a study, from its signals.


def speed_series(signals: EstimateSignals, name: str = '') -> dict[str, VelocitySeries]:
    """Return estimated and true speed, whole, by component (`sim2real_eval.metrics.speed`)."""
    estimated = all_speeds(signals.velocity, signals.orientation)
    true = all_speeds(signals.true_velocity, signals.true_orientation)
    return {
        component: VelocitySeries(
            se_time=signals.time,
            se_vel=estimated[component],
            gt_time=signals.true_time,
            gt_vel=true[component],
            name=name,
        )
        for component in estimated
    }


def speed_error(signals: EstimateSignals, component: str, options: MetricOptions) -> FloatArray:
    """Return estimated less true speed, (n,) m/s, on the grid of the score.

    Raises
    ------
    MetricError, SeriesError
        As `sim2real_eval.metrics.score_run`.
    """
    run = resample(speed_series(signals)[component], options)
    return run.se_vel - run.gt_vel
