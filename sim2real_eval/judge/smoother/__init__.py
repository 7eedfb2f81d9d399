# SPDX-License-Identifier: Apache-2.0
"""The smoother judge: a GTSAM factor graph over the whole recording."""
