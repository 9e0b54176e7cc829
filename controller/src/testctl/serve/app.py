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

    def asked_for(method: Callable[..., Any], *names: str) -> Callable[[Request], Any]:
        """The method, given the parameters of the path, and these of the query; "" where one is not there."""
        return lambda request: method(
            **request.path_params, **{name: request.query_params.get(name, "") for name in names}
        )

    answers: dict[str, Callable[[Request], Any]] = {
        "/api/looks": lambda _: looks(),
        "/api/runs": lambda _: home.lists(),
        "/api/points": lambda request: home.points(request.query_params.get("words", "")[:1000]),
        "/api/scorecards": lambda _: cards.lines(),
        "/api/runs/{run}": asked_for(runs.page),
        "/api/runs/{run}/since": asked_for(home.since),
        "/api/runs/{run}/values": asked_for(runs.values, "metric", "flow"),
        "/api/runs/{run}/sweeps": asked_for(runs.sweeps),
        "/api/runs/{run}/sweep": asked_for(runs.sweep, "kind", "metric", "x", "by", "facet", "flow"),
        "/api/runs/{run}/figures/{number:int}": asked_for(runs.figure),
        "/api/runs/{run}/points/{point}": point,
        "/api/runs/{run}/points/{point}/figures/{figure}": figure,
        "/api/runs/{run}/points/{point}/events": asked_for(points.events),
        "/api/runs/{run}/points/{point}/packets": packets,
        "/api/runs/{run}/points/{point}/difference": difference,
        "/api/runs/{run}/points/{point}/requests": asked_for(points.requests),
        "/api/plans/{plan}": asked_for(plans.page, "metric", "flow"),
        "/api/trends/{point}": asked_for(trends.trend, "metric", "flow"),
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
