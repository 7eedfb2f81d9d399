# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Uneven ground ([ISO8608]), and the ART vehicle on springs in MuJoCo."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from sim_sensors.core.compilation import compiled, kernel
from sim_sensors.core.errors import MotionError, ParameterError, not_among
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.parameters import non_negative, parameter, positive
from sim_sensors.core.seeding import stream
from .mujoco_motion import PhysicalMotion, compile_with_sensors, load_mujoco, load_spec, ride
from .paths import CONTROL_RATE, Pilot, RunVariation, prepare_run, pure_pursuit
from .road_classes import REFERENCE_FREQUENCY, ROADS, ROUGHNESS, SMOOTH
from .vehicles import GRAVITY, REST_RATE, AckermannVehicle, Controller, VehicleState


def road_heights(
    road: str, rows: int, columns: int, spacing: float, rng: np.random.Generator
) -> FloatArray:
    """Return heights `(rows, columns)` m of zero mean on a square grid.

    Along any straight line they have the one-sided spectrum of [ISO8608]::

        G_d(n) = G_d(n_0) (n / n_0)^-2        n_0 = 0.1 cycles/m

    An isotropic field has this spectrum along lines if its two-sided spectrum over the plane is
    G_d(n_0) n_0^2 / (4 k^3), where k is the length of the wave vector in cycles/m. Waves shorter
    than two spacings are absent, which multiplies G_d(n) by m / sqrt(n^2 + m^2) with m = 1 / (2
    spacing). Waves longer than the smaller side of the grid are absent too. The field is periodic.

    Parameters
    ----------
    road : str
        Class `A` (very good) to `D`, or `smooth`.
    rows, columns : int
        Size of the grid.
    spacing : float
        Spacing of the grid, m.
    rng : numpy.random.Generator
        Generator of the heights.

    Raises
    ------
    MotionError
        For an unknown class.

    Examples
    --------
    >>> heights = road_heights('C', 64, 64, 0.05, np.random.default_rng(1))
    >>> heights.shape, bool(abs(heights.mean()) < 1e-12)
    ((64, 64), True)
    """
    if road == SMOOTH:
        return np.zeros((rows, columns))
    if road not in ROUGHNESS:
        raise MotionError(not_among(f'road {road!r} is unknown', road, ROADS))
    along, across = np.fft.fftfreq(rows, spacing), np.fft.rfftfreq(columns, spacing)
    wave_numbers = np.hypot(along[:, None], across[None])
    lowest = 1.0 / (min(rows, columns) * spacing)
    strength = ROUGHNESS[road] * REFERENCE_FREQUENCY**2 / 4.0
    density = np.zeros_like(wave_numbers)
    is_kept = wave_numbers >= lowest
    density[is_kept] = strength / wave_numbers[is_kept] ** 3
    # White noise of unit variance has the density spacing^2.
    white = np.fft.rfft2(rng.standard_normal((rows, columns)))
    return np.asarray(np.fft.irfft2(white * np.sqrt(density) / spacing, (rows, columns)))


class Road:
    """Unbounded ground of a roughness class, smooth between the points of a grid.

    Cubic splines interpolate a square of heights, which repeats itself, so the slope is
    continuous. There are no waves shorter than two spacings.

    Parameters
    ----------
    road : str
        Roughness class, see `road_heights`.
    rng : numpy.random.Generator
        Generator of the heights.
    side : int
        Number of grid points along a side.
    spacing : float
        Distance between grid points, m.

    Raises
    ------
    MotionError
        For an unknown class.

    Examples
    --------
    >>> ground = Road('C', np.random.default_rng(1), side=64)
    >>> height, slope = ground.at(np.array([[0.0, 0.0], [64 * 0.02, 0.0]]))
    >>> bool(abs(height[0] - height[1]) < 1e-12), slope.shape
    (True, (2, 2))
    """

    def __init__(
        self, road: str, rng: np.random.Generator, *, side: int = 1024, spacing: float = 0.02
    ) -> None:
        from scipy.ndimage import spline_filter

        self.heights = road_heights(road, side, side, spacing, rng)
        self._spacing = spacing
        self._coefficients = np.asarray(
            spline_filter(self.heights, order=3, mode='grid-wrap'), dtype=np.float64
        )

    def at(self, places: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return heights `(n,)` m and slopes along x and y `(n, 2)` at places `(n, 2)` m."""
        surface = np.empty((len(places), 3))
        _heights(self._coefficients, self._spacing, np.asarray(places, np.float64), surface)
        return surface[:, 0], surface[:, 1:]

    def lay_planes(
        self, places: FloatArray, rows: IntArray, points: FloatArray, turns: FloatArray
    ) -> None:
        """Write the tangent planes below selected places into `points` and `turns`.

        `rows` `(m,)` selects from `places` `(n, 3)` m. `points` `(m, 3)` m gets a point of each
        plane, `turns` `(m, 4)` the quaternion w x y z that rotates the vertical to its normal.
        """
        _planes(self._coefficients, self._spacing, places, rows, points, turns)


@kernel
def _weights(s: float) -> tuple[float, float, float, float]:
    """Return the weights of the four cubic B-spline coefficients around a place.

    `s` is the distance to the grid point before it in spacings, 0 <= s < 1.
    """
    r = 1.0 - s
    return (
        r * r * r / 6.0,
        (3.0 * s * s * s - 6.0 * s * s + 4.0) / 6.0,
        (3.0 * r * r * r - 6.0 * r * r + 4.0) / 6.0,
        s * s * s / 6.0,
    )


@kernel
def _slopes(s: float) -> tuple[float, float, float, float]:
    """Return the derivatives of `_weights`."""
    r = 1.0 - s
    return -0.5 * r * r, 1.5 * s * s - 2.0 * s, 2.0 * r - 1.5 * r * r, 0.5 * s * s


@kernel
def _height(
    coefficients: FloatArray, spacing: float, x: float, y: float
) -> tuple[float, float, float]:
    """Return height and slopes of the spline; coefficient columns run along x, rows along y."""
    rows, columns = coefficients.shape
    column, row = math.floor(x / spacing), math.floor(y / spacing)
    s, t = x / spacing - column, y / spacing - row
    along, across, along_slope, across_slope = _weights(s), _weights(t), _slopes(s), _slopes(t)
    height = slope_x = slope_y = 0.0
    for i in range(4):
        for j in range(4):
            value = coefficients[(int(row) + i - 1) % rows, (int(column) + j - 1) % columns]
            height += value * across[i] * along[j]
            slope_x += value * across[i] * along_slope[j]
            slope_y += value * across_slope[i] * along[j]
    return height, slope_x / spacing, slope_y / spacing


@compiled
def _heights(
    coefficients: FloatArray, spacing: float, places: FloatArray, surface: FloatArray
) -> None:
    for k in range(len(places)):
        height, slope_x, slope_y = _height(coefficients, spacing, places[k, 0], places[k, 1])
        surface[k, 0], surface[k, 1], surface[k, 2] = height, slope_x, slope_y


@compiled
def _planes(
    coefficients: FloatArray,
    spacing: float,
    places: FloatArray,
    rows: IntArray,
    points: FloatArray,
    turns: FloatArray,
) -> None:
    for k in range(len(rows)):
        x, y = places[rows[k], 0], places[rows[k], 1]
        height, slope_x, slope_y = _height(coefficients, spacing, x, y)
        points[k, 0], points[k, 1], points[k, 2] = x, y, height
        # The shortest rotation from the vertical to the normal (-slope, 1).
        w = 1.0 + math.sqrt(1.0 + slope_x * slope_x + slope_y * slope_y)
        norm = math.sqrt(w * w + slope_x * slope_x + slope_y * slope_y)
        turns[k, 0], turns[k, 1] = w / norm, slope_y / norm
        turns[k, 2], turns[k, 3] = -slope_x / norm, 0.0


_BRAKE = 100.0  # N m s/rad
_SETTLING = 1.0  # s, before time 0, in which the car settles on its springs
_NO_CONTACT = 'contype="0" conaffinity="0"'
# A contact acts as a spring of the given stiffness if its impedance is small. MuJoCo then applies
# the force (k r + c v) / w, with the inverse inertia w of the body, and adds a mass of 0.001 / w.
# Friction is `impratio` times as stiff and stops slip within 10 ms, which is MuJoCo's default.
_IMPEDANCE = 0.001
_FRICTION = 'cone="elliptic" impratio="1e4"'
_SLIP_DAMPING = 100.0 * _IMPEDANCE  # 1/s
_CORNERS = ('front_left', 'front_right', 'rear_left', 'rear_right')
# Indices of the rates of the driven wheels; each rear corner has a spring and a spin joint.
_REAR_LEFT, _REAR_RIGHT = -3, -1


@dataclasses.dataclass(frozen=True)
class SprungCar(AckermannVehicle):
    """The ART vehicle with suspension and tyres.

    Wheelbase, mass, wheels, motor and steering are those of `AckermannVehicle`. Tyres are linear
    springs without damping, ten times as stiff as the suspension, as in the quarter-car model of
    [Sayers1986] (653 and 63.3 N/m per kg of body). No values are published for track, mass of the
    wheels, ride frequency and damping, height and inertia of the body (a box), and tyre friction
    on dry ground; these are assumed.
    """

    track: float = positive(0.30, 'm', 'Distance between left and right wheels.')
    wheel_mass: float = positive(0.25, 'kg', 'Mass of one wheel.')
    ride_frequency: float = parameter(
        3.0, 'Hz', 'Natural frequency of the body on its springs.', above=0.1, maximum=30.0
    )
    ride_damping: float = positive(
        0.4, '1', 'Damping ratio of the body on its springs.', maximum=2.0
    )
    body_height: float = positive(0.10, 'm', 'Height of the body, a box.')
    tyre_stiffness: float = positive(4400.0, 'N/m', 'Vertical stiffness of one tyre.', maximum=1e6)
    tyre_damping: float = non_negative(0.0, 'N s/m', 'Vertical damping of one tyre.', maximum=1e4)
    tyre_friction: float = non_negative(0.9, '1', 'Coefficient of friction of the tyres.')
    road: str = parameter(SMOOTH, '', 'Roughness of the ground.', choices=ROADS)
    timestep: float = positive(0.002, 's', 'Step of the physics.', maximum=0.005)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.mass > 4.0 * self.wheel_mass:
            raise ParameterError(
                'vehicle', 'mass', f'{self.mass:g} kg is not allowed; must be more than the '
                f'{4.0 * self.wheel_mass:g} kg of the wheels'
            )  # fmt: skip
        for name in ('cg_to_front', 'cg_to_rear'):
            if not getattr(self, name) > 0.0:
                raise ParameterError('vehicle', name, '0 is not allowed; must be a number > 0 [m]')
        longest = self._longest_timestep()
        if self.timestep > longest:
            raise ParameterError(
                'vehicle', 'timestep', f'{self.timestep:g} s is not allowed; with these springs, '
                f'tyres and wheels it must be <= {longest:.2g} s'
            )  # fmt: skip

    def _longest_timestep(self) -> float:
        """Return the longest step, s, that integrates a wheel between spring and tyre accurately.

        An oscillation of w rad/s is stable for a step h with h w < 2; half of that is allowed.
        """
        heavier = 0.5 * self._sprung_mass * max(self._axle_shares())
        spring = heavier * (2.0 * math.pi * self.ride_frequency) ** 2
        stiffness = (self.tyre_stiffness + spring) / self.wheel_mass
        half = 0.5 * self.tyre_damping / self.wheel_mass
        return (math.sqrt(half * half + stiffness) - half) / stiffness

    @property
    def _sprung_mass(self) -> float:
        return self.mass - 4.0 * self.wheel_mass

    def _axle_shares(self) -> tuple[float, float]:
        """Return the shares of the weight on the front and the rear axle."""
        return self.cg_to_rear / self.wheelbase, self.cg_to_front / self.wheelbase

    def mjcf(self) -> str:
        """Return the MJCF model of the car, without road heights and stiffness of the tyres."""
        sprung = self._sprung_mass
        length, width = self.wheelbase, self.track
        loads = self._axle_shares()
        size = f'{length / 2:.9g} {width / 3:.9g} {self.body_height / 2:.9g}'
        wheels = ground = pairs = ''
        grip = f'{self.tyre_friction:.9g}'
        for name in _CORNERS:
            front = name.startswith('front')
            x = self.cg_to_front if front else -self.cg_to_rear
            y = width / 2 * (1.0 if name.endswith('left') else -1.0)
            mass = sprung / 2.0 * loads[0 if front else 1]
            stiffness = mass * (2.0 * math.pi * self.ride_frequency) ** 2
            damping = 2.0 * self.ride_damping * math.sqrt(stiffness * mass)
            sag = mass * GRAVITY / stiffness
            # MuJoCo puts the contact, where the wheel rolls, in the middle of the compression.
            radius = (
                self.wheel_radius + 0.5 * (mass + self.wheel_mass) * GRAVITY / self.tyre_stiffness
            )
            steer = (
                f'<joint name="{name}_steer" type="hinge" axis="0 0 1" armature="0.001"/>'
                if front
                else ''
            )
            wheels += (
                f'<body name="{name}" pos="{x:.9g} {y:.9g} 0">'
                f'<joint name="{name}_spring" type="slide" axis="0 0 1" '
                f'stiffness="{stiffness:.9g}" damping="{damping:.9g}" springref="{-sag:.9g}"/>'
                f'{steer}<joint name="{name}_spin" type="hinge" axis="0 1 0"/>'
                f'<geom name="{name}_tyre" type="ellipsoid" mass="{self.wheel_mass:.9g}" '
                f'size="{radius:.9g} 0.02 {radius:.9g}" '
                f'{_NO_CONTACT}/></body>'
            )
            ground += (
                f'<body name="{name}_ground" mocap="true"><geom name="{name}_plane" type="plane" '
                f'size="1 1 1" {_NO_CONTACT}/></body>'
            )
            pairs += (
                f'<pair geom1="{name}_plane" geom2="{name}_tyre" condim="3" '
                f'friction="{grip} {grip} 0.005 0.0001 0.0001" '
                f'solimp="{_IMPEDANCE} {_IMPEDANCE} 0.001 0.5 2" '
                f'solreffriction="-1 {-_SLIP_DAMPING}"/>'
            )
        # Gains of a critically damped servo with this lag and the inertia of a wheel.
        inertia = 0.001 + self.wheel_mass * (self.wheel_radius**2) / 4.0
        kp = inertia / self.steering_lag**2
        kv = 2.0 * inertia / self.steering_lag
        servos = ''.join(
            f'<position joint="{name}_steer" kp="{kp:.9g}" kv="{kv:.9g}"/>'
            for name in _CORNERS[:2]
        )
        motors = ''.join(f'<motor joint="{name}_spin"/>' for name in _CORNERS[2:])
        # The axes of the physics are those of the inclined ground, so gravity also points back.
        gravity = f'{-GRAVITY * math.sin(self.incline)} 0 {-GRAVITY * math.cos(self.incline)}'
        return (
            f'<mujoco><option timestep="{self.timestep:.9g}" gravity="{gravity}" '
            f'integrator="implicitfast" {_FRICTION}/>'
            '<worldbody><body name="car"><freejoint/>'
            f'<geom type="box" size="{size}" mass="{sprung:.9g}" {_NO_CONTACT}/>'
            f'<site name="base"/>{wheels}</body>{ground}</worldbody><contact>{pairs}</contact>'
            f'<actuator>{servos}{motors}</actuator></mujoco>'
        )

    def model(self) -> Any:
        """Return the compiled model of the car, with tyres and the sensors that `ride` reads."""
        model = compile_with_sensors(load_spec(self.mjcf()), 'base')
        wheels = [int(model.body(name).id) for name in _CORNERS]
        inertia = (1.0 - _IMPEDANCE) * model.body_invweight0[wheels, 0]
        model.pair_solref[:] = -np.outer(inertia, (self.tyre_stiffness, self.tyre_damping))
        return model

    def ride(
        self,
        controller: Controller,
        rng: np.random.Generator,
        *,
        duration: float,
        start: VehicleState,
    ) -> PhysicalMotion:
        """Drive and return the motion of the centre of gravity.

        Parameters
        ----------
        controller, duration, start
            See `AckermannVehicle.drive`; the controller is called at 10 Hz.
        rng : numpy.random.Generator
            Generator of the heights of the road.

        Raises
        ------
        MotionError
            When MuJoCo is not installed, or its simulation becomes unstable.
        """
        mujoco = load_mujoco()
        model = self.model()
        data = mujoco.MjData(model)
        road = Road(self.road, rng)
        ground = _Ground(road, model, data)
        cosine, sine = math.cos(start.heading), math.sin(start.heading)
        data.qpos[:2] = start.x + self.cg_to_rear * cosine, start.y + self.cg_to_rear * sine
        data.qpos[2] = self.wheel_radius + road.at(data.qpos[None, :2])[0][0]
        data.qpos[3:7] = math.cos(start.heading / 2), 0.0, 0.0, math.sin(start.heading / 2)
        mujoco.mj_kinematics(model, data)
        # The brakes are on while the car settles on its springs.
        spins = [int(model.joint(f'{name}_spin').dofadr[0]) for name in _CORNERS]
        model.dof_damping[spins] = _BRAKE
        for _ in range(round(_SETTLING / self.timestep)):
            ground.follow()
            mujoco.mj_step(model, data)
        model.dof_damping[spins] = 0.0
        cockpit = _Cockpit(self, controller, data)

        def control(time: float) -> None:
            ground.follow()
            cockpit(time)

        return ride(model, data, duration, control=control, axes=self.ground)


class _Ground:
    """Tangent planes of a road that follow the wheels."""

    def __init__(self, road: Road, model: Any, data: Any) -> None:
        self._road = road
        self._wheels = np.array([model.body(name).id for name in _CORNERS])
        bodies = [model.body(f'{name}_ground').id for name in _CORNERS]
        assert model.body_mocapid[bodies].tolist() == list(range(len(_CORNERS)))
        self._place, self._planes, self._turns = data.xpos, data.mocap_pos, data.mocap_quat

    def follow(self) -> None:
        """Move the planes below the wheels."""
        self._road.lay_planes(self._place, self._wheels, self._planes, self._turns)


class _Cockpit:
    """Drive train and steering: convert commands at the control rate to torques and angles."""

    def __init__(self, car: SprungCar, controller: Controller, data: Any) -> None:
        self._car, self._controller = car, controller
        self._place, self._rates, self._control = data.qpos, data.qvel, data.ctrl
        self._next = 0
        self._throttle = self._throttle_command = self._steering = 0.0

    def __call__(self, time: float) -> None:
        car = self._car
        if time >= self._next / CONTROL_RATE - 1e-9:
            self._command(time)
            self._next += 1
        self._throttle += (self._throttle_command - self._throttle) * car.timestep / car.motor_lag
        rate = 0.5 * float(self._rates[_REAR_LEFT] + self._rates[_REAR_RIGHT]) / car.gear_ratio
        torque = (
            car.stall_torque * (self._throttle - rate / car.no_load_rate)
            - car.linear_resistance * rate
            - car.constant_resistance * math.tanh(rate / REST_RATE)
        )
        # Both front wheels roll about one point, so the inner one is steered more.
        curvature = math.tan(self._steering) / car.wheelbase
        for wheel, side in enumerate((-0.5, 0.5)):
            angle = math.atan(car.wheelbase * curvature / (1.0 + side * curvature * car.track))
            self._control[wheel] = angle
        self._control[2:] = 0.5 * torque / car.gear_ratio

    def _command(self, time: float) -> None:
        car = self._car
        w, x, y, z = (float(value) for value in self._place[3:7])
        heading = math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
        cosine, sine = math.cos(heading), math.sin(heading)
        state = VehicleState(
            x=float(self._place[0]) - car.cg_to_rear * cosine,
            y=float(self._place[1]) - car.cg_to_rear * sine,
            heading=heading,
            speed=float(self._rates[0]) * cosine + float(self._rates[1]) * sine,
        )
        command = self._controller(time, state)
        self._throttle_command = min(max(command.throttle, 0.0), 1.0)
        self._steering = min(max(command.steering, -1.0), 1.0) * car.max_steer


def drive_on_springs(
    scenario: str,
    *,
    seed: int,
    run: str,
    duration: float = 20.0,
    car: SprungCar | None = None,
    variation: RunVariation | None = None,
    pilot: Pilot = pure_pursuit,
) -> PhysicalMotion:
    """Drive a scenario once with the car on springs; every run has its own ground.

    Parameters
    ----------
    scenario, seed, run, duration, variation, pilot
        See `sim_sensors.motion.paths.drive`.
    car : SprungCar, optional
        Car to drive; by default one on a smooth road.

    Raises
    ------
    MotionError
        For an unknown scenario or a duration that is not positive, when MuJoCo is not installed,
        or its simulation becomes unstable.
    """
    prepared = prepare_run(
        scenario,
        seed=seed,
        run=run,
        duration=duration,
        vehicle=SprungCar() if car is None else car,
        variation=variation,
        pilot=pilot,
    )
    rng = stream(seed, run, 'vehicle', 'ground')
    return prepared.vehicle.ride(prepared.controller, rng, duration=duration, start=prepared.start)
