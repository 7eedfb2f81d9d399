# SPDX-License-Identifier: Apache-2.0
"""`sim2real reference`: a reference trajectory for recordings that have no truth."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

from sim2real_eval.cli.arguments import (
    add_json,
    add_storage,
    add_topics,
    add_transforms,
    at_least,
    sources,
)
from sim2real_eval.cli.output import (
    print_json,
    print_notes,
    progress_bar,
    report_failures,
    successes,
)
from sim2real_eval.common.findings import from_records, to_records
from sim_sensors.core.errors import Sim2RealError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sim2real_eval.judge.smoother.smoother import SmootherJudge
    from sim2real_eval.recording.reading import Source

HELP = 'recordings without truth -> the same with a smoothed reference trajectory'
DESCRIPTION = (
    'Smooth the IMU and GPS of recordings with GTSAM over their whole length, and '
    'write the recordings with the result as their ground truth, labelled as a reference: '
    'DIR/<name>, with reference.png inside.'
)
EPILOG = """\
The reference is made from the recording's own IMU and GPS. It is no independent truth, the
recording says so, and whoever reads it is told.

examples:
  sim2real reference my_bag --out with_reference
  sim2real reference bags/* --config my_imu.yaml --storage csv --out with_reference
  sim2real vepd --real with_reference/* --models ch_rw,airsim --out result
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument('recordings', nargs='+', metavar='RECORDING', help='bag or CSV folder')
    parser.add_argument(
        '--config',
        metavar='NAME|FILE',
        help='noise of IMU and GPS, start, loss: shipped (default, chrono) or a YAML file '
        '(default: default)',
    )
    parser.add_argument(
        '--start-heading',
        type=_degrees,
        metavar='DEG',
        help='yaw of base_link at the first fix, counter-clockwise from east (default: from the '
        "IMU's orientation, else the course over ground)",
    )
    parser.add_argument(
        '--rate',
        type=at_least(0, float, above=True),
        default=100.0,
        metavar='HZ',
        help='of the reference (default 100)',
    )
    parser.add_argument(
        '--replace-truth', action='store_true', help='put the reference in the place of a truth'
    )
    add_topics(parser)
    add_transforms(parser)
    add_storage(parser)
    parser.add_argument('--out', required=True, metavar='DIR', help='folder for the recordings')
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    import dataclasses
    from pathlib import Path

    from sim2real_eval.judge.smoother.smoother import SmootherJudge
    from sim2real_eval.recording.frames import TransformFile

    judge = SmootherJudge.load(options.config)
    parameters = dataclasses.replace(judge.parameters, output_frequency=options.rate)
    judge = dataclasses.replace(judge, parameters=parameters)
    found = sources(options.recordings, options.topic, None)
    if options.transforms is not None:
        transforms = TransformFile.from_file(options.transforms)
        found = [dataclasses.replace(source, transforms=transforms) for source in found]

    def attempt(source: Source) -> dict[str, Any]:
        return _written(source, judge, Path(options.out), options)

    failures: list[str] = []
    with progress_bar(len(found), 'recordings') as advance:
        written = list(successes(found, attempt, failures, advance))
    report_failures(failures, of=len(found))
    if options.json:
        print_json(written)
    else:
        for one in written:
            print(f'{one["out"]}: {one["estimates"]} poses over {one["seconds"]:.1f} s')
            print(f'  median deviation: {_in_words(one["deviation"])}')
            print_notes(from_records(one['notes']))
    return 1 if failures else 0


def _written(
    source: Source, judge: SmootherJudge, out: Path, options: argparse.Namespace
) -> dict[str, Any]:
    """Make and write one recording; return what there is to say about it."""
    from sim2real_eval.judge.smoother.reference import make_reference
    from sim2real_eval.recording.writing import write_recording
    from sim2real_eval.report.reference import save_reference

    recording = source.read()
    target = out / recording.name
    if target.exists():
        raise Sim2RealError(f'{target}: exists already; choose another --out')
    made = make_reference(
        recording, judge, start_heading=options.start_heading, replace_truth=options.replace_truth
    )
    write_recording(made.recording, target, storage=options.storage)
    label = made.recording.reference
    assert label is not None
    title = f'{recording.name}: reference by {label.made_by}; not independent of the sensors'
    save_reference(target / 'reference.png', made.judged, title)
    stamps = made.judged.stamp_ns
    return {
        'recording': source.path,
        'out': str(target),
        'topic': label.topic,
        'estimates': len(stamps),
        'seconds': float(stamps[-1] - stamps[0]) * 1e-9,
        'deviation': dict(label.deviation),
        'figure': str(target / 'reference.png'),
        'notes': to_records([*recording.notes, *made.judged.notes]),
    }


def _in_words(deviation: Mapping[str, float]) -> str:
    return (
        f'position {deviation["position_m"]:.3g} m, height {deviation["height_m"]:.3g} m, '
        f'speed {deviation["speed_m_s"]:.3g} m/s, '
        f'heading {math.degrees(deviation["heading_rad"]):.3g} deg'
    )


def _degrees(text: str) -> float:
    try:
        value = math.radians(float(text))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f'{text!r} must be a finite number of degrees')
    return value
