# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of ekf_node, ukf_node and navsat_transform_node from their parameter files."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from sim2real_eval.common.findings import Finding
from sim_sensors.core.errors import ParameterError, not_among
from sim_sensors.core.measurements import FloatArray
from .parameter_file import ParameterReader, read_node_parameters
from .release import DEFAULT_RELEASE, Release
from .state import AX, YAW, N

DEFAULT_PROCESS_NOISE = np.array(
    [0.05, 0.05, 0.06, 0.03, 0.03, 0.06, 0.025, 0.025, 0.04, 0.01, 0.01, 0.02, 0.01, 0.01, 0.015]
)
"""Diagonal of robot_localization's default process noise covariance, per second."""

NAVSAT_TOPIC = 'odometry/gps'
"""Topic that navsat_transform_node publishes."""

_NO_EFFECT = (
    'use_sim_time', 'publish_tf', 'publish_acceleration', 'print_diagnostics', 'debug',
    'debug_out_file', 'transform_time_offset', 'transform_timeout', 'map_frame', 'odom_frame',
    'base_link_frame_output',
)  # fmt: skip
_EARTH_FRAME = ('broadcast_earth_transform', 'earth_frame_id')
_NO_EFFECT_ON_NAVSAT = (
    'use_sim_time', 'broadcast_cartesian_transform', 'broadcast_utm_transform', 'delay',
    'broadcast_cartesian_transform_as_parent_frame', 'broadcast_utm_transform_as_parent_frame',
    'transform_timeout', 'map_frame', 'odom_frame', 'base_link_frame', 'world_frame',
)  # fmt: skip
# Times are int64 nanoseconds in the loop.
_LONGEST_S = 1e9
_KINDS = ('odom', 'pose', 'twist', 'imu')


def topic_name(topic: str) -> str:
    """Return a topic without leading or trailing slashes, so that `/imu` and `imu` are equal."""
    return topic.strip('/')


@dataclasses.dataclass(frozen=True, eq=False)
class SourceConfig:
    """One input of the filter: odomN, poseN, twistN or imuN."""

    # For example `odom0` and `odom`; the topic has no slashes at its ends.
    name: str
    kind: str
    topic: str
    mask: FloatArray  # (15,) 1 for each state that it measures
    differential: bool
    relative: bool
    remove_gravity: bool
    of_child: bool  # `pose_use_child_frame`: the pose is that of the child frame, not of base_link
    # Mahalanobis thresholds, infinity for none.
    pose_threshold: float
    twist_threshold: float
    acceleration_threshold: float


@dataclasses.dataclass(frozen=True, eq=False)
class FilterConfig:
    """Parameters of ekf_node.

    Attributes
    ----------
    where : str
        Path of the parameter file.
    frequency, sensor_timeout : float
        Hz; s.
    two_d_mode, predict_to_current_time, permit_corrected_publication : bool
    world_frame, base_link_frame : str
    gravity : float
        m/s^2.
    process_noise, initial_covariance : (15, 15) float
    initial_state : (15,) float
    dynamic_process_noise : bool
    control_mask : (6,) float
        Axes that the control input accelerates; all zero without control.
    control_limits : (4, 6) float
        Acceleration limits, acceleration gains, deceleration limits, deceleration gains.
    control_timeout : float
        s.
    stamped_control : bool
        Whether cmd_vel is a TwistStamped instead of a Twist; another type is not used.
    history_length : float or None
        s; how far back late measurements are inserted. None without `smooth_lagged_data`.
    sigma_points : tuple of float, or None
        alpha, kappa and beta of ukf_node; None for ekf_node.
    sources : tuple of SourceConfig
    release : Release
        Release of robot_localization that is reproduced.
    knows_heading : bool
        Whether the heading of `initial_state` was set for the run, even if it is 0.
    notes : tuple of Finding
        Findings about the parameter file.
    """

    where: str
    frequency: float
    sensor_timeout: float
    two_d_mode: bool
    predict_to_current_time: bool
    permit_corrected_publication: bool
    world_frame: str
    base_link_frame: str
    gravity: float
    process_noise: FloatArray
    initial_covariance: FloatArray
    initial_state: FloatArray
    dynamic_process_noise: bool
    control_mask: FloatArray
    control_limits: FloatArray
    control_timeout: float
    stamped_control: bool
    history_length: float | None
    sigma_points: tuple[float, float, float] | None
    sources: tuple[SourceConfig, ...]
    release: Release = DEFAULT_RELEASE
    knows_heading: bool = False
    notes: tuple[Finding, ...] = ()

    @property
    def starts_eastward(self) -> bool:
        """Whether the filter starts at heading 0 because no heading is known."""
        return not self.knows_heading and float(self.initial_state[YAW]) == 0.0

    @classmethod
    def from_file(
        cls, path: str | Path, node: str | None = None, *, unscented: bool = False,
        strictly: bool = False, release: Release | None = None,
    ) -> FilterConfig:  # fmt: skip
        """Read a parameter file of ekf_node or, with `unscented`, of ukf_node.

        Arguments `node` and `strictly` are those of `read_node_parameters`, `release` is that of
        `from_parameters`.

        Raises
        ------
        ParameterError
            For an unreadable file, an unknown or unsupported parameter, or a wrong value.
        """
        node = node or ('ukf_filter_node' if unscented else 'ekf_filter_node')
        parameters = read_node_parameters(path, node, strictly=strictly)
        return cls.from_parameters(parameters, unscented=unscented, release=release)

    def with_topics(self, topics: Mapping[str, str]) -> FilterConfig:
        """Return a copy whose inputs subscribe to other topics, given by input.

        Raises
        ------
        ParameterError
            For an input that is not configured.
        """
        names = [source.name for source in self.sources]
        for name in topics:
            if name not in names:
                problem = not_among(f'is no input of {self.where}', name, names)
                raise ParameterError('topics', name, problem)
        sources = (
            dataclasses.replace(source, topic=topic_name(topics.get(source.name, source.topic)))
            for source in self.sources
        )
        return dataclasses.replace(self, sources=tuple(sources))

    @classmethod
    def from_parameters(
        cls, p: ParameterReader, *, unscented: bool = False, release: Release | None = None
    ) -> FilterConfig:
        """Read the parameters of ekf_node or ukf_node.

        `release` is that of robot_localization; None: that of the parameter `rl_version`.
        ParameterError for an unknown parameter or a wrong value.
        """
        frequency = p.number('frequency', 30.0, minimum=1e-3, maximum=1e6)
        stated = p.release()
        release = release or stated
        world = p.text('world_frame', release.world_frame(p.text('odom_frame', 'odom')))
        sources = tuple(_source(p, name) for name in _source_names(p))
        if not sources:
            raise ParameterError(p.where, '', 'has no input (odomN, poseN, twistN or imuN)')
        control_mask, control_limits = _control(p, sources)
        sigma_points = _sigma_points(p) if unscented else None
        # A parameter file of ukf_node may also be used for ekf_node.
        p.ignore(('alpha', 'kappa', 'beta'))
        smooth = p.boolean('smooth_lagged_data', False)
        history = p.number('history_length', 0.0, minimum=0.0, maximum=_LONGEST_S)
        p.ignore(('reset_on_time_jump', *_NO_EFFECT))
        if release.is_lifecycle:
            # Activation enables the filter whatever `disabled_at_startup` says.
            p.ignore(('disabled_at_startup', 'transform_timeout_odom_bl'))
        config = cls(
            where=p.where,
            frequency=frequency,
            sensor_timeout=p.number(
                'sensor_timeout',
                release.sensor_timeout(frequency),
                minimum=0.0,
                maximum=_LONGEST_S,
            ),
            two_d_mode=p.boolean('two_d_mode', False),
            predict_to_current_time=p.boolean('predict_to_current_time', False),
            permit_corrected_publication=p.boolean('permit_corrected_publication', False),
            world_frame=world,
            base_link_frame=p.text('base_link_frame', 'base_link'),
            gravity=p.number('gravitational_acceleration', 9.80665),
            process_noise=p.covariance('process_noise_covariance', np.diag(DEFAULT_PROCESS_NOISE)),
            initial_covariance=p.covariance('initial_estimate_covariance', 1e-9 * np.eye(N)),
            initial_state=p.numbers('initial_state', N, np.zeros(N)),
            dynamic_process_noise=p.boolean('dynamic_process_noise_covariance', False),
            control_mask=control_mask,
            control_limits=control_limits,
            stamped_control=p.boolean('stamped_control', release.has_stamped_control),
            control_timeout=p.number('control_timeout', 0.0, minimum=0.0, maximum=_LONGEST_S),
            history_length=history if smooth else None,
            sigma_points=sigma_points,
            sources=sources,
            release=release,
            notes=p.notes,
        )
        p.only('disabled_at_startup', False, 'only judge_node has an enable service')
        p.finish()
        return config


def _sigma_points(p: ParameterReader) -> tuple[float, float, float]:
    alpha = p.number('alpha', 0.001, minimum=1e-6, maximum=1e3)
    # The points coincide with the state if N + kappa is 0.
    kappa = p.number('kappa', 0.0, minimum=1e-6 - N)
    return alpha, kappa, p.number('beta', 2.0)


def _source_names(p: ParameterReader) -> list[str]:
    names = {name for name in p.names() if re.fullmatch(r'(odom|pose|twist|imu)\d+', name)}
    return sorted(
        names, key=lambda n: (_KINDS.index(n.rstrip('0123456789')), int(re.sub(r'\D', '', n)))
    )


def gate_name(name: str, part: str) -> str:
    """Return the parameter of the gate of an input's pose, twist or acceleration.

    Examples
    --------
    >>> gate_name('imu0', 'acceleration'), gate_name('twist1', 'twist')
    ('imu0_linear_acceleration_rejection_threshold', 'twist1_rejection_threshold')
    """
    infix = {'acceleration': '_linear_acceleration'}.get(part, f'_{part}')
    if name.startswith(('pose', 'twist')):
        infix = ''
    return f'{name}{infix}_rejection_threshold'


def _source(p: ParameterReader, name: str) -> SourceConfig:
    kind = name.rstrip('0123456789')
    topic = topic_name(p.text(name, ''))
    if not topic:
        raise ParameterError(p.where, name, 'must name a topic')
    mask = p.flags(f'{name}_config', N)
    p.ignore((f'{name}_queue_size', f'{name}_nodelay'))
    differential = relative = remove_gravity = of_child = False
    pose = twist = acceleration = math.inf
    if kind != 'twist':
        differential = p.boolean(f'{name}_differential', False)
        relative = p.boolean(f'{name}_relative', False)
    if kind == 'odom':
        of_child = p.boolean(f'{name}_pose_use_child_frame', False)
    if kind == 'pose':
        pose = p.number(f'{name}_rejection_threshold', math.inf, minimum=0.0)
    elif kind == 'twist':
        twist = p.number(f'{name}_rejection_threshold', math.inf, minimum=0.0)
    else:
        pose = p.number(f'{name}_pose_rejection_threshold', math.inf, minimum=0.0)
        twist = p.number(f'{name}_twist_rejection_threshold', math.inf, minimum=0.0)
    if kind == 'imu':
        acceleration = p.number(
            f'{name}_linear_acceleration_rejection_threshold', math.inf, minimum=0.0
        )
        remove_gravity = p.boolean(f'{name}_remove_gravitational_acceleration', False)
    return SourceConfig(
        name, kind, topic, mask, differential, relative and not differential, remove_gravity,
        of_child, pose, twist, acceleration,
    )  # fmt: skip


def _control(
    p: ParameterReader, sources: tuple[SourceConfig, ...]
) -> tuple[FloatArray, FloatArray]:
    is_used = p.boolean('use_control', False)
    mask = p.flags('control_config', 6)
    limits = p.numbers('acceleration_limits', 6, np.ones(6))
    if is_used and 'acceleration_gains' not in p:
        raise ParameterError(
            p.where, 'acceleration_gains',
            'is missing; must be a list of 6 numbers with use_control (robot_localization then '
            'reads beyond the end of an empty list)',
        )  # fmt: skip
    gains = p.numbers('acceleration_gains', 6, np.ones(6))
    braking = p.numbers('deceleration_limits', 6, limits)
    braking_gains = p.numbers('deceleration_gains', 6, gains)
    for source in sources:
        if source.kind == 'imu':
            # A measured acceleration takes precedence over a commanded one.
            mask[:3] *= 1.0 - source.mask[AX : AX + 3]
    return mask if is_used else np.zeros(6), np.stack([limits, gains, braking, braking_gains])


_IMMEDIATE = 'enu'
FRONT_ENDS = ('navsat_transform', _IMMEDIATE)
"""Ways to convert fixes into odometry/gps."""


@dataclasses.dataclass(frozen=True)
class NavsatConfig:
    """Parameters of navsat_transform_node, or of the immediate front end `enu` in its place.

    Attributes
    ----------
    frequency : float
        Hz.
    magnetic_declination, yaw_offset : float
        Radians, added to the heading.
    zero_altitude, use_odometry_yaw, publish_filtered_gps, use_local_cartesian : bool
    datum : tuple of float, or None
        Latitude and longitude in degrees and yaw in radians of the origin of the world frame. None
        without `wait_for_datum`: the origin is the first fix.
    front_end : str
        One of FRONT_ENDS; `enu` uses only `zero_altitude` and the position of the datum.
    notes : tuple of Finding
        Findings about the parameter file.
    """

    frequency: float = 10.0
    magnetic_declination: float = 0.0
    yaw_offset: float = 0.0
    zero_altitude: bool = False
    use_odometry_yaw: bool = False
    publish_filtered_gps: bool = True
    use_local_cartesian: bool = False
    datum: tuple[float, float, float] | None = None
    front_end: str = FRONT_ENDS[0]
    notes: tuple[Finding, ...] = ()

    @property
    def needs_heading(self) -> bool:
        """Whether the yaw comes from an IMU."""
        return self.has_timer and not self.use_odometry_yaw and self.datum is None

    @property
    def has_timer(self) -> bool:
        """Whether fixes wait for a timer instead of being passed on at their arrival."""
        return self.front_end != _IMMEDIATE

    @property
    def title(self) -> str:
        """Name for messages."""
        return self.front_end if self.has_timer else f'front end {self.front_end}'

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        node: str = 'navsat_transform',
        *,
        release: Release = DEFAULT_RELEASE,
    ) -> NavsatConfig:
        """Read a navsat_transform_node parameter file.

        Raises
        ------
        ParameterError
            For an unreadable file, an unknown or unsupported parameter, or a wrong value.
        """
        p = read_node_parameters(path, node)
        p.only('publish_tf', True, 'navsat_transform_node publishes (0, 0, 0) without it')
        p.ignore((*_NO_EFFECT_ON_NAVSAT, *(_EARTH_FRAME if release.has_earth_frame else ())))
        config = cls(
            frequency=p.number('frequency', 10.0, minimum=1e-3, maximum=1e6),
            magnetic_declination=p.number('magnetic_declination_radians', 0.0),
            yaw_offset=p.number('yaw_offset', 0.0),
            zero_altitude=p.boolean('zero_altitude', False),
            use_odometry_yaw=p.boolean('use_odometry_yaw', False),
            publish_filtered_gps=p.boolean('publish_filtered_gps', True),
            use_local_cartesian=p.boolean('use_local_cartesian', False),
            datum=_datum(p),
            notes=p.notes,
        )
        p.finish()
        return config


def with_front_end(config: NavsatConfig | None, front_end: str) -> NavsatConfig | None:
    """Return a configuration with one of FRONT_ENDS.

    `config` is None without navsat_transform; the front end `enu` needs no configuration.
    """
    if front_end != _IMMEDIATE:
        return config
    config = config or NavsatConfig()
    return dataclasses.replace(config, front_end=front_end, publish_filtered_gps=False)


def _datum(p: ParameterReader) -> tuple[float, float, float] | None:
    if not p.boolean('wait_for_datum', False):
        p.ignore(('datum',))
        return None
    if 'datum' not in p:
        # robot_localization would use (0, 0, 0).
        raise ParameterError(
            p.where, 'datum', 'is missing; must be [latitude, longitude, yaw] with wait_for_datum'
        )
    latitude, longitude, yaw = p.numbers('datum', 3, np.zeros(3)).tolist()
    if not (-90.0 <= latitude <= 90.0 and -180.0 <= longitude <= 180.0):
        allowed = 'degrees of latitude and longitude, and radians of yaw'
        raise p.refuse('datum', [latitude, longitude, yaw], allowed)
    return latitude, longitude, yaw
