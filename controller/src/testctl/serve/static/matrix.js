// SPDX-License-Identifier: Apache-2.0
// The matrix of a run: any two of what varies; a cell is all points with these two values, taken together.
import { ask, choose, here, make, pick, route, say, scroll, showIn } from "./dom.js";

// A place between the colours of a scale, from 0 to 1.
const colour = (scale, share) => {
  const place = Math.min(Math.max(share, 0), 1) * (scale.length - 1);
  const [low, rest] = [Math.floor(place), place % 1];
  const high = scale[Math.min(low + 1, scale.length - 1)];
  return scale[low].map((part, i) => Math.round(part + (high[i] - part) * rest));
};
// By relative luminance as WCAG 2 defines it: black has more contrast above this one.
const linear = (part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) > 0.19;
const WAYS = {
  mean: (values) => values.reduce((sum, value) => sum + value, 0) / values.length,
  least: (values) => Math.min(...values),
  greatest: (values) => Math.max(...values),
  spread: (values) => Math.max(...values) - Math.min(...values),
};
const WORST = ["broken", "fail", "invalid", "skip", "not judged yet", "pass"];

export const matrix = (run, looks, query, onCell) => {
  const labels = run.factors.map((factor) => factor.label);
  const place = (name, other) => { const found = labels.indexOf(name); return String(found >= 0 ? found : Math.min(other, labels.length - 1)); };
  const [first, second] = run.axes; // the most telling ones
  const state = { x: place(query.x ?? first, 0), y: place(query.y ?? second, 1), metric: run.metrics.includes(query.metric) ? query.metric : "",
    flow: run.flows.includes(query.flow) ? query.flow : "", way: query.way in WAYS ? query.way : "mean" };
  const grid = scroll("Matrix", null, "matrix");
  const scale = make("p", { class: "scale" });
  const form = make("div", { class: "choices" });
  let values = null;
  let shown = null;
  let turn = 0;

  const share = () => history.replaceState(null, "", route(here().path, { ...here().query, x: labels[state.x], y: labels[state.y],
    metric: state.metric, flow: state.flow, way: state.metric && state.way !== "mean" ? state.way : "" }));
  const fetchValues = async () => {
    const mine = ++turn;
    const got = state.metric ? await ask(["runs", run.name, "values"], { metric: state.metric, flow: state.flow }) : null;
    if (mine !== turn) return;
    values = got;
    draw();
  };
  const change = (key) => (value) => { state[key] = value; share(); controls(); if (key === "metric" || key === "flow") fetchValues().catch((error) => say(error.message)); else draw(); };
  const controls = () => {
    const focused = [...form.querySelectorAll("select, input")].indexOf(document.activeElement);
    const factors = labels.map((label, i) => [String(i), label]);
    form.replaceChildren(...(labels.length > 1 ? [choose("across", factors, state.x, change("x")), choose("down", factors, state.y, change("y"))] : []),
      pick("metric", run.metrics, state.metric, change("metric")), ...(state.metric ? [make("button", { type: "button", onclick: () => change("metric")("") }, "Verdicts")] : []),
      ...(state.metric ? [choose("of points", Object.keys(WAYS).map((name) => [name, name]), state.way, change("way"))] : []),
      ...(state.metric && run.flows.length > 1 ? [choose("flow", [["", "point, or greatest flow"], ...run.flows.map((name) => [name, name])], state.flow, change("flow"))] : []));
    if (focused >= 0) form.querySelectorAll("select, input")[focused]?.focus();
  };

  const draw = () => {
    const across = run.factors[state.x];
    const down = state.y !== state.x ? run.factors[state.y] : { label: "", values: [null] };
    const cells = new Map();
    run.points.forEach((point, i) => {
      const key = `${across.values.indexOf(point.at[state.x])} ${down.label ? down.values.indexOf(point.at[state.y]) : 0}`;
      cells.set(key, [...(cells.get(key) || []), i]);
    });
    const numbers = new Map();
    if (values) for (const [key, members] of cells) {
      const own = members.map((i) => values[run.points[i].id] ?? null).filter((value) => value !== null);
      if (own.length) numbers.set(key, WAYS[state.way](own));
    }
    const [least, most] = [Math.min(...numbers.values()), Math.max(...numbers.values())];
    const cell = (x, y) => {
      const key = `${x} ${y}`;
      const members = cells.get(key);
      if (!members) return make("td", {}, make("span", { class: "empty" }, "·"));
      const told = [`${across.label} ${across.values[x]}`, ...(down.label ? [`${down.label} ${down.values[y]}`] : [])].join(", ");
      const counted = WORST.map((verdict) => [verdict, members.filter((i) => run.points[i].verdict === verdict).length]).filter(([, n]) => n);
      const words = counted.map(([verdict, n]) => `${n} ${verdict}`).join(", ");
      const text = values ? (numbers.has(key) ? brief(numbers.get(key)) : "–") : counted.map(([verdict, n]) => `${looks.verdicts[verdict]?.[1] ?? "?"} ${n}`).join("  ");
      const button = make("button", { type: "button", "data-item": true, title: `${told}: ${words}`,
        "aria-label": `${text}: ${told}: ${values ? `${state.metric}, ` : ""}${words}`, "aria-pressed": shown === key,
        onclick: () => { shown = key; draw(); onCell({ text: told, ids: new Set(members.map((i) => run.points[i].id)) }); } }, text);
      if (values && numbers.has(key)) {
        const tint = colour(looks.scale, most > least ? (numbers.get(key) - least) / (most - least) : 0.5);
        button.style.background = `rgb(${tint})`;
        button.style.color = light(tint) ? "#10151a" : "#ffffff";
      } else if (!values) {
        let done = 0;
        button.style.background = `linear-gradient(to right, ${counted.map(([verdict, n]) => {
          const from = done;
          done += (100 * n) / members.length;
          return `${looks.verdicts[verdict]?.[0] ?? "#888"} ${from}% ${done}%`;
        }).join(", ")})`;
      } else { button.style.background = "none"; button.style.color = "inherit"; }
      return make("td", {}, button);
    };
    grid.replaceChildren(make("table", {},
      make("thead", {}, make("tr", {}, make("th", {}, down.label ? `${down.label} ↓  ${across.label} →` : `${across.label} →`),
        ...across.values.map((value) => make("th", { scope: "col" }, String(value))))),
      make("tbody", {}, ...down.values.map((value, y) => make("tr", {}, value === null ? make("td") : make("th", { scope: "row" }, String(value)),
        ...across.values.map((_, x) => cell(x, y)))))));
    if (values && numbers.size) {
      const bar = make("i");
      bar.style.background = `linear-gradient(to right, ${looks.scale.map((part) => `rgb(${part})`).join(", ")})`;
      scale.replaceChildren(`${state.metric}, ${state.way} of the points in a cell: `, brief(least), bar, brief(most));
    } else scale.replaceChildren(values ? "No point has this metric." : "");
  };
  // Numbers in the unit that the metric's name ends in.
  const brief = (value) => {
    const name = state.metric;
    if (/_bps$/.test(name)) return showIn("rate", value);
    if (/_bytes$/.test(name)) return showIn("size", value);
    const unit = /_(ns|us|ms|s)$/.exec(name)?.[1]?.replace("us", "µs");
    return `${Number(value.toPrecision(3))}${unit ? ` ${unit}` : ""}`;
  };
  controls();
  const ready = fetchValues();
  return { element: make("section", {}, make("h2", {}, "Matrix"), form, grid, scale),
    ready, draw, clear: () => { shown = null; draw(); } };
};
