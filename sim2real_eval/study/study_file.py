# SPDX-License-Identifier: Apache-2.0
"""Study files: an experiment as a file that people write."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.metrics.uncertainty.result import UncertaintyOptions
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.comparison import Source
from sim2real_eval.study.entry import Entry
from sim2real_eval.study.judges import StudyJudge, read_judges
from sim2real_eval.study.metric import METRICS
from sim2real_eval.study.recordings import StudyRecording, of_sources, read_recordings
from sim2real_eval.study.stand_in import PathDrive, read_drive
from sim2real_eval.study.variants import Condition, read_conditions, read_twins
from sim_sensors.core.config_files import config_names, config_path, read_yaml_mapping
from sim_sensors.core.registry import file_of

__all__ = ['KEYS', 'Overrides', 'StudyFile', 'study_path']

KEYS = MappingProxyType(
    {
        'title': 'Name of the study.',
        'about': 'What it asks, and what it can answer.',
        'seed': 'Of all random draws; integer, default 0.',
        'repetitions': 'Simulated runs per recording and variant; default 1.',
        'component': 'Speed that is compared: horizontal (default), forward, x or y.',
        'start_heading': 'Start the judges with the true heading; default false.',
        'match_rates': 'Simulate at the rates of the real sensors; default false.',
        'metric': 'Options of the metric.',
        'recordings': 'Real recordings, or stand-ins for them.',
        'models': 'Simulated variants.',
        'simulate_on': 'truth (default) or drive: which motion simulated sensors follow.',
        'judges': 'Who estimates; default paper_released.',
        'conditions': 'What happens to the fixes of real and simulated runs alike.',
        'uncertainty': 'Options of the statistics.',
        'more_metrics': 'Metrics in files, such as my_metric.py:MyMetric.',
    }
)
"""Keys of a study file and what they mean."""

_COMPONENTS = ('horizontal', 'forward', 'x', 'y')


@dataclasses.dataclass(frozen=True)
class Overrides:
    """What the command line says in place of a study file; None: nothing.

    Attributes
    ----------
    real : sequence of Source or None
        Recordings in place of those of the file.
    seed : int or None
    runs : int or None
        Stand-ins per scenario.
    simulate_on : str or None
        `truth` or `drive`.
    resamples : int or None
    level : float or None
        Of the statistics, see `UncertaintyOptions`.
    """

    real: Sequence[Source] | None = None
    seed: int | None = None
    runs: int | None = None
    simulate_on: str | None = None
    resamples: int | None = None
    level: float | None = None

    def words(self) -> list[str]:
        """Return the options of `sim2real study` that say so."""
        words: list[str] = []
        for option, value in (
            ('--seed', self.seed),
            ('--runs', self.runs),
            ('--simulate-on', self.simulate_on),
            ('--resamples', self.resamples),
            ('--level', self.level),
        ):
            if value is not None:
                words += [option, str(value)]
        if self.real:
            # The command line gives all of them the same topics and scenario.
            first = self.real[0]
            for role, topic in first.topics:
                words += ['--topic', f'{role}={topic}']
            if first.scenario is not None:
                words += ['--scenario', first.scenario]
            # Last, where the words that follow it cannot be taken for paths.
            words += ['--real', *(source.path for source in self.real)]
        return words


@dataclasses.dataclass(frozen=True, eq=False)
class StudyFile:
    """What a study file says, with what the command line says in its place.

    Attributes
    ----------
    path : Path
    text : bytes
        Of the file, as it is.
    title, about : str
    seed, repetitions : int
    component : str
    start_heading, match_rates : bool
    metric : MetricOptions
    recordings : tuple of StudyRecording
    twins : tuple of Twin
    drive : PathDrive or None
        Drives that simulated sensors follow, without scenario and run; None: the recordings'
        own true motions.
    judges : tuple of StudyJudge
    conditions : tuple of Condition
        One without a label when the file has none.
    uncertainty : UncertaintyOptions
    more_metrics : tuple of str
        Classes in files, beside the metrics that are installed.
    overrides : Overrides
    """

    path: Path
    text: bytes
    title: str
    about: str
    seed: int
    repetitions: int
    component: str
    start_heading: bool
    match_rates: bool
    metric: MetricOptions
    recordings: tuple[StudyRecording, ...]
    twins: tuple[Twin, ...]
    drive: PathDrive | None
    judges: tuple[StudyJudge, ...]
    conditions: tuple[Condition, ...]
    uncertainty: UncertaintyOptions
    more_metrics: tuple[str, ...]
    overrides: Overrides

    @classmethod
    def read(cls, name_or_path: str | Path, overrides: Overrides | None = None) -> StudyFile:
        """Read a study file.

        Parameters
        ----------
        name_or_path : str or Path
            Name of a shipped study or path of a YAML file; paths in it are relative to it.
        overrides : Overrides, optional

        Raises
        ------
        Sim2RealError
            On the first thing that is wrong: file, key path, value and what is allowed.
        """
        over = overrides or Overrides()
        path = study_path(name_or_path)
        where, folder = str(path), path.parent
        whole = Entry(where, '', read_yaml_mapping(path))
        fields = whole.fields(tuple(KEYS), required=('title', 'models'))
        if over.seed is not None:
            seed = over.seed
        else:
            seed = fields['seed'].integer(0) if 'seed' in fields else 0
        default_judge = Entry(where, 'judges', ['paper_released'])
        return cls(
            path=path,
            text=path.read_bytes(),
            title=fields['title'].text(),
            about=fields['about'].text() if 'about' in fields else '',
            seed=seed,
            repetitions=fields['repetitions'].integer(1) if 'repetitions' in fields else 1,
            component=fields['component'].text(_COMPONENTS)
            if 'component' in fields
            else _COMPONENTS[0],
            start_heading='start_heading' in fields and fields['start_heading'].flag(),
            match_rates='match_rates' in fields and fields['match_rates'].flag(),
            metric=_metric(fields),
            recordings=_recordings(whole, fields, folder, seed, over),
            twins=read_twins(fields['models'], folder),
            drive=_drive(whole, fields, seed, over),
            judges=read_judges(fields.get('judges', default_judge), folder),
            conditions=read_conditions(fields['conditions'])
            if 'conditions' in fields
            else (Condition(),),
            uncertainty=_uncertainty(fields, over),
            more_metrics=_more_metrics(fields, folder),
            overrides=over,
        )

    @property
    def is_shipped(self) -> bool:
        """Whether it is one of those that can be had by name."""
        return self.path.resolve().parent == config_path('studies').resolve()

    def command(self) -> list[str]:
        """Return the words that carry it out; a file that is not shipped without its folder."""
        name = self.path.stem if self.is_shipped else self.path.name
        return ['sim2real', 'study', name, '--out', 'result', *self.overrides.words()]


def study_path(name_or_path: str | Path) -> Path:
    """Return the file of a shipped study by its name, or the path given.

    Raises
    ------
    Sim2RealError
        When no study of that name is shipped.
    """
    path = Path(name_or_path)
    if path.suffix in ('.yaml', '.yml') or len(path.parts) > 1:
        return path
    name = str(name_or_path)
    known = config_names('studies')
    if name not in known:
        Entry('study', '', name).refuse_value(
            f'one of {", ".join(known)}, or a path of a YAML file', known
        )
    return config_path('studies', f'{name}.yaml')


def _metric(fields: dict[str, Entry]) -> MetricOptions:
    if 'metric' not in fields:
        return MetricOptions()
    entry = fields['metric']
    return MetricOptions.from_mapping(entry.value, entry.where, entry.key)


def _more_metrics(fields: dict[str, Entry], folder: Path) -> tuple[str, ...]:
    entries = fields['more_metrics'].items('metrics') if 'more_metrics' in fields else []
    found = []
    for entry in entries:
        kind = METRICS.get(entry.text(), where=entry.where, key=entry.key, folder=folder)
        path = file_of(kind)
        found.append(entry.text() if path is None else f'{path}:{kind.__name__}')
    return tuple(found)


def _recordings(
    whole: Entry, fields: dict[str, Entry], folder: Path, seed: int, over: Overrides
) -> tuple[StudyRecording, ...]:
    if over.real is not None:
        return of_sources(over.real)
    if 'recordings' not in fields:
        whole.field('recordings').refuse('is missing; name them here, or with --real')
    return read_recordings(fields['recordings'], folder, seed=seed, runs=over.runs)


def _drive(whole: Entry, fields: dict[str, Entry], seed: int, over: Overrides) -> PathDrive | None:
    entry = fields.get('simulate_on', Entry(whole.where, 'simulate_on', 'truth'))
    given = read_drive(Entry(entry.where, entry.key, {}), seed)
    if entry.is_mapping:
        given = read_drive(entry.fields(('drive',), required=('drive',))['drive'], seed)
    else:
        entry.text(('truth', 'drive'))
    wanted = over.simulate_on or ('drive' if entry.is_mapping else entry.value)
    return given if wanted == 'drive' else None


def _uncertainty(fields: dict[str, Entry], over: Overrides) -> UncertaintyOptions:
    options = UncertaintyOptions()
    if 'uncertainty' in fields:
        entry = fields['uncertainty']
        options = UncertaintyOptions.from_mapping(entry.value, entry.where, entry.key)
    said = {'resamples': over.resamples, 'level': over.level}
    said = {name: value for name, value in said.items() if value is not None}
    return UncertaintyOptions.from_mapping({**options.to_mapping(), **said}, 'sim2real', '--')
