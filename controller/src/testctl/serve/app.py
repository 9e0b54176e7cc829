# SPDX-License-Identifier: Apache-2.0
"""The page and what it asks for, as a Starlette application that only reads."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from testctl_agent.spec.errors import PlanError

from testctl.charts import vega_script
from testctl.curves import Window
from testctl.report.answer_text import answer_text
from testctl.report.looks import looks
from testctl.serve import files, scorecards
from testctl.serve.answers import answer, compressed
from testctl.serve.home import Home
from testctl.serve.listing import Unknown
from testctl.serve.plans import Plans
from testctl.serve.point import Points
from testctl.serve.runs import Runs
from testctl.serve.scorecards import Scorecards
from testctl.serve.trend import Trends

_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


def make_app(root: Path) -> Starlette:
    """The application over the runs of a directory."""
    runs, points = Runs(root), Points(root)
    trends, plans, home, cards = Trends(runs), Plans(runs), Home(runs), Scorecards(root)

    def point(request: Request) -> dict[str, Any]:
        page = points.page(**request.path_params)
        return page | {"name": runs.name_of(request.path_params["run"], page["id"])}

    def figure(request: Request) -> dict[str, Any]:
        asked, where = request.query_params, request.path_params
        window = Window.parse(asked.get("from", ""), asked.get("to", ""), asked.get("px", "600"))
        width = int(text) if (text := asked.get("bin", "")).isdecimal() and len(text) < 16 else 0
        return points.figure(where["run"], where["point"], where["figure"], window, asked.get("lane", ""), width)

    def packets(request: Request) -> dict[str, Any]:
        asked, where = request.query_params, request.path_params
        window = Window.parse(asked.get("from", ""), asked.get("to", ""), "600")
        return points.packets(where["run"], where["point"], window, asked.get("lane", ""))

    def difference(request: Request) -> dict[str, Any]:
        asked, where = request.query_params, request.path_params
        other = asked.get("run", ""), asked.get("point", "")
        return points.first_difference((where["run"], where["point"]), other)

    def values(request: Request) -> dict[str, Any]:
        asked = request.query_params
        return runs.values(request.path_params["run"], asked.get("metric", ""), asked.get("flow", ""))

    def sweep(request: Request) -> dict[str, Any]:
        asked = request.query_params
        given = {name: asked.get(name, "") for name in ("kind", "metric", "x", "by", "facet", "flow")}
        return runs.sweep(request.path_params["run"], **given)

    def plan_figure(request: Request) -> dict[str, Any]:
        where = request.path_params
        return runs.figure(where["run"], where["number"])

    def trend(request: Request) -> dict[str, Any]:
        asked = request.query_params
        return trends.trend(request.path_params["point"], asked.get("metric", ""), asked.get("flow", ""))

    def plan(request: Request) -> dict[str, Any]:
        asked = request.query_params
        return plans.page(request.path_params["plan"], asked.get("metric", ""), asked.get("flow", ""))

    answers: dict[str, Callable[[Request], Any]] = {
        "/api/looks": lambda _: looks(),
        "/api/runs": lambda _: home.lists(),
        "/api/points": lambda request: home.points(request.query_params.get("words", "")[:1000]),
        "/api/scorecards": lambda _: cards.lines(),
        "/api/runs/{run}": lambda request: runs.page(request.path_params["run"]),
        "/api/runs/{run}/since": lambda request: home.since(request.path_params["run"]),
        "/api/runs/{run}/values": values,
        "/api/runs/{run}/sweeps": lambda request: runs.sweeps(request.path_params["run"]),
        "/api/runs/{run}/sweep": sweep,
        "/api/runs/{run}/figures/{number:int}": plan_figure,
        "/api/runs/{run}/points/{point}": point,
        "/api/runs/{run}/points/{point}/figures/{figure}": figure,
        "/api/runs/{run}/points/{point}/events": lambda request: points.events(**request.path_params),
        "/api/runs/{run}/points/{point}/packets": packets,
        "/api/runs/{run}/points/{point}/difference": difference,
        "/api/runs/{run}/points/{point}/requests": lambda request: points.requests(**request.path_params),
        "/api/plans/{plan}": plan,
        "/api/trends/{point}": trend,
    }
    routes = [Route(path, _json(make)) for path, make in answers.items()]
    routes += [Route(path, _file(body, kind)) for path, (body, kind) in _files().items()]
    routes.append(Route("/files/{run}/{path:path}", files.endpoint(partial(files.file, root))))
    routes.append(Route("/scorecards/{name}/{file}", files.endpoint(partial(scorecards.page, root))))
    return Starlette(routes=routes)


def _json(make: Callable[[Request], Any]) -> Callable[[Request], Response]:
    """An endpoint; it is no coroutine, so that Starlette runs each request in a thread of its own."""

    def endpoint(request: Request) -> Response:
        try:
            return answer(request, _encoded(make(request)), "application/json")
        except Unknown as error:
            body, status = _encoded({"error": str(error)}), 404
        except PlanError as error:
            body, status = _encoded({"error": str(error)}), 400
        except Exception as error:  # noqa: BLE001  whatever a damaged run makes of its reading, the server says so
            words = (str(error).splitlines() or [type(error).__name__])[0][:300]
            body = _encoded({"error": f"These records can't be read; the point may be damaged: {words}"})
            status = 422
        return Response(body, status, {"Cache-Control": "no-store"}, "application/json")

    return endpoint


def _encoded(body: Any) -> bytes:
    """Half a character, which UTF-8 has no bytes for, becomes a question mark."""
    return answer_text(body).encode(errors="replace")


def _files() -> dict[str, tuple[bytes, str]]:
    """{address: (content, type)}: the page's own files, and Vega as vl-convert carries it."""
    own = resources.files("testctl.serve").joinpath("static")
    found = {
        f"/static/{file.name}": (file.read_bytes(), _TYPES[Path(file.name).suffix])
        for file in own.iterdir()
        if Path(file.name).suffix in _TYPES
    }
    found["/"] = found.pop("/static/index.html")
    found["/static/vega.js"] = (vega_script(), _TYPES[".js"])
    return found


def _file(body: bytes, kind: str) -> Callable[[Request], Response]:
    smaller = cache(partial(compressed, body, 9))

    def endpoint(request: Request) -> Response:
        return answer(request, body, kind, smaller)

    return endpoint
