# SPDX-License-Identifier: Apache-2.0
"""A model of one's own: one class in one file, or in a package that is installed."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sim2real_eval.cli.main import main
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import parameter, to_variant
from sim_sensors.core.registry import source_digest
from sim_sensors.gps.gps import GpsModel, load_gps
from sim_sensors.imu.imu import ImuModel, load_imu
from sim_sensors.motion.scenarios import Standstill
from sim_sensors.sensor.catalogue import SensorKind, kinds, preset_names

MODEL = '''
import dataclasses

import numpy as np

from sim_sensors.core.parameters import parameter
from sim_sensors.gps.gps import GpsModel
from sim_sensors.gps.gps import PositionNoise


@dataclasses.dataclass(frozen=True)
class Offset(PositionNoise):
    """A receiver that is wrong by the same vector for ever."""

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
    """The models as another package, as pip installs it, beside one that is broken."""
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


def test_a_class_in_a_file_is_a_model(folder: Path) -> None:
    model = load_gps(f'{folder}/my_model.py:MyGps')
    assert east(model) == pytest.approx(2.0)
    assert source_digest(type(model)) == hashlib.sha256(MODEL.encode()).hexdigest()


def test_a_file_of_parameters_names_the_class_beside_it(folder: Path) -> None:
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
    ('text', 'problem'),
    [
        (
            'model: my_model.py:MyGp\n',
            r'mine.yaml: model: .* holds no .MyGp. \(did you mean MyGps\?',
        ),
        (
            'model: my_model.py:Offset\n',
            "mine.yaml: model: 'my_model.py:Offset' is not a GPS model",
        ),
        (
            'model: my_model.py:MyGps\nraet: 1\n',
            r'mine.yaml: raet: unknown parameter .*mean rate\?',
        ),
    ],
)
def test_an_error_in_a_file_is_named(folder: Path, text: str, problem: str) -> None:
    yaml = folder / 'mine.yaml'
    yaml.write_text(text)
    with pytest.raises(ParameterError, match=problem):
        load_gps(yaml)


def test_models_of_another_package_have_names(installed: None, folder: Path) -> None:
    assert east(load_gps('my_gps')) == pytest.approx(2.0)
    yaml = folder / 'mine.yaml'
    yaml.write_text('model: gps\nnoise: {model: offset, east: 4}\n')
    assert east(load_gps(yaml)) == pytest.approx(4.0)
    assert GpsModel.names() == [*preset_names('gps'), 'my_gps', 'other_name']
    assert ImuModel.names() == preset_names('imu')
    with pytest.raises(ParameterError, match=r"'my_gp' is unknown \(did you mean my_gps\?\)"):
        load_gps('my_gp')
    with pytest.raises(ParameterError, match="kind is 'my_gps'; must be equal"):
        load_gps('other_name')
    with pytest.raises(ParameterError, match='is not an IMU model'):
        load_imu(f'{folder}/my_model.py:MyGps')


def test_every_kind_has_a_preset_that_loads() -> None:
    assert [kind.name for kind in kinds()][:2] == ['imu', 'gps']
    for kind in kinds():
        assert kind.preset in preset_names(kind.name)
        assert isinstance(kind.load(kind.preset), kind)


def test_the_command_shows_docstring_and_parameters_of_a_model(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['models', f'{folder}/my_model.py:MyGps']) == 0
    output = capsys.readouterr().out
    assert 'a GPS model\nA receiver with an offset.\n' in output
    assert '  rate = 10.0  [Hz]  Fixes per second.' in output
    assert main(['models', 'chrno']) == 2
    assert 'did you mean chrono?' in capsys.readouterr().err


def test_a_model_whose_class_is_no_dataclass_is_refused() -> None:
    """Its noise would be that of its base: none."""

    class Forgotten(GpsModel):
        std: float = parameter(0.5, 'm', 'Standard deviation.', minimum=0.0)

    with pytest.raises(ParameterError, match=r'Forgotten: std: without @dataclasses\.dataclass'):
        Forgotten()


def test_a_kind_can_be_declared_as_in_version_1_0() -> None:
    class Coil(GpsModel):
        kind = 'coil'

    declared = SensorKind(
        base=Coil, name='coil', one='a coil', topic='coil/data',
        surroundings=lambda world: {'frame': world}, beside=('coil/more',),
    )  # fmt: skip
    assert declared is Coil
    assert (Coil.name, Coil.title, Coil.more_topics) == ('coil', 'coil', ('coil/more',))
    assert Coil.surroundings(1) == {'frame': 1}  # type: ignore[arg-type]
    assert GpsModel.name == 'gps'
