# SPDX-License-Identifier: Apache-2.0
"""True motion: analytic scenarios, driven vehicles, waypoints and recorded odometry."""
