# SPDX-License-Identifier: Apache-2.0
"""robot_localization's nodes, embedded: offline, live and exactly repeatable."""
