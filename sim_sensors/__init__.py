# SPDX-License-Identifier: Apache-2.0
"""Makes measurements from true motion: trajectories, noise processes and sensor models."""
