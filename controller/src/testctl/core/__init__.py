# SPDX-License-Identifier: Apache-2.0
"""What one stage hands to the next, from a plan's point to its records, each with to_json and from_json.

Light to import: in the lab this runs inside the virtual time.
"""
