# SPDX-License-Identifier: Apache-2.0
"""GPS receivers: the sensor, its position errors, covariances and kinds of fix."""
