// SPDX-License-Identifier: Apache-2.0
// Draws a figure that testctl/charts made: a Vega-Lite specification, completed by its data and the page's colours.
import { css, isDark, vega, units } from "./dom.js";

const rows = (columns) => {
  const names = Object.keys(columns);
  return columns[names[0]]?.map((_, i) => Object.fromEntries(names.map((name) => [name, columns[name][i]]))) ?? [];
};
// Of figures side by side: the least and the greatest value of all.
export const union = (charts) => charts.filter((one) => one?.range).map((one) => one.range)
  .reduce((all, one) => (all ? [Math.min(all[0], one[0]), Math.max(all[1], one[1])] : one), null);
// Of figures side by side: where one has a logarithmic axis all have.
const isLog = (chart) => chart?.spec?.encoding?.y?.scale?.type === "log";
export const alike = (charts) => (!charts.some(isLog) ? charts : charts.map((chart) => {
  if (!chart?.range || isLog(chart)) return chart;
  const least = Math.min(...Object.values(chart.data).flatMap(({ y }) => y ?? []).filter((value) => value > 0));
  const { spec, range: [, most] } = chart;
  const encoding = { ...spec.encoding, y: { ...spec.encoding.y, scale: { type: "log" } } };
  return { ...chart, range: [Math.min(least, most) / 1.2, most], spec: { ...spec, encoding } };
}));
const ranged = (spec, kind, range) => {
  if (!kind || !range) return spec;
  const [size, unit] = units[kind](Math.max(Math.abs(range[0]), Math.abs(range[1])));
  const y = { ...spec.encoding.y, axis: { ...spec.encoding.y.axis, title: unit, labelExpr: `format(datum.value / ${size}, '~g')` }, scale: { ...spec.encoding.y.scale, domain: range } };
  return { ...spec, encoding: { ...spec.encoding, y } };
};
// As testctl/charts/chart.py's config, in the page's colours.
const config = (columns) => ({ font: "system-ui, 'DejaVu Sans', sans-serif", background: "transparent", view: { stroke: null },
  axis: { gridColor: css("--grid"), domainColor: css("--line"), tickColor: css("--line"), labelColor: css("--ink"), titleColor: css("--ink"), titleFontWeight: "normal", labelFontSize: 11 }, axisY: { minExtent: 40, tickCount: 6 },
  legend: { orient: "top", title: null, labelColor: css("--ink"), titleColor: css("--ink"), labelLimit: 300, symbolStrokeWidth: 2, labelFontSize: 12, columns },
  header: { labelColor: css("--ink"), titleColor: css("--ink") }, title: { color: css("--ink") }, facet: { spacing: 24 },
  style: { note: { color: css("--soft") }, bound: { color: css("--soft"), strokeDash: [5, 4] }, ink: { color: css("--ink") } } });
// Colours that need more light on a dark page.
const shaded = (spec, dark) => JSON.parse(Object.entries(dark).reduce((text, [one, other]) => text.replaceAll(one, other), JSON.stringify(spec)));

// As wide as its place; panels stand beside each other where each is wide enough to be read.
const PANEL = 230;
const sized = (spec, element) => {
  if (!spec.facet) return { width: "container", autosize: { type: "fit", contains: "padding" }, ...spec };
  const wide = element.clientWidth - 84; // without the axis and its title
  const columns = Math.max(1, Math.min(spec.columns, spec.facet.sort.length, Math.floor(wide / PANEL)));
  return { ...spec, columns, spec: { width: Math.max((wide - 24 * (columns - 1)) / columns, PANEL / 2), height: 220, ...spec.spec } };
};

// As many entries of the legend in a line as fit.
const entries = (spec, element) => {
  const labels = spec.encoding?.color?.scale?.domain ?? [];
  return Math.max(1, Math.floor((element.clientWidth - 60) / (Math.max(1, ...labels.map((label) => String(label).length)) * 7 + 40)));
};

// Draws it into an element and returns Vega's view; range: y, where it is not the figure's own.
export const drawChart = async (element, chart, looks, range = chart.range) => {
  const embed = await vega();
  const spec = ranged(isDark() ? shaded(chart.spec, looks.dark) : chart.spec, chart.kind, range);
  const datasets = Object.fromEntries(Object.entries(chart.data).map(([name, columns]) => [name, rows(columns)]));
  element.chart = { ...chart, range }; // what is drawn, for who looks at the page's state
  element.dataset.colours = isDark() ? "dark" : "light";
  const { view } = await embed(element, { $schema: "https://vega.github.io/schema/vega-lite/v6.json", ...sized(spec, element), datasets, config: config(entries(spec, element)) },
    { actions: false, renderer: "canvas", mode: "vega-lite", ast: true, tooltip: { theme: isDark() ? "dark" : "light" } });
  element.setAttribute("aria-label", chart.spoken || chart.title);
  return view;
};
