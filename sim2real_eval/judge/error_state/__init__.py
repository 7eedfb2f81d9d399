# SPDX-License-Identifier: Apache-2.0
"""The error-state judge: a GNSS/INS Kalman filter."""
