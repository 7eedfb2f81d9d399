# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""IMU models as files of other simulators, with what these will produce."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from sim_sensors.core.errors import ParameterError, not_among
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import to_variant
from sim_sensors.imu.chain import ErrorChain, ImuChain
from sim_sensors.imu.imu import ImuModel
from .code_simulators import GnssInsSim, IsaacLab, Matlab, Pegasus, Webots
from .comparison import AxisComparison, Export
from .error_curves import allan_variance, settled_time
from .imu_simulator import ImuSimulator, six_digits
from .law_fit import QUANTITIES, averaging_times, fit_law, shortest_time
from .text_simulators import AirSim, Carla, Kalibr
from .xml_simulators import GazeboSdf, Hector, MuJoCo, Px4, Rotors

SIMULATORS: Mapping[str, ImuSimulator] = {
    simulator.name: simulator
    for simulator in (
        GazeboSdf(), Kalibr(), AirSim(), Carla(), Px4(), Rotors(), Hector(), Pegasus(), IsaacLab(),
        Webots(), MuJoCo(), GnssInsSim(), Matlab(),
    )
}  # fmt: skip
LONGEST_TIME = 1000.0
"""Averaging time up to which a fit goes if the record was long enough, s."""
# How far a fit moves the white noise from its density in the model: a measured curve says more.
_MODELLED_SLACK, _MEASURED_SLACK = 0.02, 0.10
# Errors that a law may have besides its curve.
_EXTRAS = {'constant_bias': 'constant', 'turn_on_std': 'turn_on'}
_CURVE = (
    'noise_density', 'gauss_markov_std', 'gauss_markov_time', 'random_walk', 'bias_instability',
    'bias_instability_from', 'bias_instability_to', 'rate_ramp', 'quantisation_noise',
    'quantisation', 'increment_quantisation', 'bandwidth', 'filter_order',
)  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class ImuExport(Export):
    """A file for the IMU of a simulator, and what the simulator makes of it.

    `source` is the exported model.
    """

    simulator: ImuSimulator
    model: ImuModel
    source: ImuChain

    def cause(self, axis: AxisComparison, last: float, ratio: float) -> str:
        """Return why the simulator does not follow; see `Misfit`."""
        quantity = axis.axis.partition('_')[0]
        part: ErrorChain = getattr(self.source, quantity)
        drift = self.simulator.laws[quantity].drift
        if ratio == 0.0:
            return 'noise_at_rest'
        is_short = bool(part.bandwidth) and last <= 2.0 * settled_time(part, self.source.rate)
        if ratio > 1.0:
            return 'low_pass' if is_short else 'shape'
        if drift == 'none':
            return 'drift'
        is_flicker = any(part.bias_instability) and drift != 'flicker'
        return 'flicker' if is_flicker and last > 3.0 else 'shape'


def find_simulator(name: str) -> ImuSimulator:
    """Return the simulator with that name."""
    if name not in SIMULATORS:
        raise ParameterError('--to', '', not_among(f'{name!r} is unknown', name, SIMULATORS))
    return SIMULATORS[name]


def export_imu(
    source: ImuChain,
    simulator: ImuSimulator,
    *,
    rate: float | None = None,
    span: tuple[float, float] | None = None,
    longest: float = LONGEST_TIME,
    measured: Mapping[str, tuple[FloatArray, FloatArray]] | None = None,
) -> ImuExport:
    """Return the file of a simulator for an IMU model.

    If a format needs a random walk and the model has none, one stands in that adds 5 % to the
    Allan deviation at the longest averaging time of the fit, and a comment in the file says so.

    Parameters
    ----------
    source : ImuChain
        Model of the sensor.
    simulator : ImuSimulator
    rate : float, optional
        Rate of the simulated IMU, Hz; by default that of the simulator, or else of the model.
    span : tuple of float, optional
        Averaging times of the fit, s. By default from the interval of a sample, or from where a
        low pass of the model no longer shows, to `longest`.
    longest : float
        Longest averaging time, s, that the model is known for.
    measured : dict, optional
        Averaging times, s, and Allan deviations of a recording by axis such as gyroscope_x.
    """
    if rate is not None and simulator.is_rate_fixed:
        raise ParameterError(
            '--rate', '', f'has no effect: the file of {simulator.name} has no rate; must be left '
            'out'
        )  # fmt: skip
    chosen = six_digits(float(rate or simulator.rate or source.rate))
    shortest = shortest_time(source, chosen)
    first, last = span or (shortest, max(longest, 10.0 * shortest))
    if not 1.0 / chosen * (1.0 - 1e-9) <= first < last:
        raise ParameterError(
            '--range', '', f'{first:g},{last:g} is not allowed; must increase from '
            f'{1.0 / chosen:g} s, one sample, or more'
        )  # fmt: skip
    times = averaging_times(first, last)
    triads: dict[str, Any] = {}
    assumed = []
    for quantity in QUANTITIES:
        part, law = getattr(source, quantity), simulator.laws[quantity]
        target = _reference(part, source.rate, times, measured or {}, quantity)
        fitted = fit_law(
            part, law, times, target, source_rate=source.rate, rate=chosen,
            slack=_MEASURED_SLACK if measured else _MODELLED_SLACK,
        )  # fmt: skip
        triads[quantity] = fitted.to_mapping()
        if simulator.needs_walk and any(fitted.noise_density) and not any(fitted.random_walk):
            triads[quantity]['random_walk'] = [fitted.noise_density[0] * _UNSEEN_WALK / last] * 3
            assumed.append(quantity)
    model = simulator.model(
        ImuChain.from_mapping({'rate': chosen, **triads}, simulator.name), chosen
    )
    produced = simulator.chain(model)
    wide = averaging_times(max(1.0 / chosen, 1.0 / source.rate), max(last, longest))
    axes = []
    for quantity in QUANTITIES:
        reference = _reference(
            getattr(source, quantity), source.rate, wide, measured or {}, quantity
        )
        simulated = allan_variance(getattr(produced, quantity), chosen, wide)
        active = [index for index in range(3) if reference[:, index].all()]
        groups = {f'{quantity}_{"xyz"[index]}': [index] for index in active}
        if active and not simulator.laws[quantity].per_axis:
            groups = {quantity: active}
        axes += [
            AxisComparison(
                name, wide, np.sqrt(reference[:, members].mean(axis=1)),
                np.sqrt(simulated[:, members].mean(axis=1)),
                any(axis.startswith(name) for axis in measured or {}),
            )
            for name, members in groups.items()
        ]  # fmt: skip
    omitted = _omitted(source, simulator)
    text = simulator.write(model)
    for quantity in reversed(assumed):
        text = (
            f'# {quantity}_random_walk: the model has none; this one adds 5 % to the Allan '
            f'deviation at {last:.4g} s\n{text}'
        )
    return ImuExport(simulator, model, text, tuple(axes), omitted, source)


# Walk that adds 5 % to the deviation at the longest time: K^2 T / 3 = (1.05^2 - 1) N^2 / T.
_UNSEEN_WALK = (3.0 * (1.05**2 - 1.0)) ** 0.5


def _reference(
    part: ErrorChain,
    rate: float,
    times: FloatArray,
    measured: Mapping[str, tuple[FloatArray, FloatArray]],
    quantity: str,
) -> FloatArray:
    """Return the Allan variance of a triad at `times` `(k,)` s, `(k, 3)`.

    It is measured where a curve has the time, and else that of the model.
    """
    variance = allan_variance(part, rate, times)
    for index, axis in enumerate('xyz'):
        if f'{quantity}_{axis}' not in measured:
            continue
        taus, deviations = measured[f'{quantity}_{axis}']
        inside = (times >= taus[0] * 0.999) & (times <= taus[-1])
        levels = np.interp(np.log(times), np.log(taus), 2.0 * np.log(deviations))
        variance[:, index] = np.where(inside, np.exp(levels), variance[:, index])
    return variance


def _omitted(source: ImuChain, simulator: ImuSimulator) -> tuple[str, ...]:
    """Return the parameters of a model, such as gyroscope.scale, that a simulator cannot have."""
    plain = ImuChain()
    names = []
    for quantity in QUANTITIES:
        part: ErrorChain = getattr(source, quantity)
        default = getattr(plain, quantity).to_mapping()
        for name, value in part.to_mapping().items():
            extra = _EXTRAS.get(name)
            has = extra is not None and getattr(simulator.laws[quantity], extra)
            if value != default[name] and name not in _CURVE and not has:
                names.append(f'{quantity}.{name}')
    names = [name for name in names if not name.endswith('earth_in_bias')]
    for name in ('temperature', 'supply', 'vibration'):
        if to_variant(source)[name] != to_variant(plain)[name]:
            names.append(name)
    return tuple(names)


def imu_from_text(text: str, where: str, name: str) -> tuple[ImuSimulator, ImuModel]:
    """Return the simulator and the model of a file; `name` is that of the file."""
    for simulator in SIMULATORS.values():
        if _is_of(simulator, text, name):
            return simulator, simulator.read(text, where)
    raise ParameterError(
        where, '', 'is no file of a known simulator; must be one as `sim2real export` writes for '
        f'{", ".join(SIMULATORS)}'
    )  # fmt: skip


def is_imu_file(text: str, name: str) -> bool:
    """Return whether a file looks like one of a simulator's IMU; `name` is that of the file."""
    return any(_is_of(simulator, text, name) for simulator in SIMULATORS.values())


def _is_of(simulator: ImuSimulator, text: str, name: str) -> bool:
    """Return whether a file looks like one of a simulator."""
    suffixes = {'.sdf': ('.sdf', '.world', '.xml', '.urdf', '.xacro'), '.yaml': ('.yaml', '.yml')}
    endings = suffixes.get(simulator.suffix, (simulator.suffix, '.sdf', '.world', '.urdf'))
    return name.endswith(endings) and simulator.mark in text
