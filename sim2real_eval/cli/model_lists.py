# SPDX-License-Identifier: Apache-2.0
"""Lists of sensor models on the command line, and the simulated variants that they stand for."""

from __future__ import annotations

from collections.abc import Sequence

from sim2real_eval.simulation.twin import REAL_SENSOR, Twin
from sim_sensors.core.errors import ParameterError


def twins(gps: str, imu: str) -> tuple[Twin, ...]:
    """Return the variants that lists of GPS and IMU models stand for.

    Parameters
    ----------
    gps, imu : str
        Model names or files, separated by commas; `real` keeps the recording's own sensor;
        `paper` and `all` stand for the paper's five GPS models and for all presets.

    Raises
    ------
    ParameterError
        For an unknown model, or when both sensors would stay real.
    """
    from sim_sensors.gps.gps import load_gps
    from sim_sensors.imu.imu import load_imu

    gps_names, imu_names = _pair(gps, imu)
    gps_labels, imu_labels = _labels(gps_names), _labels(imu_names)
    result = []
    for gps_name, gps_label in zip(gps_names, gps_labels, strict=True):
        for imu_name, imu_label in zip(imu_names, imu_labels, strict=True):
            labels = [label for label in (gps_label, imu_label) if label != REAL_SENSOR]
            if len(imu_names) == 1 and gps_name != REAL_SENSOR:
                labels = labels[:1]
            result.append(
                Twin(
                    label='+'.join(labels),
                    gps=None if gps_name == REAL_SENSOR else load_gps(gps_name),
                    imu=None if imu_name == REAL_SENSOR else load_imu(imu_name),
                )
            )
    return _distinct(result)


def single_sensors(gps: str, imu: str, mag: str = '') -> tuple[Twin, ...]:
    """Return a variant per IMU, GPS and magnetometer model, each with that sensor alone.

    For signals, which depend on the model of their own sensor only; see `twins`. Where models of
    two kinds share a name, the kind of sensor goes behind it.
    """
    from sim_sensors.sensor.catalogue import KINDS

    gps_names, imu_names = _pair(gps, imu)
    named = {
        'imu': [name for name in imu_names if name != REAL_SENSOR],
        'gps': [name for name in gps_names if name != REAL_SENSOR],
        'mag': _listed(mag, 'mag'),
    }
    labels = {kind: _labels(found) for kind, found in named.items()}
    everything = [label for found in labels.values() for label in found]
    result = []
    for kind, found in named.items():
        for name, own in zip(found, labels[kind], strict=True):
            alone = everything.count(own) == labels[kind].count(own)
            model = KINDS.get(kind).load(name)
            result.append(
                Twin(
                    own if alone else f'{own}_{kind}',
                    gps=model if kind == 'gps' else None,
                    imu=model if kind == 'imu' else None,
                    others={} if kind in ('gps', 'imu') else {kind: model},
                )
            )
    return _distinct(result)


def _pair(gps: str, imu: str) -> tuple[list[str], list[str]]:
    """Return the names in both lists; one of each at least, and not both real."""
    gps_names, imu_names = _listed(gps, 'gps'), _listed(imu, 'imu')
    if not gps_names or not imu_names:
        raise ParameterError('models', '', 'no model is named; must be one or more')
    if REAL_SENSOR in gps_names and REAL_SENSOR in imu_names:
        raise ParameterError('models', '', 'GPS and IMU cannot both stay real: nothing to compare')
    return gps_names, imu_names


def _listed(text: str, kind: str) -> list[str]:
    """Return the names in a list, each once, the words paper and all written out."""
    from sim_sensors.gps.gps import PAPER_MODELS
    from sim_sensors.sensor.catalogue import names

    found: list[str] = []
    for entry in filter(None, (part.strip() for part in text.split(','))):
        if entry == 'all':
            found += names(kind)
        elif entry == 'paper' and kind == 'gps':
            found += PAPER_MODELS
        else:
            found.append(entry)
    return list(dict.fromkeys(found))


def _labels(given: Sequence[str]) -> list[str]:
    """Name models: presets and files by their name, files that share one by their folder."""
    from pathlib import Path

    from sim_sensors.core.registry import is_in_file

    stems = [Path(name).stem for name in given]
    labels = []
    for name, stem in zip(given, stems, strict=True):
        path = Path(name)
        folder = path.resolve().parent.name
        if is_in_file(name):
            labels.append(name.rpartition(':')[2])
        elif path.suffix not in ('.yaml', '.yml'):
            labels.append(stem.replace(':', '_'))
        elif stem in ('imu', 'gps') and folder not in ('', REAL_SENSOR):
            # What `allan` and `characterize` write is always called so.
            labels.append(folder)
        else:
            labels.append(f'{folder}_{stem}' if stems.count(stem) > 1 else stem)
    return labels


def _distinct(result: Sequence[Twin]) -> tuple[Twin, ...]:
    labels = [twin.label for twin in result]
    for label in labels:
        if labels.count(label) > 1 or label == REAL_SENSOR:
            raise ParameterError(
                'models', label, 'is the name of several variants; give the files other names'
            )
    return tuple(result)
