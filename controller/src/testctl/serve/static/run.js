// SPDX-License-Identifier: Apache-2.0
// One run: facts, matrix, points.
import { ask, badge, changed, choose, counts, drawn, facts, fileOf, here, inOrder, looks, make, many, route, scroll, sortHeads, sorted, table, troubled, when } from "./dom.js";
import { markButton } from "./marks.js";
import { matrix } from "./matrix.js";
import { going, since } from "./runs.js";
import { sweepSection } from "./sweeps.js";

const FIRST = ["fail", "invalid", "broken", "skip", "not judged yet", "pass"]; // the order of the table
const SOUND = ["pass", "not judged yet"]; // no failures
const MAX = 400; // rows of the table of points; the search finds the others

export const showRun = async (place, now, attach) => {
  const name = now.path[1];
  const [run, all, sweeps] = await Promise.all([ask(["runs", name]), looks(), ask(["runs", name, "sweeps"]).catch(() => ({ figures: [], swept: [] }))]);
  place.append(make("h1", {}, run.plan, " ", run.state === "complete" ? null : badge("", all, run.state)),
    run.about ? make("p", { class: "note" }, run.about) : "", changed(run) ?? "",
    counts(run.counts, all));
  if (run.state === "complete") {
    const changes = make("p");
    place.append(changes);
    since(run.name).then((words) => changes.replaceChildren(...words));
  }
  if (run.state === "in progress") place.append(make("p", { class: "note" }, run.progress ? `${going(run.progress)}. ` : "", "This run is not finished (or was stopped): these are its points so far."));
  if (run.damage.length) place.append(make("div", { class: "error" }, "Some of this run can't be read; the rest is shown.",
    make("ul", {}, ...run.damage.map((text) => make("li", {}, text)))));
  place.append(facts([["Run", run.name], ["Started", when(run.started)], ["Took", took(run.wall_s)],
    ["Digest", run.digest && make("code", { title: run.digest }, run.digest.slice(0, 12))], ["Reproduce", run.reproduce && make("code", {}, run.reproduce)], ["See", links(run)]]));
  if (run.versions.length) place.append(make("details", { class: "small" }, make("summary", {}, "Versions and digest"),
    table(["what", "version"], [...run.versions, ["digest", run.digest]].map(([what, version]) => make("tr", {}, make("td", {}, what), make("td", {}, version))))));
  if (run.expectations.length) place.append(expectations(run, all));

  const state = { words: "", cell: null, show: here().query.show || "", at: run.factors.map(() => ""), sort: null };
  const points = scroll("Points");
  const said = make("p", { class: "note" });
  const title = make("h2", { id: "points", tabindex: "-1" }, "Points");
  const rankIn = (list, value) => { const at = list.indexOf(value); return at < 0 ? list.length : at; };
  const first = [...run.points].sort((a, b) => rankIn(FIRST, a.verdict) - rankIn(FIRST, b.verdict));
  const key = (point, column) => [() => point.id, () => rankIn(FIRST, point.verdict), ...run.factors.map((factor, i) => () => rankIn(factor.values, point.at[i])),
    ...run.columns.map((_, i) => () => point.cells[i][0] ?? "")][column]();
  const ordered = () => (state.sort ? [...first].sort((a, b) => inOrder(key(a, state.sort[0]), key(b, state.sort[0]), state.sort[1])) : first);
  const wanted = (point) => (!state.cell || state.cell.ids.has(point.id)) && (!state.show || (state.show === "failures" ? !SOUND.includes(point.verdict) : point.verdict === state.show)) &&
    state.at.every((value, i) => value === "" || String(point.at[i]) === value) &&
    state.words.split(/\s+/).every((word) => `${point.id} ${point.name} ${point.verdict} ${point.reason}`.toLowerCase().includes(word));
  const list = () => {
    const found = ordered().filter(wanted);
    const total = run.points.length;
    said.replaceChildren(state.cell ? `${found.length} of ${total}: ${state.cell.text} ` : found.length === total ? `${many(total, "point")}`
      : found.length ? `${found.length} of ${many(total, "point")} ` : "No point is like that. ",
      found.length > MAX ? `; the first ${MAX} are shown, the search finds the others ` : "");
    if (found.length < total) said.append(make("button", { type: "button", onclick: () => { Object.assign(state, { cell: null, show: "", at: run.factors.map(() => "") }); heat?.clear(); share(); filters(); list(); } }, "Show all"));
    points.hidden = !found.length;
    points.replaceChildren(rows(run, found.slice(0, MAX), all, state.sort, (column, up) => {
      state.sort = [column, up];
      list();
      points.querySelectorAll("thead th")[column].querySelector("button").focus();
    }));
  };
  const share = () => history.replaceState(null, "", route(here().path, { ...here().query, show: state.show }));
  const form = make("div", { class: "choices" });
  const filters = () => {
    const verdicts = FIRST.filter((verdict) => run.counts[verdict]);
    form.replaceChildren(
      ...(verdicts.length > 1 ? [choose("show", [["", "all points"], ...(verdicts.some((one) => !SOUND.includes(one)) ? [["failures", "only failures"]] : []), ...verdicts.map((one) => [one, one])], state.show,
        (value) => { state.show = value; share(); list(); })] : []),
      ...run.factors.map((factor, i) => choose(factor.label, [["", "any"], ...factor.values.map((value) => [String(value), String(value)])], state.at[i], (value) => { state.at[i] = value; list(); })));
  };
  filters();
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
  place.append(title, ...run.failures.map(([verdict, sentence]) => make("p", {}, badge(verdict, all), " ", sentence)), run.points.length > 1 ? form : "", said, points);
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

const took = (seconds) => (!seconds ? "" : seconds < 120 ? `${Math.round(seconds)} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`);

// The plan's page, and the files of the run that are there.
const links = (run) => make("span", { class: "links" }, make("a", { href: route(["plan", run.plan]) }, "all runs of this plan"),
  ...["report.html", "plan.yaml"].filter((name) => run.files.some(([path]) => path === name)).map((name) => make("a", { href: fileOf(run.name, name), target: "_blank", rel: "noopener" }, name)),
  make("a", { href: route(["run", run.name, "files"]) }, many(run.files.length, "file")));

const rows = (run, points, all, sort, chosen) => {
  const element = table(
  ["point", "verdict", ...run.factors.map((factor) => factor.label),
    ...run.columns.map(([, heading, meaning]) => make("th", { scope: "col", class: "number", title: meaning }, heading))],
  points.map((point) => make("tr", {},
    make("td", { class: "nowrap marked" }, make("a", { href: route(["run", run.name, "point", point.id]), "data-item": true, "data-mark": `${run.name}/${point.id}`,
      "aria-label": `${point.id.slice(0, 8)}: ${point.name}, ${point.verdict}` }, make("code", {}, point.id.slice(0, 8))), " ", markButton(`${run.name}/${point.id}`, point.name)),
    make("td", { title: point.reason }, badge(point.verdict, all)),
    ...point.at.map((value) => make("td", {}, value)),
    ...point.cells.map(([, text]) => make("td", { class: "number" }, text)))));
  sortHeads([...element.tHead.rows[0].cells], chosen, sort);
  return element;
};

const expectations = (run, all) => make("details", { class: "small", open: run.expectations.some((item) => item.verdict !== "pass") },
  make("summary", {}, `Expectations (${run.expectations.filter((item) => item.verdict === "pass").length} of ${run.expectations.length} pass)`),
  scroll("Expectations", sorted(table(["verdict", "expectation", "found"], run.expectations.map((item) => make("tr", {},
    make("td", {}, badge(item.verdict, all)), make("td", { class: "wide" }, item.name), make("td", { class: "wide" }, item.detail)))))));
