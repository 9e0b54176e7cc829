# SPDX-License-Identifier: Apache-2.0
"""What the machine offers: the checkout, programs, temporary directories, hashes of code."""
