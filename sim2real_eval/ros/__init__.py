# SPDX-License-Identifier: Apache-2.0
"""The judge as a ROS 2 node; the only place of this package that imports rclpy."""
