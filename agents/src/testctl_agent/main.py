# SPDX-License-Identifier: Apache-2.0
"""The agent's command: `testctl-agent serve --config FILE`."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from testctl_agent import __version__
from testctl_agent.spec.errors import TestbedError, TestctlError


def main(argv: Sequence[str] | None = None) -> int:
    """Run; 0 when it was stopped and everything is restored, 2 for a wrong file or usage, 3 otherwise."""
    parser = argparse.ArgumentParser(prog="testctl-agent", description="The agent of testctl on one host or switch.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="serve one entity until SIGTERM (docs/agent.md)")
    serve.add_argument("--config", required=True, type=Path, metavar="FILE", help="JSON; described in docs/agent.md")
    serve.add_argument("--check", action="store_true", help="read FILE, say what is wrong with it, and end")
    given = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    try:
        _serve(given.config, given.check)
    except TestctlError as error:
        print(f"testctl-agent: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _serve(path: Path, check: bool) -> None:
    try:
        from testctl_agent.daemon import config, run
    except ImportError as error:
        raise TestbedError(f"serve: want what testctl-agent[daemon] installs; {error}") from error

    loaded = config.load(path)
    if not check:
        run.run(loaded)
