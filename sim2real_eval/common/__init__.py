# SPDX-License-Identifier: Apache-2.0
"""What every room shares: findings, tables, result folders, workers and provenance."""
