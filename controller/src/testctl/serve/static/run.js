// SPDX-License-Identifier: Apache-2.0
// One run: facts, matrix, points.
import { ask, badge, counts, drawn, facts, here, looks, make, route, scroll, table, troubled, when } from "./dom.js";
import { markButton } from "./marks.js";
import { matrix } from "./matrix.js";
import { sweepSection } from "./sweeps.js";

const FIRST = ["fail", "invalid", "broken", "skip", "not judged yet", "pass"]; // the order of the table
const MAX = 400; // rows of the table of points; the search finds the others

export const showRun = async (place, now, attach) => {
  const name = now.path[1];
  const [run, all, sweeps] = await Promise.all([ask(["runs", name]), looks(), ask(["runs", name, "sweeps"]).catch(() => ({ figures: [], swept: [] }))]);
  place.append(make("h1", {}, run.plan, " ", run.state === "complete" ? null : badge("", all, run.state)),
    run.about ? make("p", { class: "note" }, run.about) : null ?? "",
    counts(run.counts, all));
  if (run.state === "in progress") place.append(make("p", { class: "note" }, "This run is not finished (or was stopped): these are its points so far."));
  if (run.damage.length) place.append(make("div", { class: "error" }, "Some of this run can't be read; the rest is shown.",
    make("ul", {}, ...run.damage.map((text) => make("li", {}, text)))));
  place.append(facts([["Run", run.name], ["Started", when(run.started)], ["Took", run.wall_s ? `${run.wall_s} s` : ""],
    ["Digest", run.digest && make("code", {}, run.digest)], ["Reproduce", run.reproduce && make("code", {}, run.reproduce)]]));
  if (run.versions.length) place.append(make("details", { class: "small" }, make("summary", {}, "Versions"),
    table(["what", "version"], run.versions.map(([what, version]) => make("tr", {}, make("td", {}, what), make("td", {}, version))))));
  if (run.expectations.length) place.append(expectations(run, all));

  const state = { words: "", cell: null };
  const points = scroll("Points");
  const said = make("p", { class: "note" });
  const title = make("h2", { id: "points", tabindex: "-1" }, "Points");
  const rank = (point) => { const at = FIRST.indexOf(point.verdict); return at < 0 ? FIRST.length : at; };
  const ordered = [...run.points].sort((a, b) => rank(a) - rank(b));
  const list = () => {
    const found = ordered.filter((point) => (!state.cell || state.cell.ids.has(point.id)) &&
      state.words.split(/\s+/).every((word) => `${point.id} ${point.name} ${point.verdict} ${point.reason}`.toLowerCase().includes(word)));
    said.replaceChildren(state.cell ? `${found.length} of ${run.points.length}: ${state.cell.text} ` :
      found.length === run.points.length ? `${found.length} in all` : `${found.length} of ${run.points.length} match`,
      found.length > MAX ? `; the first ${MAX} are shown, the search finds the others` : "");
    if (state.cell) said.append(make("button", { type: "button", onclick: () => { state.cell = null; heat?.clear(); list(); } }, "Show all"));
    points.replaceChildren(rows(run, found.slice(0, MAX), all));
  };
  let heat = null;
  const section = sweeps.figures.length ? sweepSection(run, sweeps, all, here().query.figure) : null;
  if (section) place.append(section.element);
  if (run.points.length > 1 && run.factors.length) {
    heat = matrix(run, all, here().query, (cell) => {
      state.cell = cell;
      list();
      title.focus();
      title.scrollIntoView({ block: "start" });
      scrollBy(0, -60);
    });
    place.append(heat.element);
  }
  place.append(title, ...run.failures.map(([verdict, sentence]) => make("p", {}, badge(verdict, all), " ", sentence)), said, points);
  if (run.points.length) list();
  else said.replaceChildren(run.state === "in progress" ? "No point is finished yet." : "This run has no points that can be read.");
  await heat?.ready;
  if (attach()) section?.draw(); // figures take their width from the page
  queueMicrotask(() => drawn("run"));
  return {
    search: (words) => { state.words = words; list(); },
    restyle: () => { heat?.draw(); section?.draw(); },
    same: (next) => next.path.length === 2 && next.path[1] === name,
    update: () => undefined,
  };
};

const rows = (run, points, all) => table(
  ["point", "verdict", ...run.factors.map((factor) => factor.label),
    ...run.columns.map(([, heading, meaning]) => make("th", { scope: "col", class: "number", title: meaning }, heading)), "compare"],
  points.map((point) => make("tr", {},
    make("td", {}, make("a", { href: route(["run", run.name, "point", point.id]), "data-item": true, "data-mark": `${run.name}/${point.id}`,
      "aria-label": `${point.id.slice(0, 8)}: ${point.name}, ${point.verdict}` }, make("code", {}, point.id.slice(0, 8)))),
    make("td", { title: point.reason }, badge(point.verdict, all)),
    ...point.at.map((value) => make("td", {}, value)),
    ...point.cells.map((value) => make("td", { class: "number" }, value)),
    make("td", {}, markButton(`${run.name}/${point.id}`, point.name)))));

const expectations = (run, all) => make("details", { class: "small" },
  make("summary", {}, `Expectations (${run.expectations.filter((item) => item.verdict === "pass").length} of ${run.expectations.length} pass)`),
  scroll("Expectations", table(["verdict", "expectation", "found"], run.expectations.map((item) => make("tr", {},
    make("td", {}, badge(item.verdict, all)), make("td", { class: "wide" }, item.name), make("td", { class: "wide" }, item.detail))))));
