# SPDX-License-Identifier: Apache-2.0
"""From estimates to scores: velocity series, VEPD, and other metrics."""
