# SPDX-License-Identifier: Apache-2.0
"""What the judges that integrate the IMU themselves share."""
