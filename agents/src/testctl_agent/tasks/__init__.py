# SPDX-License-Identifier: Apache-2.0
"""What an agent runs beside a test."""
