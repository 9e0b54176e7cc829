// SPDX-License-Identifier: Apache-2.0
// All runs of a plan, and a metric of each of its points over them.
import { ask, badge, changed, choose, counts, drawn, latest, looks, make, many, percent, pick, route, scroll, sorted, table, troubled, when } from "./dom.js";
import { spark } from "./spark.js";

const MAX = 300; // rows of points; the search finds the others

export const showPlan = async (place, now) => {
  const [, name] = now.path;
  if (!name) throw new Error("The address names no plan. All plans are in the list at the top left.");
  const all = await looks();
  const state = { metric: now.query.metric || "throughput_bps", flow: now.query.flow || "", words: "", open: false };
  const fetched = () => ask(["plans", name], { metric: state.metric, flow: state.flow });
  let plan = await fetched();
  const form = make("div", { class: "choices" });
  const points = make("div");
  const said = make("p", { class: "note" });
  const runs = [...plan.runs].reverse();
  place.append(make("h1", {}, plan.plan), plan.about ? make("p", { class: "note" }, plan.about) : "", make("h2", {}, many(plan.runs_in_all, "run")),
    plan.runs_in_all > runs.length ? make("p", { class: "note" }, `The newest ${runs.length} are shown.`) : "",
    scroll("Runs of the plan", sorted(table(["run", "started (UTC)", "points", "kernel", "digest"], runs.map((run) => make("tr", {},
      make("td", {}, make("a", { href: route(["run", run.name]), "data-item": true }, run.name), " ", run.state === "complete" ? null : badge("", all, run.state), changed(run)),
      make("td", { class: "nowrap" }, when(run.started)), make("td", {}, counts(run.counts, all)), make("td", {}, run.kernels.join(", ") || "–"),
      make("td", {}, run.digest ? make("code", {}, run.digest.slice(0, 12)) : "–"))))), runs.length > 12 ? "tall" : ""),
    make("h2", {}, "Trends of its points"), form, said, points);
  const again = latest(fetched, (found) => { plan = found; show(); }, (error) => points.replaceChildren(troubled(error.message)));
  const change = (key) => (value) => {
    state[key] = value;
    history.replaceState(null, "", route(["plan", name], { metric: state.metric, flow: state.flow }));
    again();
  };
  form.append(pick("metric", plan.metrics, state.metric, change("metric")),
    ...(plan.flows.length > 1 ? [choose("flow", [["", "point, or greatest flow"], ...plan.flows.map((flow) => [flow, flow])], state.flow, change("flow"))] : []));
  const trends = (of) => sorted(table(["point", make("th", { scope: "col", "data-plain": true }, "over the runs"), ...["last value", "change"].map((text) => make("th", { scope: "col", class: "number" }, text)), "differs", "new level"],
    of.slice(0, MAX).map((point) => make("tr", {}, make("td", {}, make("a", { href: route(["trend", point.id], { metric: state.metric, flow: state.flow }), "data-item": true }, point.name)),
      make("td", { class: "trend" }, spark(point.values, point.verdicts, all, point)), make("td", { class: "number", "data-sort": point.last ?? "" }, point.shown),
      make("td", { class: "number", "data-sort": point.change ?? "" }, point.change === 0 ? "0 %" : percent(point.change)),
      make("td", {}, point.differs === "verdict" ? badge(point.verdicts.findLast((one) => one), all) : point.differs),
      make("td", { class: "nowrap" }, point.changes.length ? when(plan.runs[point.changes.at(-1)].started) : "")))));
  const show = () => {
    const found = plan.points.filter((point) => state.words.split(/\s+/).every((word) => `${point.id} ${point.name}`.toLowerCase().includes(word)));
    const [moved, same] = [found.filter((point) => point.differs), found.filter((point) => !point.differs)];
    const levels = plan.points.filter((point) => point.changes.length).length;
    said.textContent = !plan.points.length ? "No run of it has a point yet." : !found.length ? "No point has these words."
      : plan.runs.length < 2 ? "One run so far: nothing to compare it with. Run the plan again; testctl nightly does so every night."
        : `${many(plan.runs.length, "run")}; ${levels ? `${many(levels, "point")} of ${plan.points.length} with a new level, marked by a line` : "no change of level"}. A dot is the last value, or a run in which the point did not pass.${Math.max(moved.length, same.length) > MAX ? ` The first ${MAX} points are shown; the search finds the others.` : ""}`;
    const fold = same.length && !state.words && plan.runs.length > 1;
    points.replaceChildren(...(moved.length ? [scroll("Trends", trends(moved))] : []),
      ...(fold ? [make("details", { class: "small", open: state.open, ontoggle: (event) => { state.open = event.target.open; } }, make("summary", {}, `${many(same.length, "point")}: no change`), scroll("Trends of the others", trends(same)))]
        : same.length ? [scroll(moved.length ? "Trends of the others" : "Trends", trends(same))] : []));
    drawn("plan");
  };
  show();
  return { search: (words) => { state.words = words; show(); } };
};
