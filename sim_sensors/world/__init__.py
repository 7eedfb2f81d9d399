# SPDX-License-Identifier: Apache-2.0
"""The world that sensors stand in: geodesy, gravity, magnetic field and landmarks."""
