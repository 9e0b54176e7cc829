# SPDX-License-Identifier: Apache-2.0
"""What controllers and agents say to each other, on whatever channel."""
