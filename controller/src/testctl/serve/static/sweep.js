// SPDX-License-Identifier: Apache-2.0
// A figure of testctl/charts that is not over time, with its note and the same numbers as a table.
import { drawChart } from "./chart.js";
import { make, scroll, table, whenSeen } from "./dom.js";

// chart: as Chart.to_json() makes it, or a function that asks for it when the figure comes into view.
export const chartFigure = (chart, looks, title = chart.title) => {
  const plot = make("div", { class: "plot", role: "img", "aria-label": title });
  const note = make("p", { class: "note" });
  const element = make("figure", { class: "sweep" }, make("figcaption", {}, make("h3", {}, title)), plot, note);
  let shown = null;
  const tell = (found) => {
    shown = found;
    note.textContent = found.note;
    if (found.spec.facet || found.wide) element.classList.add("wide");
    if (found.table) element.append(asTable(found));
    plot.setAttribute("aria-label", found.spoken);
  };
  if (typeof chart !== "function") tell(chart);
  const draw = () => whenSeen(plot, async () => {
    if (!shown) tell(await chart());
    await drawChart(plot, shown, looks);
  });
  return { element, draw };
};

const asTable = ({ title, table: { heads, names, rows } }) => make("details", { class: "small" }, make("summary", {}, "As a table"),
  scroll(`${title}, as a table`, table(heads.map((text, i) => make("th", { scope: "col", class: i < names ? null : "number" }, text)),
    rows.map((row) => make("tr", {}, ...row.map((text, i) => (i < names ? make("th", { scope: "row" }, text) : make("td", { class: "number" }, text))))))));
