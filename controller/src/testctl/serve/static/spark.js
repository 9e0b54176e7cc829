// SPDX-License-Identifier: Apache-2.0
// A small chart in a table: a line over runs, with dots in the colours of verdicts.  SVG has no part in the page's text.

const [WIDE, HIGH] = [150, 26];
const svg = (tag, attributes) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};

// values: numbers or null; verdicts: of each; changes: where a new level begins; range: of y, else that of the values.
// A dot is the last value, or a run that did not pass.
export const spark = (values, verdicts, looks, { changes = [], range = null } = {}) => {
  const known = values.map((value, i) => [i, value]).filter(([, value]) => value !== null);
  const element = svg("svg", { width: WIDE, height: HIGH, viewBox: `0 0 ${WIDE} ${HIGH}`, "aria-hidden": "true" });
  if (!known.length) return element;
  const [least, most] = range || [Math.min(...known.map(([, value]) => value)), Math.max(...known.map(([, value]) => value))];
  const x = (i) => 4 + (values.length > 1 ? (i / (values.length - 1)) * (WIDE - 8) : WIDE / 2 - 4);
  const y = (value) => (most > least ? HIGH - 4 - ((value - least) / (most - least)) * (HIGH - 8) : HIGH / 2);
  for (const i of changes) element.append(svg("line", { x1: x(i - 0.5), x2: x(i - 0.5), y1: 0, y2: HIGH, class: "change" }));
  element.append(svg("polyline", { points: known.map(([i, value]) => `${x(i)},${y(value)}`).join(" ") }));
  known.forEach(([i, value], n) => (n === known.length - 1 || verdicts[i] !== "pass") && element.append(svg("circle", { cx: x(i), cy: y(value), r: 3, fill: looks.verdicts[verdicts[i]]?.[0] || "#888" })));
  return element;
};
