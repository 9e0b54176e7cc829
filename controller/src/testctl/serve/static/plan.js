// SPDX-License-Identifier: Apache-2.0
// All runs of a plan, and a metric of each of its points over them.
import { ask, badge, changed, choose, counts, drawn, looks, make, many, pick, route, scroll, sorted, table, when } from "./dom.js";

const MAX = 300; // rows of points; the search finds the others
const [WIDE, HIGH] = [150, 26]; // of a small chart
const percent = (change) => (change === null ? "" : `${change < 0 ? "−" : "+"}${Number(Math.abs(change * 100).toPrecision(3))} %`);

// A line over all runs, a dot at the last value, and a stroke where a new level begins; SVG has no part in the page's text.
const small = ({ values, changes, verdicts }, looks) => {
  const svg = (tag, attributes) => { const one = document.createElementNS("http://www.w3.org/2000/svg", tag); for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value); return one; };
  const known = values.map((value, i) => [i, value]).filter(([, value]) => value !== null);
  const element = svg("svg", { width: WIDE, height: HIGH, viewBox: `0 0 ${WIDE} ${HIGH}`, "aria-hidden": "true" });
  if (!known.length) return element;
  const [least, most] = [Math.min(...known.map(([, value]) => value)), Math.max(...known.map(([, value]) => value))];
  const x = (i) => 4 + (values.length > 1 ? (i / (values.length - 1)) * (WIDE - 8) : WIDE / 2 - 4);
  const y = (value) => (most > least ? HIGH - 4 - ((value - least) / (most - least)) * (HIGH - 8) : HIGH / 2);
  for (const i of changes) element.append(svg("line", { x1: x(i - 0.5), x2: x(i - 0.5), y1: 0, y2: HIGH, class: "change" }));
  element.append(svg("polyline", { points: known.map(([i, value]) => `${x(i)},${y(value)}`).join(" ") }));
  known.forEach(([i, value], n) => (n === known.length - 1 || verdicts[i] !== "pass") && element.append(svg("circle", { cx: x(i), cy: y(value), r: 3, fill: looks.verdicts[verdicts[i]]?.[0] || "#888" })));
  return element;
};

export const showPlan = async (place, now) => {
  const [, name] = now.path;
  const all = await looks();
  const state = { metric: now.query.metric || "throughput_bps", flow: now.query.flow || "", words: "" };
  const fetched = () => ask(["plans", name], { metric: state.metric, flow: state.flow });
  let plan = await fetched();
  const form = make("div", { class: "choices" });
  const points = make("div");
  const said = make("p", { class: "note" });
  const runs = [...plan.runs].reverse();
  place.append(make("h1", {}, plan.plan), plan.about ? make("p", { class: "note" }, plan.about) : "", make("h2", {}, many(plan.runs_in_all, "run")),
    plan.runs_in_all > runs.length ? make("p", { class: "note" }, `The newest ${runs.length} are shown.`) : "",
    scroll("Runs of the plan", sorted(table(["run", "started (UTC)", "points", "kernel", "digest"], runs.map((run) => make("tr", {},
      make("td", {}, make("a", { href: route(["run", run.name]), "data-item": true }, run.name), run.state === "complete" ? null : badge("", all, run.state), changed(run)),
      make("td", { class: "nowrap" }, when(run.started)), make("td", {}, counts(run.counts, all)), make("td", {}, run.kernels.join(", ") || "–"),
      make("td", {}, run.digest ? make("code", {}, run.digest.slice(0, 12)) : "–"))))), runs.length > 12 ? "tall" : ""),
    make("h2", {}, "Trends of its points"), form, said, points);
  const change = (key) => async (value) => {
    state[key] = value;
    history.replaceState(null, "", route(["plan", name], { metric: state.metric, flow: state.flow }));
    plan = await fetched();
    show();
  };
  form.append(pick("metric", plan.metrics, state.metric, change("metric")),
    ...(plan.flows.length > 1 ? [choose("flow", [["", "all together"], ...plan.flows.map((flow) => [flow, flow])], state.flow, change("flow"))] : []));
  const show = () => {
    const found = plan.points.filter((point) => state.words.split(/\s+/).every((word) => `${point.id} ${point.name}`.toLowerCase().includes(word)));
    const moved = plan.points.filter((point) => point.changes.length).length;
    said.textContent = !plan.points.length ? "No run of it has a point yet." : !found.length ? "No point has these words."
      : plan.runs.length < 2 ? "One run so far: nothing to compare it with. Run the plan again; testctl nightly does so every night."
        : `${many(plan.runs.length, "run")}; ${moved ? `${many(moved, "point")} of ${plan.points.length} with a new level, marked by a line` : "no change of level"}. A dot is the last value, or a run in which the point did not pass.${found.length > MAX ? ` The first ${MAX} points are shown; the search finds the others.` : ""}`;
    points.replaceChildren(...(found.length ? [scroll("Trends", sorted(table(["point", make("th", { scope: "col", "data-plain": true }, "over the runs"), ...["last value", "change"].map((text) => make("th", { scope: "col", class: "number" }, text)), "new level"],
      found.slice(0, MAX).map((point) => make("tr", {}, make("td", {}, make("a", { href: route(["trend", point.id], { metric: state.metric, flow: state.flow }), "data-item": true }, point.name)),
        make("td", { class: "trend" }, small(point, all)), make("td", { class: "number", "data-sort": point.last ?? "" }, point.shown),
        make("td", { class: "number", "data-sort": point.change ?? "" }, point.change === 0 ? "0 %" : percent(point.change)),
        make("td", { class: "nowrap" }, point.changes.length ? when(plan.runs[point.changes.at(-1)].started) : ""))))))] : []));
    drawn("plan");
  };
  show();
  return { search: (words) => { state.words = words; show(); } };
};
