# SPDX-License-Identifier: Apache-2.0
"""The judge: robot_localization behaviour, offline and exactly repeatable."""
