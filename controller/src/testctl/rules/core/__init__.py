# SPDX-License-Identifier: Apache-2.0
"""What rules are made of, and what they are judged over."""
