// SPDX-License-Identifier: Apache-2.0
// One run: its question, what was found and the plan's figures; then failures, expectations, points, and how it was made.
import { ask, badge, changed, choose, counts, drawn, fileOf, here, inOrder, isExport, looks, make, many, route, scroll, sortHeads, table } from "./dom.js";
import { claimTable, expectationTable, failureTables, provenance } from "./found.js";
import { markButton } from "./marks.js";
import { matrix } from "./matrix.js";
import { difference, going, since } from "./runs.js";
import { sweepSection } from "./sweeps.js";

const FIRST = ["fail", "invalid", "broken", "skip", "not judged yet", "pass"]; // the order of the table
const FAILED = FIRST.slice(0, 3);
const SOUND = ["pass", "not judged yet"]; // no failures
const MAX = 400; // rows of the table of points; the search finds the others

export const showRun = async (place, now, attach) => {
  const name = now.path[1];
  const [run, all, sweeps] = await Promise.all([ask(["runs", name]), looks(), ask(["runs", name, "sweeps"]).catch(() => ({ figures: [], swept: [] }))]);
  const moved = new Set(run.night?.points ?? []); // points that changed since the run before
  place.append(...head(run, all, (ids) => { ids.forEach((id) => moved.add(id)); if (ids.length && run.points.length) list(); }));

  const state = { words: "", cell: null, show: here().query.show || "", at: run.factors.map(() => ""), sort: null };
  const points = scroll("Points", null, "points");
  const said = make("p", { class: "note" });
  const title = make("h2", { id: "points", tabindex: "-1" }, "Points");
  const rankIn = (list, value) => { const at = list.indexOf(value); return at < 0 ? list.length : at; };
  // Failures, then what changed, then the others; of each verdict what changed first.
  const placeOf = ({ id, verdict }) => [!FAILED.includes(verdict), FAILED.includes(verdict) ? rankIn(FAILED, verdict) : 0, !moved.has(id), rankIn(FIRST, verdict)].reduce((all, part) => 10 * all + Number(part), 0);
  const columns = telling(run);
  const key = (point, column) => [() => point.id, () => rankIn(FIRST, point.verdict), ...run.factors.map((factor, i) => () => rankIn(factor.values, point.at[i])),
    ...columns.map((i) => () => point.cells[i][0] ?? "")][column]();
  const ordered = () => {
    const first = [...run.points].sort((a, b) => placeOf(a) - placeOf(b));
    return state.sort ? first.sort((a, b) => inOrder(key(a, state.sort[0]), key(b, state.sort[0]), state.sort[1])) : first;
  };
  const wanted = (point) => (!state.cell || state.cell.ids.has(point.id)) && (!state.show || (state.show === "failures" ? !SOUND.includes(point.verdict) : point.verdict === state.show)) &&
    state.at.every((value, i) => value === "" || String(point.at[i]) === value) &&
    state.words.split(/\s+/).every((word) => `${point.id} ${point.name} ${point.verdict} ${point.reason}`.toLowerCase().includes(word));
  const list = () => {
    const found = ordered().filter(wanted);
    const total = run.points.length;
    said.replaceChildren(state.cell ? `${found.length} of ${total}: ${state.cell.text} ` : found.length === total ? `${many(total, "point")}${moved.size && !state.sort ? ": failures first, then what changed since the run before" : ""}`
      : found.length ? `${found.length} of ${many(total, "point")} ` : "No point is like that. ",
      found.length > MAX ? `; the first ${MAX} are shown, the search finds the others ` : "");
    if (found.length < total) said.append(make("button", { type: "button", onclick: () => { Object.assign(state, { cell: null, show: "", at: run.factors.map(() => "") }); heat?.clear(); share(); filters(); list(); } }, "Show all"));
    points.hidden = !found.length;
    points.replaceChildren(rows(run, columns, found.slice(0, MAX), all, moved, state.sort, (column, up) => {
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
  const toPoints = () => { list(); title.focus(); title.scrollIntoView({ block: "start" }); scrollBy(0, -60); };
  // Points with a verdict and values: [[label, value]].
  const only = (verdict, where) => {
    const values = new Map(where);
    Object.assign(state, { cell: null, show: verdict, at: run.factors.map(({ label }) => (values.has(label) ? String(values.get(label)) : "")) });
    heat?.clear();
    share();
    filters();
    toPoints();
  };

  let heat = null;
  const section = sweeps.figures.length ? sweepSection(run, sweeps, all, here().query.figure) : null;
  if (section) place.append(section.element);
  if (run.failures.length) place.append(failureTables(run, all, only));
  if (run.claims.length) place.append(claimTable(run, all));
  if (run.expectations.length) place.append(expectationTable(run, all));
  if (run.points.length > 1 && run.factors.length) {
    heat = matrix(run, all, here().query, (cell) => { state.cell = cell; toPoints(); });
    place.append(heat.element);
  }
  place.append(title, run.points.length > 1 ? form : "", said, points, leftOut(run, columns), provenance(run));
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

// The question, the verdict, and why where the run says nothing else.
const head = (run, all, tell) => [
  make("h1", {}, run.plan, " ", run.state === "complete" ? null : badge("", all, run.state)),
  run.about ? make("p", { class: "about" }, run.about) : "", changed(run) ?? "",
  make("div", { class: "verdict" }, counts(run.counts, all), run.found ? make("strong", {}, run.found) : null),
  run.state === "in progress" ? make("p", { class: "note" }, run.progress ? `${going(run.progress)}. ` : "", "This run is not finished (or was stopped): these are its points so far.") : "",
  run.damage.length ? make("div", { class: "error" }, "Some of this run can't be read; the rest is shown.", make("ul", {}, ...run.damage.map((text) => make("li", {}, text)))) : "",
  ...run.reasons.map(({ verdict, reason, count, point }) => make("p", { class: "error" }, badge(verdict, all), " ",
    make("a", { href: route(["run", run.name, "point", point]) }, many(count, "point")), `: ${reason}`)),
  run.night ? make("div", { class: "since" }, ...difference(run.night, run.name, namesOf(run))) : changes(run, tell),
  treeOf(new Map(run.versions)),
  run.night?.less.length ? make("details", { class: "small" }, make("summary", {}, "Points that the run before had"), make("ul", {}, ...run.night.less.map((name) => make("li", {}, name)))) : "",
  isExport() ? "" : links(run),
  run.paths.rows.length ? make("details", { class: "small", open: run.paths.rows.length < 4 }, make("summary", {}, "Paths without other traffic"),
    scroll("Paths", table(run.paths.heads, run.paths.rows.map((row) => make("tr", {}, ...row.map((text) => make("td", { class: "text" }, text))))))) : ""];

// The user's tree whose kernel ran, and what differs in it.
const treeOf = (versions) => {
  const [source, commit, uncommitted, changed] = ["source", "commit", "uncommitted", "changed"].map((name) => versions.get(`tree ${name}`));
  return source ? make("p", { class: "note" }, `The kernel is of ${source}${commit ? `, commit ${commit.slice(0, 12)}` : ""}${uncommitted ? `, not committed: ${uncommitted}` : ""}`
    + `${changed ? `; since the build before, these changed: ${changed}` : ""}.`) : "";
};
const namesOf = ({ points }) => new Map(points.map(({ id, name }) => [id, name]));
// Since the run before, which a server alone knows.
const changes = (run, tell) => {
  if (isExport() || run.state !== "complete") return "";
  const words = make("div", { class: "since" });
  since(run.name, words, namesOf(run)).then(tell);
  return words;
};

// The plan's page, and the files of the run that are there.
const links = (run) => make("p", { class: "links note" }, make("a", { href: route(["plan", run.plan]) }, "all runs of this plan"),
  ...[["report.html", "report.html"], ["plan.yaml", "plan.yaml"], ["coverage/index.html", "coverage of the kernel's source"]].filter(([name]) => run.files.some(([path]) => path === name))
    .map(([name, text]) => make("a", { href: fileOf(run.name, name), target: "_blank", rel: "noopener" }, text)),
  make("a", { href: route(["run", run.name, "files"]) }, many(run.files.length, "file")));

// Columns of the table of points in which points differ, by their places.
const telling = ({ columns, points }) => columns.map((_, i) => i).filter((i) => points.length < 2 || points.some(({ cells }) => cells[i][1] !== points[0].cells[i][1]));
const leftOut = (run, shown) => {
  const others = run.columns.map(([, heading], i) => [i, heading, run.points[0]?.cells[i][1]]).filter(([i]) => !shown.includes(i));
  const [same, none] = [others.filter(([, , text]) => text !== "–"), others.filter(([, , text]) => text === "–")];
  return others.length ? make("p", { class: "note" }, [same.length ? `The same in all points: ${same.map(([, heading, text]) => `${heading} ${text}`).join(", ")}.` : "",
    none.length ? `In no point: ${none.map(([, heading]) => heading).join(", ")}.` : ""].filter(Boolean).join(" ")) : "";
};

// A name may have an end of a line behind each _, and values of several flows only between them.
const broken = (text) => String(text).split(/(?<=_)/).flatMap((part, i) => (i ? [make("wbr"), part] : [part]));
const ofFlows = (text) => text.replace(/(?<!,) /g, "\u00a0");

const rows = (run, columns, points, all, moved, sort, chosen) => {
  const element = make("table", {},
    make("thead", {}, make("tr", {}, ...["point", "verdict", ...run.factors.map((factor) => factor.label)].map((text) => make("th", { scope: "col" }, ...broken(text))),
      ...columns.map((i) => make("th", { scope: "col", class: "number", title: run.columns[i][2] }, ...broken(run.columns[i][1]))))),
    make("tbody", {}, ...points.map((point) => make("tr", {},
      make("td", { class: "nowrap marked" }, make("a", { href: route(["run", run.name, "point", point.id]), "data-item": true, "data-mark": `${run.name}/${point.id}`,
        "aria-label": `${point.id.slice(0, 8)}: ${point.name}, ${point.verdict}` }, make("code", {}, point.id.slice(0, 8))), " ", markButton(`${run.name}/${point.id}`, point.name)),
      make("td", { title: point.reason }, badge(point.verdict, all), moved.has(point.id) ? make("span", { class: "note" }, " changed") : null),
      ...point.at.map((value) => make("td", { class: String(value).length > 12 ? "long" : null }, value)),
      ...columns.map((i) => make("td", { class: "number" }, ofFlows(point.cells[i][1])))))));
  sortHeads([...element.tHead.rows[0].cells], chosen, sort);
  return element;
};
