// SPDX-License-Identifier: Apache-2.0
// One metric of one point over the runs that have it, with the places where its level changed.
import { ask, badge, choose, css, drawn, escaped, here, isDark, looks, make, pick, vega as plotly, route, scroll, sorted, table, when } from "./dom.js";

export const showTrend = async (place, now, ready) => {
  const point = now.path[1];
  const all = await looks();
  const state = { metric: now.query.metric || "throughput_bps", flow: now.query.flow || "" };
  let trend = await ask(["trends", point], state);
  const plot = make("div", { class: "plot large", role: "img", "data-figure": "trend" });
  const said = make("p", { class: "note" });
  const list = scroll("Runs that have the point");
  const change = (key) => async (value) => {
    state[key] = value;
    history.replaceState(null, "", route(["trend", point], state));
    trend = await ask(["trends", point], state);
    show();
  };
  place.append(make("h1", {}, "Trend of ", make("code", {}, point)),
    make("p", { class: "note" }, trend.tuples.map(([entity, parameter, value]) => `${entity} ${parameter} ${value}`).join(", ")),
    make("div", { class: "choices" }, pick("metric", trend.metrics, state.metric, change("metric")),
      ...(trend.flows.length > 1 ? [choose("flow", [["", "all together"], ...trend.flows.map((name) => [name, name])], state.flow, change("flow"))] : [])),
    said, make("figure", {}, plot), list);
  const show = () => {
    const { runs, changes } = trend;
    const known = runs.filter((run) => run.value !== null).length;
    said.textContent = known === 1 ? "One run so far: nothing to compare it with. Run the plan again; testctl nightly does so every night."
      : known ? `${known} runs; ${changes.length ? `a new level begins at ${changes.map((i) => runs[i].name).join(", ")}` : "no change of level"}` :
      "No run has a number for this metric.";
    plot.parentElement.hidden = known < 2;
    if (known > 1) plotly().then(() => chart(plot, trend, all)).then(() => drawn("trend"));
    plot.setAttribute("aria-label", `${state.metric} over runs: ${said.textContent}`);
    list.replaceChildren(sorted(table(["run", "started (UTC)", "kernel", "verdict", make("th", { scope: "col", class: "number" }, state.metric), "level", "digest"],
      runs.map((run, i) => make("tr", { class: changes.includes(i) ? "chosen" : "" },
        make("td", {}, make("a", { href: route(["run", run.name, "point", point]), "data-item": true, "data-mark": `${run.name}/${point}` }, run.name)),
        make("td", { class: "nowrap" }, when(run.started)), make("td", {}, run.kernels.join(", ") || "–"), make("td", {}, badge(run.verdict, all)), make("td", { class: "number", "data-sort": run.value ?? "" }, run.shown),
        make("td", { class: "nowrap" }, changes.includes(i) ? "new level" : ""), make("td", {}, make("code", {}, run.digest.slice(0, 12))))).reverse())));
    if (known < 2) queueMicrotask(() => drawn("trend"));
  };
  ready();
  show();
  return { restyle: () => plot.data && chart(plot, trend, all), leave: () => plot.data && Plotly.purge(plot) };
};

// Values that differ by less than a share of them lie in the middle, on an axis of few digits.
const LEAST = 0.01;
const aboutEqual = (runs) => {
  const values = runs.map((run) => run.value).filter((value) => value !== null);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const size = Math.max(Math.abs(low), Math.abs(high));
  if (high - low >= LEAST * size && size) return {};
  return { range: size ? [(low + high) / 2 - LEAST * size, (low + high) / 2 + LEAST * size] : [-1, 1] };
};

const chart = (plot, { runs, changes, metric }, all) => {
  const colour = (isDark() && all.dark[all.data]) || all.data;
  const lines = { gridcolor: css("--grid"), linecolor: css("--line"), zerolinecolor: css("--line"), automargin: true };
  const bounds = [0, ...changes, runs.length];
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const levels = bounds.slice(1).map((end, i) => [bounds[i], end, runs.slice(bounds[i], end).map((run) => run.value).filter((value) => value !== null)]).filter(([, , values]) => values.length);
  const few = runs.length <= 12;
  Plotly.react(plot, [
    { type: "scatter", mode: "lines+markers", name: metric, x: runs.map((_, i) => i), y: runs.map((run) => run.value), line: { color: colour, width: 1.2 },
      marker: { size: 8, color: runs.map((run) => all.verdicts[run.verdict]?.[0] || colour), symbol: runs.map((_, i) => (changes.includes(i) ? "diamond" : "circle")) },
      text: runs.map((run) => escaped(`${run.name}: ${run.shown}, ${run.verdict}`)), hovertemplate: "%{text}<extra></extra>" },
    ...levels.map(([from, to, values]) => ({ type: "scatter", mode: "lines", x: [from - 0.4, to - 0.6], y: [mean(values), mean(values)], line: { color: all.stall, width: 2.5, dash: "dash" }, hoverinfo: "skip", showlegend: false })),
  ], {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, hovermode: "closest", margin: { l: 60, r: 10, t: 12, b: 50 },
    font: { color: css("--ink"), size: 12, family: "system-ui, 'DejaVu Sans', sans-serif" },
    xaxis: { ...lines, range: [-0.6, runs.length - 0.4], ...(few ? { tickvals: runs.map((_, i) => i), ticktext: runs.map((run) => when(run.started).slice(5)) } :
      { tickvals: runs.map((_, i) => i).filter((i) => i % Math.ceil(runs.length / 10) === 0), ticktext: runs.filter((_, i) => i % Math.ceil(runs.length / 10) === 0).map((run) => when(run.started).slice(5, 10)) }) },
    yaxis: { ...lines, title: { text: metric, standoff: 10 }, automargin: true, tickformat: ".4~s", nticks: 7, ...aboutEqual(runs) },
    hoverlabel: { bgcolor: css("--field"), bordercolor: css("--line"), font: { color: css("--ink") } },
    shapes: changes.map((i) => ({ type: "line", x0: i - 0.5, x1: i - 0.5, y0: 0, y1: 1, yref: "paper", line: { color: all.retrans, width: 1.5, dash: "dot" } })),
  }, { responsive: true, displayModeBar: false });
};
