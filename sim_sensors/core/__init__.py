# SPDX-License-Identifier: Apache-2.0
"""What every sensor needs: parameters, seeds, compilation, rotations and errors."""
