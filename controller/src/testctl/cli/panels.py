# SPDX-License-Identifier: Apache-2.0
"""The groups of commands in `testctl --help`, in the order in which they are shown."""

from __future__ import annotations

WRITE = "Write a plan"
RUN = "Run"
LOOK = "Look at results"
COMPARE = "Compare and find causes"
SET_UP = "Set up"
MORE = "Of other packages"
"""Commands that are in no other group."""

OPTIONS = {
    "What is run": "--set --kernel --without --last-failed --failed-in --source --affected-by --affected-most "
    "--max-points",
    "Where and how": "--testbed --jobs --cluster --insecure --resume --fail-fast --wall-limit --wait",
    "Output": "--out --results --captures --junit --sarif --markdown --github --csv --json",
}
"""The groups of options in the help of a command; others are in none."""
