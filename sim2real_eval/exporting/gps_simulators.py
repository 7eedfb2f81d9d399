# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""GPS receivers of simulators: noise model, writer and reader of the file."""

from __future__ import annotations

import abc
import json
import math
import re
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.gps.gps import GnssNoise, GpsModel
from .imu_simulator import as_text, number_in, numbers_in, six_digits
from .increment_fit import IncrementLaw
from .text_simulators import mappings_in, parse_json
from .xml_simulators import only, only_plugin, parse_xml

# Length of a degree of latitude on the sphere of 6371 km, m.
_DEGREE = math.radians(1.0) * 6_371_000.0


class GpsSimulator(abc.ABC):
    """Simulator: the noise model of its receiver and its file format; see `ImuSimulator`."""

    name: ClassVar[str]
    title: ClassVar[str]
    kind: ClassVar[str]
    law: ClassVar[IncrementLaw]
    rate: ClassVar[float | None] = None
    suffix: ClassVar[str]
    mark: ClassVar[str]
    remarks: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def noise(self, errors: GnssNoise, rate: float) -> dict[str, Any]:
        """Return the parameters of the position noise with these errors."""

    @abc.abstractmethod
    def errors(self, noise: Any, rate: float) -> dict[str, Any]:
        """Return the errors that the noise parameters produce, as parameters of `GnssNoise`."""

    @abc.abstractmethod
    def write(self, model: GpsModel) -> str:
        """Return the content of the file."""

    @abc.abstractmethod
    def parse(self, text: str, where: str) -> tuple[float, dict[str, Any]]:
        """Return the rate, Hz, and the noise parameters in the content of a file."""

    def model(self, errors: GnssNoise, rate: float) -> GpsModel:
        """Return the model whose file is written for these errors."""
        return self._build(self.noise(errors, rate), rate, self.name)

    def read(self, text: str, where: str) -> GpsModel:
        """Return the model in the content of a file."""
        rate, noise = self.parse(text, where)
        return self._build(noise, rate, where)

    def produced(self, model: GpsModel) -> GnssNoise:
        """Return the errors that a model produces."""
        return GnssNoise.from_mapping(self.errors(model.noise, model.rate), self.name)

    def _build(self, noise: Mapping[str, Any], rate: float, where: str) -> GpsModel:
        rounded = {key: six_digits(value) for key, value in noise.items()}
        if self.kind not in ('gaussian', 'geodetic'):
            rounded['variant'] = 'as_upstream'
        mapping = {'rate': rate, 'noise': {'model': self.kind, **rounded}}
        return GpsModel.from_mapping(mapping, where)


class GazeboNavSat(GpsSimulator):
    """NavSat sensor of new Gazebo, whose horizontal noise is in degrees."""

    name = 'sdf'
    title = 'Gazebo'
    kind = 'gazebo'
    suffix = '.sdf'
    mark = '<navsat>'
    law = IncrementLaw(groups=((0, 1), (2,)))
    remarks = (
        'The horizontal stddev is in degrees, as NavSat applies it, although SDF says metres; the '
        'error east is smaller by the cosine of the latitude.',
        'NavSat has only white noise: its dynamic bias stays zero.',
    )

    def noise(self, errors: GnssNoise, rate: float) -> dict[str, Any]:
        """Return the parameters of the position noise."""
        north, up = errors.white_std[1], errors.white_std[2]
        return {'std': (north / _DEGREE, north / _DEGREE, up)}

    def errors(self, noise: Any, rate: float) -> dict[str, Any]:
        """Return the errors at the equator."""
        return {'white_std': (noise.std[0] * _DEGREE, noise.std[0] * _DEGREE, noise.std[2])}

    def write(self, model: GpsModel) -> str:
        """Return the <sensor> element."""
        noise: Any = model.noise
        lines = [
            '<sensor name="navsat" type="navsat">',
            f'  <update_rate>{as_text(model.rate)}</update_rate>',
            '  <navsat>',
            '    <position_sensing>',
        ]
        for element, std in (('horizontal', noise.std[0]), ('vertical', noise.std[2])):
            lines.append(
                f'      <{element}><noise type="gaussian"><mean>0</mean>'
                f'<stddev>{as_text(std)}</stddev></noise></{element}>'
            )
        return '\n'.join([*lines, '    </position_sensing>', '  </navsat>', '</sensor>']) + '\n'

    def parse(self, text: str, where: str) -> tuple[float, dict[str, Any]]:
        """Return rate and noise of the only NavSat sensor."""
        sensors = (
            s for s in parse_xml(text, where).iter('sensor') if s.find('navsat') is not None
        )
        sensor = only(sensors, where, '<navsat>')
        place = 'navsat/position_sensing/{}/noise/stddev'
        horizontal, vertical = (
            number_in(sensor.findtext(place.format(element), '0'), where, f'{element}.stddev')
            for element in ('horizontal', 'vertical')
        )
        rate = number_in(sensor.findtext('update_rate', '10'), where, 'update_rate')
        return rate, {'std': (horizontal, horizontal, vertical)}


class CarlaGnss(GpsSimulator):
    """Attributes of CARLA's sensor.other.gnss, as in objects.json of its ROS bridge."""

    name = 'carla'
    title = 'CARLA'
    kind = 'geodetic'
    suffix = '.json'
    mark = 'sensor.other.gnss'
    law = IncrementLaw(has_constant=True)
    remarks = (
        'noise_lon_* hold at the equator; elsewhere divide them by the cosine of the latitude.',
        'The noise is that of the sensor_tick in the file; at another tick its density differs.',
    )
    _keys: ClassVar[Mapping[str, str]] = {
        'latitude': 'noise_lat', 'longitude': 'noise_lon', 'altitude': 'noise_alt',
    }  # fmt: skip

    def noise(self, errors: GnssNoise, rate: float) -> dict[str, Any]:
        """Return the parameters of the position noise."""
        units = {'longitude': _DEGREE, 'latitude': _DEGREE, 'altitude': 1.0}
        noise = {}
        for index, (axis, unit) in enumerate(units.items()):
            noise[f'{axis}_bias'] = errors.mean[index] / unit
            noise[f'{axis}_std'] = errors.white_std[index] / unit
        return noise

    def errors(self, noise: Any, rate: float) -> dict[str, Any]:
        """Return the errors at the equator."""
        units = np.array([_DEGREE, _DEGREE, 1.0])
        return {
            'white_std': tuple(
                units * [noise.longitude_std, noise.latitude_std, noise.altitude_std]
            ),
            'mean': tuple(
                units * [noise.longitude_bias, noise.latitude_bias, noise.altitude_bias]
            ),
        }

    def write(self, model: GpsModel) -> str:
        """Return the sensor."""
        sensor: dict[str, Any] = {
            'type': self.mark, 'id': 'gnss', 'sensor_tick': 1.0 / model.rate,
        }  # fmt: skip
        for axis, key in self._keys.items():
            sensor[f'{key}_stddev'] = getattr(model.noise, f'{axis}_std')
            sensor[f'{key}_bias'] = getattr(model.noise, f'{axis}_bias')
        return json.dumps(sensor, indent=2) + '\n'

    def parse(self, text: str, where: str) -> tuple[float, dict[str, Any]]:
        """Return rate and noise of the first receiver."""
        tree = parse_json(text, where)
        sensor = next((entry for entry in mappings_in(tree) if entry.get('type') == self.mark), {})
        tick = number_in(str(sensor.get('sensor_tick', 0.05)), where, 'sensor_tick') or 0.05
        noise = {}
        for axis, key in self._keys.items():
            for part, name in (('std', 'stddev'), ('bias', 'bias')):
                value = str(sensor.get(f'{key}_{name}', 0.0))
                noise[f'{axis}_{part}'] = number_in(value, where, f'{key}_{name}')
        return float(f'{1.0 / tick:.9g}'), noise


class StepLaw(GpsSimulator):
    """Noise of PX4 and Pegasus, with one update per physics step of h seconds.

    White noise has the standard deviation N sqrt(h). With a standard normal w, the bias is
    b <- b + W sqrt(h) h w - b / n. N, W and n are density, walk and time constant of the file.
    """

    kind = 'px4_classic'
    physics_rate: ClassVar[float] = 250.0
    steps: ClassVar[float | None] = None
    white_keys: ClassVar[tuple[str, str]]
    walk_keys: ClassVar[tuple[str, str]]

    def noise(self, errors: GnssNoise, rate: float) -> dict[str, Any]:
        """Return the parameters of the position noise."""
        h = 1.0 / self.physics_rate
        n = self.steps or -1.0 / math.expm1(-h / errors.gauss_markov_time[0])
        spread = math.sqrt(1.0 - (1.0 - 1.0 / n) ** 2) / h**1.5
        return {
            'noise_density': np.asarray(errors.white_std) / math.sqrt(h),
            'random_walk': np.asarray(errors.gauss_markov_std) * spread,
            'time_constant': n,
            'physics_rate': self.physics_rate,
        }

    def errors(self, noise: Any, rate: float) -> dict[str, Any]:
        """Return the errors."""
        h, n = 1.0 / noise.physics_rate, noise.time_constant
        spread = h**1.5 / math.sqrt(1.0 - (1.0 - 1.0 / n) ** 2)
        return {
            'white_std': tuple(np.asarray(noise.noise_density) * math.sqrt(h)),
            'gauss_markov_std': tuple(np.asarray(noise.random_walk) * spread),
            'gauss_markov_time': [-h / math.log1p(-1.0 / n)] * 3,
        }

    def _values(self, model: GpsModel) -> dict[str, float]:
        noise: Any = model.noise
        pairs = {self.white_keys: noise.noise_density, self.walk_keys: noise.random_walk}
        return {key: row[index] for keys, row in pairs.items()
                for key, index in zip(keys, (0, 2), strict=True)}  # fmt: skip

    def _noise_of(self, values: Mapping[str, float], n: float) -> dict[str, Any]:
        (white, white_up), (walk, walk_up) = self.white_keys, self.walk_keys
        return {
            'noise_density': (values[white], values[white], values[white_up]),
            'random_walk': (values[walk], values[walk], values[walk_up]),
            'time_constant': n,
            'physics_rate': self.physics_rate,
        }


class Px4Gps(StepLaw):
    """GPS plugin of PX4 for Gazebo classic."""

    name = 'px4'
    title = "PX4's plugin for Gazebo classic"
    rate = 5.0
    suffix = '.xml'
    mark = 'libgazebo_gps_plugin'
    steps = 60.0
    law = IncrementLaw(drift_time=-1.0 / (250.0 * math.log(59.0 / 60.0)), groups=((0, 1), (2,)))
    white_keys = ('gpsXYNoiseDensity', 'gpsZNoiseDensity')
    walk_keys = ('gpsXYRandomWalk', 'gpsZRandomWalk')
    remarks = (
        'The correlation time of the bias is fixed at 60 physics steps, 0.24 s at 250 Hz, so '
        'fixes at 5 Hz are nearly white.',
    )

    def write(self, model: GpsModel) -> str:
        """Return the <plugin> element."""
        lines = [
            '<plugin name="gps_plugin" filename="libgazebo_gps_plugin.so">',
            '  <robotNamespace></robotNamespace>',
            '  <gpsNoise>true</gpsNoise>',
            f'  <update_rate>{as_text(model.rate)}</update_rate>',
        ]
        lines += [
            f'  <{key}>{as_text(value)}</{key}>' for key, value in self._values(model).items()
        ]
        return '\n'.join([*lines, '</plugin>']) + '\n'

    def parse(self, text: str, where: str) -> tuple[float, dict[str, Any]]:
        """Return rate and noise of the only plugin."""
        plugin = only_plugin(text, where, self.mark)
        values = {
            key: number_in(plugin.findtext(key, '0'), where, key)
            for key in (*self.white_keys, *self.walk_keys)
        }
        rate = number_in(plugin.findtext('update_rate', '5'), where, 'update_rate')
        return rate, self._noise_of(values, float(self.steps or 0.0))


class PegasusGps(StepLaw):
    """Configuration of the GPS of Pegasus for Isaac Sim."""

    name = 'pegasus'
    title = 'Pegasus'
    rate = 250.0
    suffix = '.py'
    mark = 'gps_correlation_time'
    law = IncrementLaw(drift_time=0.0, one_time=True, groups=((0, 1), (2,)))
    white_keys = ('gps_xy_noise_density', 'gps_z_noise_density')
    walk_keys = ('gps_xy_random_walk', 'gps_z_random_walk')
    remarks = ('gps_correlation_time is a number of updates, not seconds.',)

    def write(self, model: GpsModel) -> str:
        """Return the code."""
        noise: Any = model.noise
        values = {'update_rate': model.rate, **self._values(model), self.mark: noise.time_constant}
        rows = [f'    "{key}": {as_text(value)},' for key, value in values.items()]
        head = ['from pegasus.simulator.logic.sensors import GPS', '', 'gps = GPS(config={']
        return '\n'.join([*head, *rows, '})']) + '\n'

    def parse(self, text: str, where: str) -> tuple[float, dict[str, Any]]:
        """Return rate and noise; keys that are left out have the defaults of Pegasus."""
        defaults = {
            'update_rate': 250.0, self.mark: 60.0, 'gps_xy_noise_density': 2e-4,
            'gps_z_noise_density': 4e-4, 'gps_xy_random_walk': 2.0, 'gps_z_random_walk': 4.0,
        }  # fmt: skip
        values = {
            key: number_in(match[1], where, key)
            if (match := re.search(rf'["\']{key}["\']:\s*([^,}}\s]+)', text)) else default
            for key, default in defaults.items()
        }  # fmt: skip
        return values['update_rate'], self._noise_of(values, values[self.mark])


class HectorGps(GpsSimulator):
    """GPS plugin of hector_gazebo."""

    name = 'hector'
    title = 'hector_gazebo'
    kind = 'hector'
    suffix = '.xml'
    mark = 'libhector_gazebo_ros_gps'
    law = IncrementLaw(drift_time=0.0, one_time=True, has_constant=True)
    remarks = (
        'The axes of the file are north, west, up for referenceHeading 0.',
        'drift in the file is larger than the drift that results at this updateRate, because the '
        'plugin multiplies by dt instead of sqrt(dt).',
        'The first drift is drawn with the number of the file; the excess decays with the '
        'correlation time.',
    )

    @staticmethod
    def _gain(frequency: float, rate: float) -> float:
        """Return the ratio of the resulting standard deviation to the drift in the file."""
        dt = 1.0 / rate
        return dt * math.sqrt(2.0 * frequency / -math.expm1(-2.0 * frequency * dt))

    def noise(self, errors: GnssNoise, rate: float) -> dict[str, Any]:
        """Return the parameters of the position noise."""
        frequency = float(f'{1.0 / errors.gauss_markov_time[0]:.6g}')
        return {
            'offset': errors.mean,
            'drift': np.asarray(errors.gauss_markov_std) / self._gain(frequency, rate),
            'drift_frequency': frequency,
            'gaussian_noise': errors.white_std,
        }

    def errors(self, noise: Any, rate: float) -> dict[str, Any]:
        """Return the errors."""
        gain = self._gain(noise.drift_frequency, rate)
        return {
            'mean': noise.offset,
            'white_std': noise.gaussian_noise,
            'gauss_markov_std': tuple(gain * entry for entry in noise.drift),
            'gauss_markov_time': [1.0 / noise.drift_frequency] * 3,
        }

    def write(self, model: GpsModel) -> str:
        """Return the <plugin> element."""
        noise: Any = model.noise
        lines = [
            '<plugin name="gps_controller" filename="libhector_gazebo_ros_gps.so">',
            f'  <updateRate>{as_text(model.rate)}</updateRate>',
            '  <bodyName>base_link</bodyName>',
            '  <topicName>fix</topicName>',
        ]
        for key, (east, north, up) in (
            ('offset', noise.offset),
            ('drift', noise.drift),
            ('gaussianNoise', noise.gaussian_noise),
        ):
            west = -east if key == 'offset' else east
            lines.append(f'  <{key}>{as_text((north, west + 0.0, up))}</{key}>')
        frequency = as_text((noise.drift_frequency,) * 3)
        lines.append(f'  <driftFrequency>{frequency}</driftFrequency>')
        return '\n'.join([*lines, '</plugin>']) + '\n'

    def parse(self, text: str, where: str) -> tuple[float, dict[str, Any]]:
        """Return rate and noise of the only plugin."""
        plugin = only_plugin(text, where, self.mark)
        rows = {
            key: np.broadcast_to(numbers_in(plugin.findtext(key, default), where, key), 3)
            for key, default in (
                ('offset', '0'), ('drift', '0'), ('gaussianNoise', '0'),
                ('driftFrequency', f'{1.0 / 3600.0!r}'),
            )
        }  # fmt: skip
        if np.ptp(rows['driftFrequency']):
            problem = 'must be equal for the three axes'
            raise ParameterError(where, 'driftFrequency', problem)

        def east_north_up(row: FloatArray, sign: float = 1.0) -> tuple[float, ...]:
            north, west, up = map(float, row)
            return sign * west + 0.0, north, up

        rate = number_in(plugin.findtext('updateRate', '4'), where, 'updateRate')
        return rate, {
            'offset': east_north_up(rows['offset'], -1.0),
            'drift': east_north_up(rows['drift']),
            'drift_frequency': float(rows['driftFrequency'][0]),
            'gaussian_noise': east_north_up(rows['gaussianNoise']),
        }


class WebotsGps(GpsSimulator):
    """GPS node of Webots, whose correlation is per second."""

    name = 'webots'
    title = 'Webots'
    kind = 'webots'
    suffix = '.wbt'
    mark = 'noiseCorrelation'
    law = IncrementLaw(has_white=False, drift_time=0.0, one_time=True, groups=((0, 1, 2),))
    remarks = ('All receivers of a world share one error. There is no white noise.',)

    def noise(self, errors: GnssNoise, rate: float) -> dict[str, Any]:
        """Return the parameters of the position noise."""
        return {
            'accuracy': errors.gauss_markov_std[0],
            'noise_correlation': math.exp(-1.0 / errors.gauss_markov_time[0]),
            'sampling_period': 1.0 / rate,
        }

    def errors(self, noise: Any, rate: float) -> dict[str, Any]:
        """Return the errors."""
        if not noise.noise_correlation:
            return {'white_std': [noise.accuracy] * 3}
        return {
            'gauss_markov_std': [noise.accuracy] * 3,
            'gauss_markov_time': [-1.0 / math.log(min(noise.noise_correlation, 1.0 - 1e-9))] * 3,
        }

    def write(self, model: GpsModel) -> str:
        """Return the node."""
        noise: Any = model.noise
        return (
            f'# sampling period {1e3 / model.rate:.12g} ms\n'
            'GPS {\n'
            '  type "satellite"\n'
            f'  accuracy {as_text(noise.accuracy)}\n'
            f'  noiseCorrelation {as_text(noise.noise_correlation)}\n'
            '}\n'
        )

    def parse(self, text: str, where: str) -> tuple[float, dict[str, Any]]:
        """Return rate and noise."""
        values = {}
        for key, pattern in (
            ('accuracy', r'\baccuracy\s+(\S+)'),
            ('noiseCorrelation', r'\bnoiseCorrelation\s+(\S+)'),
            ('period', r'sampling period\s+(\S+)'),
        ):
            match = re.search(pattern, text)
            default = 100.0 if key == 'period' else 0.0
            values[key] = number_in(match[1], where, key) if match else default
        rate = float(f'{1e3 / (values["period"] or 100.0):.9g}')
        return rate, {
            'accuracy': values['accuracy'],
            'noise_correlation': values['noiseCorrelation'],
            'sampling_period': 1.0 / rate,
        }


class GnssInsSimGps(GpsSimulator):
    """GPS options of gnss-ins-sim."""

    name = 'gnss_ins_sim'
    title = 'gnss-ins-sim'
    kind = 'gaussian'
    suffix = '.py'
    mark = 'stdp'
    law = IncrementLaw()
    remarks = ('The axes of stdp are north, east, down. The noise is white.',)

    def noise(self, errors: GnssNoise, rate: float) -> dict[str, Any]:
        """Return the parameters of the position noise."""
        return {'std': errors.white_std}

    def errors(self, noise: Any, rate: float) -> dict[str, Any]:
        """Return the errors."""
        return {'white_std': noise.std}

    def write(self, model: GpsModel) -> str:
        """Return the code."""
        noise: Any = model.noise
        east, north, up = noise.std
        return (
            'import numpy as np\n\n'
            f'FS_GPS = {as_text(model.rate)}  # Hz, the second rate of ins_sim.Sim\n'
            "gps_opt = {'stdp': np.array([" + as_text((north, east, up), ', ') + ']),  # m\n'
            "           'stdv': np.array([0.05, 0.05, 0.05])}  # m/s\n"
        )

    def parse(self, text: str, where: str) -> tuple[float, dict[str, Any]]:
        """Return rate and noise."""
        match = re.search(r"""['"]stdp['"]:\s*np\.array\(\[([^\]]*)\]""", text)
        row = numbers_in(match[1] if match else '', where, 'stdp')
        north, east, up = map(float, np.broadcast_to(row, 3))
        rate = re.search(r'FS_GPS\s*=\s*([-+\d.eE]+)', text)
        return number_in(rate[1], where, 'FS_GPS') if rate else 10.0, {'std': (east, north, up)}
