# SPDX-License-Identifier: Apache-2.0
"""ROS 2 nodes of the judge."""

__all__: list[str] = []
