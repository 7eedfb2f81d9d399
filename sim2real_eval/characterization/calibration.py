# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A calibration recording: the GPS and the IMU in it, each as far as it is there."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding, UnusableFitError
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.imu.chain import ImuChain
from . import findings
from .analysis import RecordingResult, analyse
from .gps_characterization import GpsResult, ModelCheck, characterize_gps, check_models, mounting
from .noise_terms import NoiseTerms
from .options import AllanOptions, PoseOptions
from .poses import PoseCalibration, calibrate_poses
from .recovered_parameters import Reidentified, fit_imu, reidentify
from .signals import SignalFileError, signals_of
from .standstill_fixes import StandingOptions

# s; below it a driving bag shows hardly more than white noise.
_SHORT = 120.0


@dataclasses.dataclass(frozen=True, eq=False)
class ImuResult:
    """Calibration of one IMU: the Allan analysis of each standstill, the mean terms by axis,
    the model made of them, and that model simulated and analysed again.
    """

    options: AllanOptions
    results: tuple[RecordingResult, ...]
    terms: dict[str, NoiseTerms]
    model: ImuChain
    again: Reidentified
    notes: tuple[Finding, ...]
    poses: PoseCalibration | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Calibration:
    """A sensor set, by the names of its recordings.

    Attributes
    ----------
    gps, imu : GpsResult or None, ImuResult or None
    gps_checks : tuple of ModelCheck
        The GPS models, simulated like the record; `gps` is the first.
    problems : tuple of str
        Why a sensor that is there could not be characterised.
    """

    names: tuple[str, ...]
    gps: GpsResult | None
    gps_checks: tuple[ModelCheck, ...]
    imu: ImuResult | None
    problems: tuple[str, ...]
    notes: tuple[Finding, ...]
    seed: int

    @property
    def recommended_gps(self) -> str | None:
        """Name of the first GPS model that passes its check; None if none does."""
        return next((check.model for check in self.gps_checks if check.is_consistent), None)


def calibrate(
    recordings: Sequence[Recording],
    *,
    k: float = 0.02,
    base: str = 'base_link',
    options: AllanOptions | None = None,
    units: Mapping[str, float] | None = None,
    seed: int = 0,
    progress: Callable[[], None] = lambda: None,
    poses: Recording | None = None,
    held: PoseOptions | None = None,
) -> Calibration:
    """Characterise every sensor that stands still in the recordings.

    These are of one vehicle with one set of sensors. SignalFileError when there is neither a GPS
    nor an IMU, or what there is never stands still.

    `k` is the deviation that HDOP 1 stands for, m, and `base` the frame of the body, to which
    lever arms lead. `options` say how the IMU is analysed, and whether what moves is kept or left
    out, of the GPS too; `units` what 1 of the recordings' gyroscope and accelerometer is in SI
    (default 1). `seed` is that of the simulations that check the models; `progress` is called
    three times. A recording of `poses`, `held` as those options say, tells bias, scale and
    misalignment of the IMU; see `calibrate_poses`.
    """
    problems: list[Sim2RealError] = []
    options = options or AllanOptions()
    standing = StandingOptions(reject_motion=options.reject_motion)
    gps = None
    checks: tuple[ModelCheck, ...] = ()
    with_gps = [recording for recording in recordings if recording.gps is not None]
    with_imu = [recording for recording in recordings if recording.imu is not None]
    if not with_gps and not with_imu:
        first = recordings[0]
        raise SignalFileError(
            f'{first.path or first.name}: neither a GPS nor an IMU; name one with --topic'
        )
    if with_gps:
        try:
            gps = characterize_gps(with_gps, k=k, base=base, options=standing)
        except SignalFileError as error:
            problems.append(error)
    progress()
    if gps is not None:
        checks = tuple(check_models(gps, seed))
    progress()
    imu = None
    if with_imu:
        try:
            imu = _imu(with_imu, base, options, units or {}, seed)
            if poses is not None:
                turned = calibrate_poses(signals_of(poses).converted(units or {}), held)
                model = turned.applied(imu.model)
                imu = dataclasses.replace(imu, model=model, poses=turned)
        except UnusableFitError as error:
            problems.append(error)
            imu = None
        except Sim2RealError as error:
            problems.append(error)
    progress()
    if gps is None and imu is None:
        if isinstance(problems[-1], UnusableFitError):
            raise problems[-1]
        raise SignalFileError(
            f'{problems[0]}; a calibration needs a standstill, best of many minutes'
        )
    notes: list[Finding] = []
    if checks and not any(check.is_consistent for check in checks):
        worst = checks[0].worst
        values = {'record': worst.record, 'lower': worst.lower, 'upper': worst.upper}
        notes.append(findings.NOT_RECOMMENDED('GPS', statistic=worst, **values))
    if not with_gps:
        notes.append(findings.NO_SENSOR(sensor='GPS', file='gps.yaml'))
    if not with_imu:
        notes.append(findings.NO_SENSOR(sensor='IMU', file='imu.yaml'))
    names = tuple(recording.name for recording in recordings)
    return Calibration(names, gps, checks, imu, tuple(map(str, problems)), tuple(notes), seed)


def _imu(
    recordings: Sequence[Recording],
    base: str,
    options: AllanOptions,
    units: Mapping[str, float],
    seed: int,
) -> ImuResult:
    results: list[RecordingResult] = []
    used: list[Recording] = []
    notes: list[Finding] = []
    problems: list[Sim2RealError] = []
    for recording in recordings:
        try:
            results.append(analyse(signals_of(recording).converted(units), options))
            used.append(recording)
        except Sim2RealError as error:
            problems.append(error)
            continue
        result_notes = results[-1].notes
        notes += [
            n.restrict_to(recording.name) if len(recordings) > 1 else n for n in result_notes
        ]
    if not results:
        raise problems[0]
    notes += [findings.LEFT_OUT(sensor='IMU', problem=str(problem)) for problem in problems]
    fitted = fit_imu(results, options.weights, shortest=_SHORT)
    array = used[0].imu
    assert array is not None
    model = dataclasses.replace(fitted.model, frame_id=array.frame or fitted.model.frame_id)
    place, unknown = mounting(used[0], array.frame, base)
    notes += unknown
    if fitted.seconds < _SHORT:
        notes.append(findings.SHORT_STANDSTILL(seconds=fitted.seconds))
    if place is not None:
        model = model.mounted(place[1], Rotation.from_matrix(place[0]).as_quat())
    again = reidentify(model, fitted.terms, fitted.samples, seed=seed)
    return ImuResult(options, tuple(results), fitted.terms, model, again, tuple(notes))
