# SPDX-License-Identifier: Apache-2.0
"""Data passed between stages, from a plan's point to its records, each with to_json and from_json.

Light to import: in the lab this runs inside the virtual time.
"""
