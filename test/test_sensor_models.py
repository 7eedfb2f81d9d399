# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A model of one's own: one class in one file, or in a package that is installed."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import parameter, to_variant
from sim_sensors.core.registry import source_digest
from sim_sensors.gps.gps import GpsModel, load_gps
from sim_sensors.imu.imu import ImuModel
from sim_sensors.motion.scenarios import Standstill
from sim_sensors.sensor.catalogue import kinds, preset_names

MODEL = '''
import dataclasses

import numpy as np

from sim_sensors.core.parameters import parameter
from sim_sensors.gps.gps import GpsModel
from sim_sensors.gps.gps import PositionNoise


@dataclasses.dataclass(frozen=True)
class Offset(PositionNoise):
    """A constant position error."""

    kind = 'offset'
    east: float = parameter(2.0, 'm', 'How far it is off to the east.')

    def start(self, seed, run, sensor):
        """Switch it on."""
        return Drift(self.east)


class Drift:
    def __init__(self, east):
        self.value = np.array([east, 0.0, 0.0])

    def advance(self, dt):
        return np.tile(self.value, (len(dt), 1))


@dataclasses.dataclass(frozen=True)
class MyGps(GpsModel):
    """A receiver with an offset."""

    kind = 'my_gps'
    noise: PositionNoise = dataclasses.field(default_factory=Offset)
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / 'my_model.py').write_text(MODEL)
    return tmp_path


@pytest.fixture
def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install the models as another package with a broken entry point."""
    info = folder / 'stranger-1.0.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text('Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n')
    (info / 'entry_points.txt').write_text(
        '[sim2real_sensors.sensor_models]\n'
        'my_gps = my_model:MyGps\noffset = my_model:Offset\nbroken = my_model:Nothing\n'
        'other_name = my_model:MyGps\n'
    )
    monkeypatch.syspath_prepend(folder)
    yield
    sys.modules.pop('my_model', None)


def east(model: object) -> float:
    truth = Standstill().at(np.arange(3) * 0.1)
    error: float = model.start(1, 'run').measure(truth).position_error[-1, 0]  # type: ignore[attr-defined]
    return error


def test_a_class_in_a_file_can_be_used_as_a_model(folder: Path) -> None:
    model = load_gps(f'{folder}/my_model.py:MyGps')
    assert east(model) == pytest.approx(2.0)
    assert source_digest(type(model)) == hashlib.sha256(MODEL.encode()).hexdigest()


def test_a_parameter_file_can_name_a_class_beside_it(folder: Path) -> None:
    yaml = folder / 'mine.yaml'
    yaml.write_text(
        'model: my_model.py:MyGps\nrate: 5\nnoise: {model: my_model.py:Offset, east: 3}'
    )
    model = load_gps(yaml)
    assert (model.rate, east(model)) == (5.0, pytest.approx(3.0))
    mapping = to_variant(model)
    assert mapping['model'] == f'{folder}/my_model.py:MyGps'
    again = GpsModel.models.get(mapping.pop('model')).from_mapping(mapping, 'again')
    assert again == model


@pytest.mark.parametrize(
    ('text', 'named'),
    [
        ('model: my_model.py:MyGp\n', 'MyGps'),
        ('model: my_model.py:Offset\n', 'Offset'),
        ('model: my_model.py:MyGps\nraet: 1\n', 'raet'),
    ],
)
def test_an_error_in_a_parameter_file_names_the_file(folder: Path, text: str, named: str) -> None:
    yaml = folder / 'mine.yaml'
    yaml.write_text(text)
    with pytest.raises(ParameterError, match=f'mine.yaml.*{named}'):
        load_gps(yaml)


def test_models_of_an_installed_package_are_found_by_name(installed: None, folder: Path) -> None:
    assert east(load_gps('my_gps')) == pytest.approx(2.0)
    yaml = folder / 'mine.yaml'
    yaml.write_text('model: gps\nnoise: {model: offset, east: 4}\n')
    assert east(load_gps(yaml)) == pytest.approx(4.0)
    assert GpsModel.names() == [*preset_names('gps'), 'my_gps', 'other_name']
    assert ImuModel.names() == preset_names('imu')
    with pytest.raises(ParameterError, match='my_gps'):
        load_gps('other_name')


def test_every_kind_has_a_preset_that_loads() -> None:
    assert [kind.name for kind in kinds()][:2] == ['imu', 'gps']
    for kind in kinds():
        assert kind.preset in preset_names(kind.name)
        assert isinstance(kind.load(kind.preset), kind)


def test_a_model_class_that_is_not_a_dataclass_is_refused() -> None:
    class Forgotten(GpsModel):
        std: float = parameter(0.5, 'm', 'Standard deviation.', minimum=0.0)

    with pytest.raises(ParameterError, match='Forgotten: std'):
        Forgotten()
