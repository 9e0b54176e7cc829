// SPDX-License-Identifier: Apache-2.0
// A metric over a swept parameter, as testctl/report/sweep.py computes it: lines, bars, boxes or cumulative distributions.
import { css, escaped, isDark, make, many, scroll, whenSeen } from "./dom.js";

const SYMBOLS = [["circle", "●"], ["square", "■"], ["triangle-up", "▲"], ["diamond", "◆"], ["triangle-down", "▼"], ["star", "★"], ["cross", "✚"], ["x", "✖"]];
const GROUP = 0.8; // the share of a step of x that bars or boxes take
const ABOVE = 1.06; // times the greatest value is the end of an axis

const shade = (i, looks) => { const colour = looks.lanes[i % looks.lanes.length]; return (isDark() && looks.dark[colour]) || colour; };
const faint = (colour, share) => `rgba(${[1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16)).join(",")},${share})`;
const digits = (value) => Number(value.toPrecision(4)).toString();

export const sweepFigure = (sweep, looks) => {
  const [size, unit] = sweep.unit;
  const scaled = (value) => (value === null || value === undefined ? null : value / size);
  const read = (value) => (value === null || value === undefined ? "–" : `${digits(value / size)}${unit && ` ${unit}`}`);
  const least = (cell) => cell.values[0];
  const greatest = (cell) => cell.values.at(-1);
  const all = sweep.panels.flatMap((panel) => panel.lines.flatMap((line) => line.cells.flatMap((cell) => cell.values)));
  const ranged = (cell) => `${read(cell.middle)}${cell.n > 1 ? ` (${read(least(cell))} to ${read(greatest(cell))}, ${many(cell.n, "point")})` : ""}`;
  const where = (panel, line, i) => [[sweep.x.key, sweep.x.values[i]], [sweep.by.key, line.name], [sweep.facet.key, panel.name]]
    .filter(([key]) => key).map(([key, value]) => `${key} ${value}`).join(", ");
  const ofNumber = sweep.x.numbers.length > 0 && sweep.kind === "metric";
  const places = ofNumber ? sweep.x.numbers : sweep.x.values.map((_, i) => i);
  const beside = (i, count) => ((i + 0.5) / count - 0.5) * GROUP;

  const lineOf = (panel, line, i) => {
    const colour = shade(i, looks);
    const middle = line.cells.map((cell) => scaled(cell.middle));
    const several = line.cells.some((cell) => cell.n > 1);
    const errors = { type: "data", symmetric: false, visible: several, thickness: 1.2, width: 3, color: sweep.bars && !sweep.log ? css("--ink") : colour,
      array: line.cells.map((cell) => (cell.n ? scaled(greatest(cell) - cell.middle) : 0)), arrayminus: line.cells.map((cell) => (cell.n ? scaled(cell.middle - least(cell)) : 0)) };
    const shared = { name: escaped(line.name), x: places, y: middle, error_y: errors, hovertext: line.cells.map((cell, n) => escaped(`${where(panel, line, n)}: ${ranged(cell)}`)), hoverinfo: "text" };
    if (!sweep.bars) return [{ ...shared, type: "scatter", mode: "lines+markers", connectgaps: false, cliponaxis: false, line: { color: colour, width: 1.6 }, marker: { color: colour, size: 7, symbol: SYMBOLS[i % SYMBOLS.length][0] } }];
    const x = places.map((place) => place + beside(i, panel.lines.length));
    if (sweep.log) return [{ ...shared, x, type: "scatter", mode: "markers", marker: { color: colour, size: 8, symbol: SYMBOLS[i % SYMBOLS.length][0] } }];
    return [{ ...shared, x, type: "bar", width: (GROUP * 0.92) / panel.lines.length, marker: { color: colour } }];
  };
  // A box is a polygon: quartiles; a thick line at the median, thin ones to the least and the greatest value.
  const boxOf = (panel, line, i) => {
    const colour = shade(i, looks);
    const [box, middle, ends] = [{ x: [], y: [] }, { x: [], y: [] }, { x: [], y: [] }];
    const hover = { x: [], y: [], text: [] };
    const half = (GROUP * 0.4) / panel.lines.length;
    line.cells.forEach((cell, n) => {
      if (!cell.n) return;
      const at = places[n] + beside(i, panel.lines.length);
      const [low, high] = cell.quartiles.map(scaled);
      box.x.push(at - half, at + half, at + half, at - half, at - half, null); box.y.push(low, low, high, high, low, null);
      middle.x.push(at - half, at + half, null); middle.y.push(scaled(cell.middle), scaled(cell.middle), null);
      for (const [from, to] of [[scaled(least(cell)), low], [high, scaled(greatest(cell))]]) { ends.x.push(at, at, null); ends.y.push(from, to, null); }
      hover.x.push(at); hover.y.push(scaled(cell.middle)); hover.text.push(escaped(`${where(panel, line, n)}: ${ranged(cell)}, quartiles ${read(cell.quartiles[0])} and ${read(cell.quartiles[1])}`));
    });
    const drawn = (data, width, more = {}) => ({ type: "scatter", mode: "lines", ...data, line: { color: colour, width }, hoverinfo: "skip", showlegend: false, ...more });
    return [drawn(box, 1.2, { fill: "toself", fillcolor: faint(colour, 0.25) }), drawn(ends, 1.2), drawn(middle, 3),
      { type: "scatter", mode: "markers", ...hover, hoverinfo: "text", marker: { color: colour, size: 6, symbol: SYMBOLS[i % SYMBOLS.length][0] } }];
  };
  const distributionOf = (panel, line, i) => {
    const colour = shade(i, looks);
    const values = line.cells.flatMap((cell) => cell.values);
    const few = values.length <= 30;
    return [{ type: "scatter", mode: few ? "lines+markers" : "lines", name: escaped(line.name), x: values.length ? [scaled(values[0]), ...values.map(scaled)] : [],
      y: values.length ? [0, ...values.map((_, n) => (n + 1) / values.length)] : [], line: { color: colour, width: 1.6, shape: "hv" },
      marker: { color: colour, size: 5, symbol: SYMBOLS[i % SYMBOLS.length][0] },
      hovertemplate: `%{y:.1%} of ${escaped(where(panel, line, 0) || "the points")}: at most %{x:.4~g} ${unit}<extra></extra>` }];
  };
  const traces = { metric: lineOf, box: boxOf, cdf: distributionOf }[sweep.kind];

  const ofMetric = () => {
    if (!all.length) return {};
    const [low, high] = [Math.min(...all) / size, Math.max(...all) / size];
    if (sweep.log) return { type: "log", range: [Math.log10(low / 1.2), Math.log10(high * 1.2)], dtick: high / low < 1e4 ? "D2" : 1 };
    return low >= 0 && sweep.kind !== "cdf" ? { range: [0, (high || 1) * ABOVE] } : {};
  };
  const ofX = () => {
    const ticks = { tickmode: "array", tickvals: sweep.x.labelled.map((i) => places[i]), ticktext: sweep.x.labelled.map((i) => escaped(sweep.x.values[i])), showgrid: ofNumber };
    if (ofNumber) return { ...ticks, ...(sweep.x.log ? { type: "log" } : {}) };
    return { ...ticks, range: [-0.6, places.length - 0.4], zeroline: false };
  };
  const layout = () => {
    const axis = { gridcolor: css("--grid"), linecolor: css("--line"), zerolinecolor: css("--line"), automargin: true, fixedrange: true };
    const named = (text) => ({ title: { text: escaped(text), font: { size: 12 }, standoff: 6 } });
    const metric = { ...axis, ...named(sweep.label), ...ofMetric() };
    const axes = sweep.kind === "cdf" ? { xaxis: metric, yaxis: { ...axis, ...named("share of points"), range: [0, 1.02], tickformat: ".0%" } }
      : { xaxis: { ...axis, ...named(sweep.x.key), ...ofX() }, yaxis: metric };
    return { ...axes, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest", showlegend: false, margin: { l: 56, r: 12, t: 8, b: 42 },
      font: { color: css("--ink"), size: 12, family: "system-ui, 'DejaVu Sans', sans-serif" },
      hoverlabel: { bgcolor: css("--field"), bordercolor: css("--line"), font: { color: css("--ink") } } };
  };

  const plots = sweep.panels.map(() => make("div", { class: "plot", role: "img", "aria-label": `${sweep.title}. ${sweep.caption}` }));
  const keys = sweep.by.key ? sweep.panels[0].lines.map((line, i) => [make("i", { "aria-hidden": "true" }, SYMBOLS[i % SYMBOLS.length][1]), line.name]) : [];
  const element = make("figure", { class: sweep.panels.length > 1 ? "sweep wide" : "sweep" },
    make("figcaption", {}, make("h3", {}, sweep.title),
      keys.length ? make("span", { class: "keys-of" }, `${sweep.by.key} `, ...keys.map(([sign, name]) => make("span", {}, sign, ` ${name}`))) : null),
    make("div", { class: "panels" }, ...sweep.panels.map((panel, i) => make("div", {}, panel.name ? make("h4", {}, `${sweep.facet.key} ${panel.name}`) : null, plots[i]))),
    make("p", { class: "note" }, sweep.caption),
    sweep.kind === "cdf" ? null : asTable());
  const draw = () => {
    keys.forEach(([sign], i) => { sign.style.color = shade(i, looks); });
    plots.forEach((plot, n) => {
      const one = () => Plotly.react(plot, sweep.panels[n].lines.flatMap((line, i) => traces(sweep.panels[n], line, i)), layout(), { responsive: true, displayModeBar: false });
      if (plot.data) one(); else whenSeen(plot, one);
    });
  };
  function asTable() {
    const heads = [sweep.facet.key, sweep.by.key].filter(Boolean);
    const rows = sweep.panels.flatMap((panel) => panel.lines.map((line) => make("tr", {},
      ...[[sweep.facet.key, panel.name], [sweep.by.key, line.name]].filter(([key]) => key).map(([, name]) => make("th", { scope: "row" }, name)),
      ...line.cells.map((cell) => make("td", { class: "number" }, cell.n ? ranged(cell) : cell.missing ? "no value" : "·")))));
    return make("details", { class: "small" }, make("summary", {}, "As a table"), scroll(`${sweep.title}, as a table`,
      make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((name) => make("th", { scope: "col" }, name)), ...sweep.x.values.map((value, i) => make("th", { scope: "col", class: "number" }, i ? value : `${sweep.x.key} ${value}`)))),
        make("tbody", {}, ...rows))));
  }
  return { element, draw };
};
