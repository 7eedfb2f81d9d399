# SPDX-License-Identifier: Apache-2.0
"""The stochastic processes of sensor errors, and the errors of three axes measured together."""
