# SPDX-License-Identifier: Apache-2.0
"""Results held against limits and earlier results, for CI."""
