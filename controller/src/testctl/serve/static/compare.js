// SPDX-License-Identifier: Apache-2.0
// Two points beside each other, with linked axes, and what is different.
import { ask, badge, looks, make, drawn, route, scroll, table, troubled } from "./dom.js";
import { Board, toolbar, viewOf, zoomKeys } from "./board.js";

const split = (name) => { const cut = (name || "").lastIndexOf("/"); return [name.slice(0, cut), name.slice(cut + 1)]; };

export const showComparison = async (place, now, ready) => {
  const { a, b } = now.query;
  if (!a || !b) {
    place.append(make("h1", {}, "Comparison"), make("p", { class: "note" }, "Mark two points in lists of points (key m), and compare them from the bar above."));
    queueMicrotask(() => drawn("compare"));
    return {};
  }
  const all = await looks();
  const pages = await Promise.all([a, b].map((name) => ask((([run, point]) => ["runs", run, "points", point])(split(name)))));
  const columns = pages.map((page, i) => ({ run: split([a, b][i])[0], point: page.id, page, lane: page.lanes[0], label: "AB"[i] }));
  place.append(make("h1", {}, "Comparison"), make("div", { class: "columns" }, ...columns.map(({ run, page, label }) => make("p", {},
    make("strong", {}, `${label}: `), make("a", { href: route(["run", run, "point", page.id]) }, page.id), " ", badge(page.verdict, all), make("br"), make("span", { class: "note" }, `${page.name}, of ${run}`)))));
  place.lastChild.style.setProperty("--columns", 2);
  place.append(make("p", { class: "note" }, pages[0].digest === pages[1].digest ? "Both have the same digest: every packet is the same." : "Their digests are different."), differing(pages));
  const board = new Board(columns, viewOf(now.query), all, () => {
    history.pushState(null, "", route(["compare"], { a, b, ...(board.isWhole() ? {} : board.view) }));
    bar.tell();
  });
  const bar = toolbar(board);
  place.append(make("h2", { class: "hidden" }, "Figures over time"), bar.element);
  if (!board.rows.length) place.append(troubled("Neither point has packets' records."));
  place.append(board.element, metrics(pages));
  ready();
  board.show();
  return { keys: zoomKeys(board), restyle: () => board.restyle(), leave: () => board.leave(),
    same: (next) => next.path[0] === "compare" && next.query.a === a && next.query.b === b,
    update: (next) => { board.set(viewOf(next.query) || board.whole, false); bar.tell(); } };
};

const differing = (pages) => {
  const [first, second] = pages.map((page) => new Map(page.tuples.map(([entity, parameter, value]) => [`${entity}\n${parameter}`, value])));
  const keys = [...new Set([...first.keys(), ...second.keys()])].filter((key) => first.get(key) !== second.get(key));
  if (!keys.length) return make("p", { class: "note" }, "All their tuples are the same.");
  return scroll("Tuples that differ", table(["entity", "parameter", "A", "B"], keys.map((key) => make("tr", {},
    ...[...key.split("\n"), first.get(key) ?? "–", second.get(key) ?? "–"].map((text) => make("td", {}, text))))));
};

const metrics = (pages) => {
  const [first, second] = pages.map(({ metrics: { flows, rows } }) => new Map(rows.flatMap(([name, ...values]) => values.map((value, i) => [`${flows[i]}\n${name}`, value]))));
  const keys = [...first.keys()].filter((key) => second.has(key) && first.get(key).shown !== "–" && first.get(key).value !== second.get(key).value);
  const change = (a, b) => (a.value && b.value !== null ? `${b.value >= a.value ? "+" : "−"}${Math.abs((b.value / a.value - 1) * 100).toPrecision(3)} %` : "");
  return make("details", { class: "small", open: true }, make("summary", {}, `Metrics that differ (${keys.length})`),
    scroll("Metrics that differ",
      table(["flow", "metric", ...["A", "B", "B over A"].map((text) => make("th", { scope: "col", class: "number" }, text))], keys.map((key) => make("tr", {},
        ...key.split("\n").map((text) => make("td", {}, text)),
        ...[first.get(key).shown, second.get(key).shown, change(first.get(key), second.get(key))].map((text) => make("td", { class: "number" }, text))))), "tall"));
};
