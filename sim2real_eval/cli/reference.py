# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real reference`: a reference trajectory for recordings that have no truth."""

from __future__ import annotations

import argparse
import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim2real_eval.common.findings import Severity, UnusableFitError, from_records, to_records
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.parameters import Parameters, parameter
from .arguments import add_out, add_recordings, add_shared, sources, transforms_of
from .options import OptionSet, optional_text
from .output import attempt_each, conclude, print_notes
from .parser import complain

if TYPE_CHECKING:
    from sim2real_eval.judge.smoother.smoother import SmootherJudge
    from sim2real_eval.recording.reading import RecordingSource
    from sim2real_eval.recording.recording import Recording

DESCRIPTION = (
    'Smooth the IMU and GPS of whole recordings with GTSAM, and write copies of the recordings '
    'to DIR/<name> with the result as ground truth, labelled as a reference, and a plot '
    'reference.png.'
)
EPILOG = """\
The reference is computed from the IMU and GPS of the recording itself, so it is not an
independent truth. Every result that uses it has a finding about this.

examples:
  sim2real reference my_bag --out with_reference
  sim2real reference bags/* --config my_imu.yaml --storage csv --out with_reference
  sim2real vepd with_reference/* --models ch_rw,airsim --out result
"""


@dataclasses.dataclass(frozen=True)
class ReferenceOptions(Parameters):
    """Settings of a reference."""

    config: str | None = optional_text(
        'Settings of IMU noise, GPS noise, start and loss: shipped (default, chrono) or a YAML '
        'file (default: default).'
    )
    start_heading: float | None = parameter(
        None,
        'deg',
        'Yaw of base_link at the first fix, counter-clockwise from east (default: from '
        "the IMU's orientation, otherwise the course over ground).",
        optional=float,
    )
    rate: float = parameter(100.0, 'Hz', 'Rate of the reference.', above=0.0)
    replace_truth: bool = parameter(False, '', 'Replace an existing truth by the reference.')


# Beginnings of codes.
_UNIT_FAULTS = (
    'check.acceleration_unit',
    'check.gravity_scale',
    'check.no_gravity',
    'check.force_reversed',
    'check.rate_unit',
    'check.rate_reversed',
    'check.rate_scale',
    'check.fixes_swapped',
)
_REFERENCE = OptionSet(
    ReferenceOptions,
    config='--config NAME|FILE',
    rate='--pose-rate',
    start_heading='--initial-heading DEG',
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_recordings(parser)
    _REFERENCE.add(parser)
    add_shared(parser, 'topic', 'transforms', 'storage')
    add_out(
        parser,
        'folder for a recording per input, NAME, with its plot NAME/reference.png',
        'json',
        required=True,
    )


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.judge.smoother.smoother import SmootherJudge

    chosen = _REFERENCE.make(options)
    judge = SmootherJudge.load(chosen.config)
    parameters = dataclasses.replace(judge.parameters, output_frequency=chosen.rate)
    judge = dataclasses.replace(judge, parameters=parameters)
    recordings = sources(options.recordings, options.topic)
    if (transforms := transforms_of(options)) is not None:
        recordings = [dataclasses.replace(source, transforms=transforms) for source in recordings]
    unusable: list[str] = []

    def attempt(source: RecordingSource) -> dict[str, Any] | None:
        try:
            return _write_reference(source, judge, chosen, options)
        except UnusableFitError as error:
            unusable.append(str(error))
            return None

    results, failures = attempt_each(recordings, attempt)
    written = [record for record in results if record is not None]
    for problem in unusable:
        complain(problem)

    def print_result() -> None:
        for record in written:
            print(f'{record["out"]}: {record["estimates"]} poses over {record["seconds"]:.1f} s')
            deviation = record['deviation']
            print(
                f'  median deviation: position {deviation["position_m"]:.3g} m, '
                f'height {deviation["height_m"]:.3g} m, speed {deviation["speed_m_s"]:.3g} m/s, '
                f'heading {math.degrees(deviation["heading_rad"]):.3g} deg'
            )
            print_notes(from_records(record['notes']))

    return conclude(options, written, print_result, failures=[*failures, *unusable])


def _check_units(path: str, recording: Recording, base_frame: str) -> None:
    """Raise UnusableFitError if units or signs of the sensors are wrong.

    With fixes close together the smoother converges even then, to a wrong attitude.
    """
    from sim2real_eval.preflight.checks import remarks

    for finding in remarks(recording.with_messages('truth', None), (), base_frame=base_frame):
        if finding.severity is Severity.DECISIVE and finding.code.startswith(_UNIT_FAULTS):
            raise UnusableFitError(f'{path}: no reference: {finding}')


def _write_reference(
    source: RecordingSource,
    judge: SmootherJudge,
    chosen: ReferenceOptions,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Compute and write one recording; return its summary."""
    from sim2real_eval.judge.smoother.smoother import make_reference
    from sim2real_eval.recording.writing import write_recording
    from sim2real_eval.report.reference import reference_figure
    from sim2real_eval.report.style import save_png

    recording = source.read()
    target = Path(options.out) / recording.name
    if target.exists():
        raise Sim2RealError(f'{target}: exists already; choose another --out')
    _check_units(source.path, recording, judge.base_link_frame)
    heading = chosen.start_heading
    reference = make_reference(
        recording,
        judge,
        start_heading=None if heading is None else math.radians(heading),
        replace_truth=chosen.replace_truth,
    )
    label = reference.recording.reference
    assert label is not None
    title = f'{recording.name}: reference by {label.made_by}; not independent of the sensors'

    def draw(folder: Path) -> None:
        save_png(reference_figure(reference.judged, title), folder / 'reference.png')

    write_recording(reference.recording, target, storage=options.storage, beside=draw)
    stamps = reference.judged.stamp_ns
    return {
        'recording': source.path,
        'out': str(target),
        'topic': label.topic,
        'estimates': len(stamps),
        'seconds': float(stamps[-1] - stamps[0]) * 1e-9,
        'deviation': dict(label.deviation),
        'figure': str(target / 'reference.png'),
        'notes': to_records([*recording.notes, *reference.judged.notes]),
    }
