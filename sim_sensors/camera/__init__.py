# SPDX-License-Identifier: Apache-2.0
"""A camera with a feature tracker: projection, features and poses."""
