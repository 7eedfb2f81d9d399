# SPDX-License-Identifier: Apache-2.0
"""Ackermann digital twin of the ART vehicle.

Published (dART.json and the 4-DOF configuration of [SBEL]): distances of the centre of gravity to
the axles, mass, yaw inertia, largest steering angle, wheel radius; the 4-DOF motor model with its
gear ratio gamma, stall torque tau_0, no-load speed omega_0 and resistance c_1 w + c_0; integration
step 1 ms.

Assumed, as no values are published: the whole mass instead of the wheel inertia of the 4-DOF
model, the critically damped steering servo, the first-order lag of the motor controller, and the
smoothing of the constant resistance around rest.

The motion is that of the kinematic bicycle, without yaw inertia and tyre forces. At the top speed
of 0.6 m/s that the motor constants give, the sharpest turn (radius 1 m) needs a lateral
acceleration of 0.3 m/s^2, a thirtieth of what tyres hold, and slip angles would be a fraction of a
degree.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from sim_sensors.core.compilation import compiled, kernel
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, positive
from .trajectory import Trajectory

_State = tuple[float, float, float, float, float, float, float]
"""x, y (rear axle, m), heading (rad), speed (m/s), steer (rad), steer rate (rad/s), drive (1)."""

_Constants = tuple[float, float, float, float, float, float, float, float, float]
"""Wheelbase, leverage and inertia at the motor, stall torque, no-load rate, linear and constant
resistance, motor lag, steering lag."""

REST_RATE = 0.5
"""Motor rate over which the constant resistance sets in, rad/s."""


@dataclasses.dataclass(frozen=True)
class VehicleState:
    """Position [m], heading [rad] and speed [m/s] of the rear axle.

    The heading is from east to the left, not wrapped.
    """

    x: float
    y: float
    heading: float
    speed: float


@dataclasses.dataclass(frozen=True)
class VehicleCommand:
    """Command of a controller: throttle 0 to 1, steering -1 (full right) to 1 (full left).

    Values outside these ranges are clipped.
    """

    throttle: float
    steering: float


Controller = Callable[[float, VehicleState], VehicleCommand]
"""Function of time (s) and state that returns a command; called at the control rate."""


@dataclasses.dataclass(frozen=True)
class AckermannVehicle(Parameters):
    """Vehicle with front steering: kinematic bicycle with a motor and a steering servo.

    Motion of the rear axle with wheelbase L, wheel radius r, motor rate w = v / (gamma r), drive u
    and steering angle d:

        x' = v cos psi,  y' = v sin psi,  psi' = v tan(d) / L
        v' = T / (gamma r m),  T = tau_0 (u - w / omega_0) - c_1 w - c_0 tanh(w / 0.5 rad/s)
        u' = (throttle - u) / motor_lag
        d'' = (d_command - d) / tau^2 - 2 d' / tau,  d_command = steering max_steer

    The motor never brakes below rest: the speed stays >= 0.
    """

    mass: float = positive(5.76436, 'kg', 'Mass.')
    cg_to_front: float = non_negative(
        0.268377, 'm', 'From the centre of gravity to the front axle.'
    )
    cg_to_rear: float = non_negative(0.196863, 'm', 'From the rear axle to the centre of gravity.')
    max_steer: float = non_negative(0.436332, 'rad', 'Largest steering angle.', maximum=1.5)
    wheel_radius: float = positive(0.08451952624, 'm', 'Wheel radius.')
    gear_ratio: float = positive(1.0 / 3.0, '1', 'gamma: wheel rate over motor rate.')
    stall_torque: float = non_negative(0.3, 'N m', 'tau_0 of the motor.')
    no_load_rate: float = positive(30.0, 'rad/s', 'omega_0 of the motor.')
    linear_resistance: float = non_negative(1e-4, 'N m s', 'c_1 at the motor.')
    constant_resistance: float = non_negative(0.02, 'N m', 'c_0 at the motor.')
    motor_lag: float = positive(0.1, 's', 'Time constant of the motor controller.')
    steering_lag: float = positive(0.05, 's', 'tau of the steering servo.')

    @property
    def wheelbase(self) -> float:
        """Distance of the axles, m."""
        return self.cg_to_front + self.cg_to_rear

    def top_speed(self, throttle: float) -> float:
        """Return the speed at which the motor and its resistance balance, m/s."""
        slope = self.stall_torque / self.no_load_rate + self.linear_resistance
        rate = (self.stall_torque * throttle - self.constant_resistance) / slope
        return max(rate, 0.0) * self.gear_ratio * self.wheel_radius

    def drive(
        self,
        controller: Controller,
        *,
        duration: float,
        start: VehicleState,
        control_rate: float = 10.0,
        step: float = 1e-3,
    ) -> Trajectory:
        """Drive and return the motion of the centre of gravity, one sample per integration step.

        The integrator is the classical Runge-Kutta method of fourth order. The command is held
        between control times, so no step contains a jump if `control_rate * step` divides 1.
        Accelerations follow from the equations of motion and are continuous. The controller is
        called at 0, 1/control_rate, ... s; at the start the wheels are straight and the motor is
        off.
        """
        count = round(duration / step)
        period = max(1, round(1.0 / (control_rate * step)))
        leverage = self.gear_ratio * self.wheel_radius
        constants = (
            self.wheelbase, leverage, leverage * self.mass, self.stall_torque, self.no_load_rate,
            self.linear_resistance, self.constant_resistance, self.motor_lag, self.steering_lag,
        )  # fmt: skip
        time = np.arange(count + 1, dtype=np.float64) * step
        samples = np.empty((count + 1, 7))
        pose = (float(start.x), float(start.y), float(start.heading), float(start.speed))
        state = (*pose, 0.0, 0.0, 0.0)
        for first in range(0, count + 1, period):
            command = controller(first * step, VehicleState(*state[:4]))
            throttle = float(min(max(command.throttle, 0.0), 1.0))
            steering = min(max(command.steering, -1.0), 1.0) * self.max_steer
            rows = samples[first : first + period]
            state = _advance(rows, state, throttle, steering, step, constants)
        return self._trajectory(time, samples)

    def _trajectory(self, time: FloatArray, samples: FloatArray) -> Trajectory:
        x, y, heading, speed, steer, steer_rate, pull = samples.T
        curvature = np.tan(steer) / self.wheelbase
        bending = steer_rate / (np.cos(steer) ** 2 * self.wheelbase)
        yaw_rate = speed * curvature
        rear_axle = Trajectory.level(
            time,
            (x, y),
            heading,
            speed,
            (pull, speed * yaw_rate),
            (yaw_rate, pull * curvature + speed * bending),
        )
        return rear_axle.at_lever_arm((self.cg_to_rear, 0.0, 0.0))


@compiled
def _advance(
    samples: FloatArray,
    state: _State,
    throttle: float,
    steering: float,
    step: float,
    constants: _Constants,
) -> _State:
    """Write a sample per step and return the state after the last; the command is held.

    A sample is x, y, heading, speed, steering angle, its rate, and acceleration.
    """
    half, sixth = 0.5 * step, step / 6.0
    for index in range(len(samples)):
        a = _rates(state, throttle, steering, constants)
        for place in range(6):
            samples[index, place] = state[place]
        samples[index, 6] = a[3]
        b = _rates(_add_step(state, a, half), throttle, steering, constants)
        c = _rates(_add_step(state, b, half), throttle, steering, constants)
        d = _rates(_add_step(state, c, step), throttle, steering, constants)
        state = (
            state[0] + sixth * (a[0] + 2.0 * b[0] + 2.0 * c[0] + d[0]),
            state[1] + sixth * (a[1] + 2.0 * b[1] + 2.0 * c[1] + d[1]),
            state[2] + sixth * (a[2] + 2.0 * b[2] + 2.0 * c[2] + d[2]),
            max(state[3] + sixth * (a[3] + 2.0 * b[3] + 2.0 * c[3] + d[3]), 0.0),
            state[4] + sixth * (a[4] + 2.0 * b[4] + 2.0 * c[4] + d[4]),
            state[5] + sixth * (a[5] + 2.0 * b[5] + 2.0 * c[5] + d[5]),
            state[6] + sixth * (a[6] + 2.0 * b[6] + 2.0 * c[6] + d[6]),
        )
    return state


@kernel
def _rates(state: _State, throttle: float, steering: float, constants: _Constants) -> _State:
    _, _, heading, speed, steer, steer_rate, drive = state
    wheelbase, leverage, inertia, stall, no_load, linear, constant, lag, tau = constants
    rate = speed / leverage
    torque = (
        stall * (drive - rate / no_load) - linear * rate - constant * math.tanh(rate / REST_RATE)
    )
    if speed <= 0.0:
        torque = max(torque, 0.0)
    return (
        speed * math.cos(heading),
        speed * math.sin(heading),
        speed * math.tan(steer) / wheelbase,
        torque / inertia,
        steer_rate,
        ((steering - steer) / tau - 2.0 * steer_rate) / tau,
        (throttle - drive) / lag,
    )


@kernel
def _add_step(state: _State, rates: _State, step: float) -> _State:
    return (
        state[0] + step * rates[0],
        state[1] + step * rates[1],
        state[2] + step * rates[2],
        state[3] + step * rates[3],
        state[4] + step * rates[4],
        state[5] + step * rates[5],
        state[6] + step * rates[6],
    )


ART = AckermannVehicle()
"""The vehicle of the paper."""
