# SPDX-License-Identifier: Apache-2.0
"""Drift of wheel odometry alone and with a camera, and a comparison of its noise models."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from sim2real_eval.benches.findings import BLIND
from sim2real_eval.common.findings import Finding, by_severity, merge_findings
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.distances import vepd
from sim_sensors.wheels.encoders import NoWheelNoise, Slip, SteeringOffset
from sim_sensors.wheels.wheel_odometry import WheelOdometryModel, load_wheels
from .run import JUDGES, Drift, RecordedMotion, WheelRun, WheelSetup, wheel_run

# Share of a drive without a pose of the camera from which on it is told.
_BLIND = 0.1


@dataclasses.dataclass(frozen=True, eq=False)
class Driven:
    """What became of one drive."""

    drive: RecordedMotion
    # Pictures that the camera takes, and those with a tag in view: the same in every run.
    frames: int
    in_view: int
    real: tuple[WheelRun, ...]  # runs of the first variant that stand for the real robot
    runs: dict[str, tuple[WheelRun, ...]]  # by variant

    @property
    def all_runs(self) -> tuple[WheelRun, ...]:
        """Those of all variants."""
        return tuple(run for runs in self.runs.values() for run in runs)

    @property
    def poses(self) -> float:
        """Poses that the camera gave, mean of the runs: those gated or lost are not."""
        return float(np.mean([run.poses for run in self.all_runs]))

    @property
    def taken(self) -> float:
        """Poses that the judge did not refuse, mean of the runs."""
        return float(np.mean([run.taken for run in self.all_runs]))

    @property
    def longest_blind(self) -> float:
        """Longest time without a pose in any run, s."""
        return max(run.longest_blind for run in self.all_runs)

    def notes(self) -> tuple[Finding, ...]:
        """Return what the user should know of the drive and of what the camera saw of it."""
        notes = self.drive.notes()
        if self.longest_blind <= _BLIND * self.drive.duration:
            return notes
        return (BLIND(longest=self.longest_blind, duration=self.drive.duration), *notes)


@dataclasses.dataclass(frozen=True, eq=False)
class VariantResult:
    """What became of one noise variant."""

    label: str
    runs: tuple[WheelRun, ...]  # of all drives, one drive after the other
    vepd: dict[str, float]  # by judge, against the first variant in runs of its own

    @property
    def odometry(self) -> tuple[Drift, ...]:
        """The pose that the wheels tell, per run."""
        return tuple(run.odometry for run in self.runs)

    @property
    def fused(self) -> tuple[Drift, ...]:
        """The judge with wheels and camera, per run."""
        return tuple(run.fused for run in self.runs)

    @property
    def nees(self) -> tuple[float, ...]:
        """Mean normalised squared error of x and y of that judge, per run."""
        return tuple(run.nees for run in self.runs)


@dataclasses.dataclass(frozen=True, eq=False)
class WheelStudy:
    """A study that was made."""

    setup: WheelSetup
    driven: tuple[Driven, ...]  # at least one
    variants: tuple[VariantResult, ...]  # over all drives

    @property
    def title(self) -> str:
        """Name and length of what was driven."""
        way = sum(each.drive.way for each in self.driven)
        count = len(self.driven)
        name = self.driven[0].drive.name if count == 1 else f'{count} recordings'
        return f'{name}, {way:.0f} m'

    def notes(self) -> list[Finding]:
        """Return what the user should know, the most severe first."""
        if len(self.driven) == 1:
            return by_severity(self.driven[0].notes())
        return merge_findings(('driven', each.notes()) for each in self.driven)


def drive_variants(
    setup: WheelSetup, drive: RecordedMotion, advance: Callable[[], None] = lambda: None
) -> Driven:
    """Measure and judge all runs of all variants on one drive.

    The runs that stand for the real robot have noise of their own, so that the first variant, too,
    is compared with others than itself.

    `advance`: called after each run. Raises Sim2RealError when the drive, the world or a model
    does not do.
    """
    judges = {name: JudgeSetup.load(name) for name in JUDGES}

    def runs(label: str, wheels: WheelOdometryModel) -> tuple[WheelRun, ...]:
        made = []
        for number in range(1, setup.runs + 1):
            made.append(wheel_run(drive, setup, wheels, judges, f'{label}/{number}'))
            advance()
        return tuple(made)

    camera = setup.vision.start(setup.seed, drive.label, world=setup.world)
    _, seen = camera.measure_all(drive.motion)
    return Driven(
        drive=drive,
        frames=len(seen.count),
        in_view=int(np.sum(seen.count > 0)),
        real=runs('real', next(iter(setup.variants.values()))),
        runs={label: runs(label, wheels) for label, wheels in setup.variants.items()},
    )


def study_of(setup: WheelSetup, driven: Sequence[Driven]) -> WheelStudy:
    """Put drives together, at least one; VEPD is that of the runs of all."""
    results = []
    for label in setup.variants:
        runs = tuple(run for each in driven for run in each.runs[label])
        found = {
            name: float(
                vepd(
                    [run.scores[name] for each in driven for run in each.real],
                    [run.scores[name] for run in runs],
                ).vepd
            )
            for name in JUDGES
        }
        results.append(VariantResult(label, runs, found))
    return WheelStudy(setup, tuple(driven), tuple(results))


SINGLE_ERRORS = 'errors'
"""Word that stands for all of them in a list of models."""


def single_errors() -> dict[str, WheelOdometryModel]:
    """Return models with one error each, by label.

    The noise of the squared increment and the offset of the steering, as the text of [FRC3176] has
    it (`exact`) and as its code has (`as_upstream`), with the numbers of the preset `frc_swerve`;
    variance per distance, slips and wrong radii with those of `swerve`, the same robot.
    """
    source, ours = load_wheels('frc_swerve'), load_wheels('swerve')
    bare = dataclasses.replace(
        ours, noise=NoWheelNoise(), slip=Slip(), radius_error=0.0, steering_offset=SteeringOffset()
    )
    exact = dataclasses.replace(source.steering_offset, variant='exact')
    upstream = dataclasses.replace(exact, variant='as_upstream')
    return {
        'squared': dataclasses.replace(bare, noise=source.noise),
        'per_distance': dataclasses.replace(bare, noise=ours.noise),
        'slip': dataclasses.replace(bare, slip=ours.slip),
        'radius': dataclasses.replace(bare, radius_error=ours.radius_error),
        'steering_text': dataclasses.replace(bare, steering_offset=exact),
        'steering_code': dataclasses.replace(bare, steering_offset=upstream),
    }
