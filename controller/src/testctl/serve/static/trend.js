// SPDX-License-Identifier: Apache-2.0
// One metric of one point over the runs that have it, with the places where its level changed.
import { drawChart } from "./chart.js";
import { ask, badge, choose, drawn, latest, looks, make, pick, route, scroll, sorted, table, troubled, when } from "./dom.js";

export const showTrend = async (place, now, ready) => {
  const point = now.path[1];
  const all = await looks();
  const state = { metric: now.query.metric || "throughput_bps", flow: now.query.flow || "" };
  let trend = await ask(["trends", point], state);
  const plot = make("div", { class: "plot large", role: "img", "data-figure": "trend", "aria-label": "trend" });
  const said = make("p", { class: "note" });
  const list = scroll("Runs that have the point");
  const again = latest(() => ask(["trends", point], state), (found) => { trend = found; show(); }, (error) => {
    trend.chart = null;
    plot.parentElement.hidden = true;
    said.textContent = "";
    list.replaceChildren(troubled(error.message));
  });
  const change = (key) => (value) => {
    state[key] = value;
    history.replaceState(null, "", route(["trend", point], state));
    again();
  };
  place.append(make("h1", {}, "Trend of ", make("code", {}, point)),
    make("p", { class: "note" }, trend.tuples.map(([entity, parameter, value]) => `${entity} ${parameter} ${value}`).join(", ")),
    make("div", { class: "choices" }, pick("metric", trend.metrics, state.metric, change("metric")),
      ...(trend.flows.length > 1 ? [choose("flow", [["", "point, or greatest flow"], ...trend.flows.map((name) => [name, name])], state.flow, change("flow"))] : [])),
    said, make("figure", {}, plot), list);
  const draw = () => drawChart(plot, trend.chart, all);
  const show = () => {
    const { runs, changes } = trend;
    said.textContent = trend.chart?.note ?? (runs.some((run) => run.value !== null) ? "One run so far: nothing to compare it with. Run the plan again; testctl nightly does so every night."
      : "No run has a number for this metric.");
    plot.parentElement.hidden = !trend.chart;
    if (trend.chart) draw().then(() => drawn("trend"));
    list.replaceChildren(sorted(table(["run", "started (UTC)", "kernel", "verdict", make("th", { scope: "col", class: "number" }, state.metric), "level", "digest"],
      runs.map((run, i) => make("tr", { class: changes.includes(i) ? "chosen" : "" },
        make("td", {}, make("a", { href: route(["run", run.name, "point", point]), "data-item": true, "data-mark": `${run.name}/${point}` }, run.name)),
        make("td", { class: "nowrap" }, when(run.started)), make("td", {}, run.kernels.join(", ") || "–"), make("td", {}, badge(run.verdict, all)), make("td", { class: "number", "data-sort": run.value ?? "" }, run.shown),
        make("td", { class: "nowrap" }, changes.includes(i) ? "new level" : ""), make("td", {}, make("code", {}, run.digest.slice(0, 12))))).reverse())));
    if (!trend.chart) queueMicrotask(() => drawn("trend"));
  };
  ready();
  show();
  return { restyle: () => trend.chart && draw() };
};
