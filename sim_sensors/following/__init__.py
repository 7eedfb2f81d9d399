# SPDX-License-Identifier: Apache-2.0
"""A robot follows a reference path: references, controllers and their errors."""
