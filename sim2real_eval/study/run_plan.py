# SPDX-License-Identifier: Apache-2.0
"""Which runs a real recording gives rise to, and how each becomes a score once it is judged.

Who judges, and how, is the caller's: a batch run over arrays, or nodes on a live graph.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sim2real_eval.common.findings import Finding
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.protocol import Judge
from sim2real_eval.metrics.scores import RunScore, advice, prepare, score_run
from sim2real_eval.metrics.series import VelocitySeries, velocity_series
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.preflight.checks import remarks
from sim2real_eval.preflight.findings import OF_FIXES
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.roles import roles_heard
from sim2real_eval.simulation.ideal_imu import forget
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker, maker_with_field
from sim_sensors.world.world import World
from .adapting import OFF_TICKS_NS, lacks_heading, splits_fixes, true_heading
from .covariances import one_sided_covariances
from .findings import TRUTH_OF_FIXES
from .observation import observe
from .options import StudyOptions
from .run import AGAIN, OF_VEPD, EstimateSignals, RunKey, StudyRun


@dataclasses.dataclass(frozen=True, eq=False)
class Judging:
    """Who judges runs, and how they are simulated and scored."""

    setup: Judge
    options: StudyOptions = dataclasses.field(default_factory=StudyOptions)
    world: World | None = None  # what surrounds simulated sensors


class JudgedScore(NamedTuple):
    """What a judged run came to."""

    series: VelocitySeries  # what was scored: re-zeroed, warm-up left out
    score: RunScore
    # The same with body-forward speed, which unlike horizontal speed sees the heading.
    forward: RunScore
    notes: tuple[Finding, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class PlannedRun:
    """One run that is to be judged."""

    model: str  # `real` or the label of a twin
    repetition: int  # 1 for the real run
    twin: Twin | None  # sensors to simulate, at the rates at which they are; None for the real run


class Start(NamedTuple):
    """How a judge starts: keywords of its `judge`."""

    start_ns: int  # when its clock begins
    start_heading: float | None  # radians from east; None: as its parameter file says


class RunPlan:
    """The real run of a recording with truth, and those of its twins, which have distinct labels.

    Sim2RealError when the recording lacks truth, or a sensor has no message while there is truth.
    """

    def __init__(self, recording: Recording, twins: Sequence[Twin], judging: Judging) -> None:
        options = judging.options
        base = judging.setup.base_link_frame
        recording = roles_heard(recording, getattr(judging.setup, 'heard', ()))
        # Holds the recording as it is judged, its truth, and how the sensors of twins are set.
        # A magnetometer is in the field of the recording's own, where no world says another.
        make = maker_with_field if any('mag' in twin.others for twin in twins) else TwinMaker
        self.maker = make(recording, world=judging.world, seed=options.seed, base_frame=base)
        self.real = PlannedRun(REAL, 1, None)
        # Variant by variant, in each its repetitions.
        self.twins = tuple(
            PlannedRun(
                twin.label,
                repetition,
                self.maker.at_real_rates(twin) if options.match_rates else twin,
            )
            for twin in twins
            for repetition in range(1, options.repetitions + 1)
        )
        self._judging = judging
        self._recording = recording
        self._simulates_gps = any(twin.gps is not None for twin in twins)

    @functools.cached_property
    def _about(self) -> tuple[Finding, ...]:
        found = (*self._recording.notes, *self.maker.remarks)
        base = self._judging.setup.base_link_frame
        told = remarks(self._recording, found, base_frame=base, maker=self.maker)
        forget(self.maker)
        if not self._simulates_gps:
            return told
        # What is a warning about a recording decides a comparison of receivers.
        return tuple(
            TRUTH_OF_FIXES(one.subject, error=one.numbers['error'])
            if one.kind in OF_FIXES
            else one
            for one in told
        )

    def __iter__(self) -> Iterator[PlannedRun]:
        yield self.real
        yield from self.twins

    def recording(self, run: PlannedRun) -> Recording:
        """Return what is to be judged in a run."""
        if run.twin is None:
            return self.maker.real
        return self.maker.make(run.twin, run.repetition)

    def start_of(self, judge: Judge) -> Start:
        """Return how a judge starts that places sensors as that of the plan does."""
        options, real, start_ns = self._judging.options, self.maker.real, self.maker.start_ns
        turned = options.start_heading or (
            'start_heading' in options.adapts and lacks_heading(judge, real)
        )
        late = options.off_ticks or (
            'off_ticks' in options.adapts and splits_fixes(judge, real, start_ns)
        )
        return Start(
            start_ns + OFF_TICKS_NS * late, true_heading(self.maker.truth) if turned else None
        )

    @functools.cached_property
    def _start(self) -> Start:
        return self.start_of(self._judging.setup)

    def judge(self, run: PlannedRun) -> JudgedRun:
        """Judge a run here and now.

        Raises Sim2RealError when the recording lacks what the judge needs.
        """
        return self._judging.setup.judge(self.recording(run), **self._start._asdict())

    def score(self, run: PlannedRun, judged: JudgedRun) -> JudgedScore:
        """Score a run from what the judge published in it.

        Raises Sim2RealError when the judge published nothing, or what is left of it cannot be
        scored.
        """
        options = self._judging.options
        whole = self._series(judged, options.component, run.model)
        series = prepare(whole, options.metric)
        # What `prepare` did must not be done twice.
        rest = dataclasses.replace(options.metric, warmup=0.0, rezero='none')
        about = self._about if run.twin is None else self.maker.model_notes(run.twin)
        return JudgedScore(
            series=series,
            score=score_run(series, rest),
            forward=score_run(self._series(judged, 'forward', run.model), options.metric),
            notes=about + judged.notes + tuple(advice(whole, options.metric)),
        )

    def vepd_score(self, run: PlannedRun, judged: JudgedRun) -> RunScore:
        """Return the score alone of `score`, in a fraction of the time."""
        options = self._judging.options
        return score_run(self._series(judged, options.component, run.model), options.metric)

    def _series(self, judged: JudgedRun, component: str, model: str) -> VelocitySeries:
        return velocity_series(
            judged,
            self.maker.truth,
            origin_ns=self.maker.start_ns,
            component=component,
            name=f'{self.maker.real.name} ({model})',
        )

    def kept(
        self,
        run: PlannedRun,
        setup: Judge,
        recording: Recording,
        judged: JudgedRun,
        key: RunKey,
        group: str,
    ) -> tuple[StudyRun, EstimateSignals]:
        """Score a run and return what a study keeps of it: its numbers and signals.

        `setup` is who judged, `recording` what was judged. Raises Sim2RealError as `score` and
        `observe` do.
        """
        scored = self.score(run, judged)
        metric = self._judging.options.metric
        signals, seen = observe(setup, recording, judged, scored.series, metric)
        notes = scored.notes
        if run.twin is not None:
            notes += one_sided_covariances(self.maker.real, recording)
        values = {
            **dataclasses.asdict(scored.score),
            'forward_rmse': scored.forward.rmse,
            'estimates': len(judged),
            'fixes_used': len(judged.gps_stamp_ns),
            **seen,
        }
        if judged.again is not None:
            again = self.score(run, judged.again).score
            values |= {f'{name}{AGAIN}': getattr(again, name) for name in OF_VEPD}
        finite = {name: float(value) for name, value in values.items() if math.isfinite(value)}
        return StudyRun(key, self.maker.real.scenario, group, finite, notes), signals
