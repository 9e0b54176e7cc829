// SPDX-License-Identifier: Apache-2.0
// Two points beside each other, with linked axes, and what is different.
import { ask, badge, drawn, looks, make, many, percent, route, scroll, sorted, table, troubled } from "./dom.js";
import { Board, connections, toolbar, viewOf, zoomKeys } from "./board.js";

const AROUND_NS = 5e6;
const split = (name) => { const cut = (name || "").lastIndexOf("/"); return [name.slice(0, cut), name.slice(cut + 1)]; };

export const showComparison = async (place, now, ready) => {
  const { a, b } = now.query;
  if (!a || !b) {
    place.append(make("h1", {}, "Comparison"), make("p", { class: "note" }, "Mark two points in lists of points (key m), and compare them from the bar above."));
    queueMicrotask(() => drawn("compare"));
    return {};
  }
  const odd = [a, b].find((name) => !name.includes("/"));
  if (odd) throw new Error(`A comparison is of two points, each named RUN/POINT; got ${odd}. The page of a run lists its points beside those of the run before.`);
  const all = await looks();
  const pages = await Promise.all([a, b].map((name) => ask((([run, point]) => ["runs", run, "points", point])(split(name)))));
  const wanted = (now.query.lane || pages[0].lanes.find((lane) => pages[1].lanes.includes(lane)) || "").split(",");
  const columns = pages.map((page, i) => ({ run: split([a, b][i])[0], point: page.id, page, label: "AB"[i], bin: now.query.bin,
    lanes: wanted.some((lane) => page.lanes.includes(lane)) ? wanted.filter((lane) => page.lanes.includes(lane)) : page.lanes.slice(0, 1) }));
  place.append(make("h1", {}, "Comparison"), make("div", { class: "columns" }, ...columns.map(({ run, page, label }) => make("p", {},
    make("strong", {}, `${label}: `), make("a", { href: route(["run", run, "point", page.id]) }, page.id), " ", badge(page.verdict, all), make("br"), make("span", { class: "note" }, `${page.name}, of ${run}`)))));
  place.lastChild.style.setProperty("--columns", 2);
  place.append(make("p", { class: "note" }, pages[0].digest !== pages[1].digest ? "Their digests are different."
    : pages[0].digest ? "Both have the same digest: every packet is the same." : "Neither has a digest: no packet was recorded."));
  const [{ run, point }, other] = columns;
  const runs = run !== other.run && pages[0].digest !== pages[1].digest;
  const first = runs ? await ask(["runs", run, "points", point, "difference"], { run: other.run, point: other.point }) : {};
  if (runs) place.append(make("p", {}, `First difference, A → B: ${first.words}. `, first.time_ns === null ? "" : make("button", { type: "button", onclick: () => {
    board.set({ from: first.time_ns - AROUND_NS, to: first.time_ns + AROUND_NS });
    board.element.scrollIntoView();
  } }, "show it in the figures")));
  place.append(differing(pages), metrics(pages, all));
  const put = (push) => {
    history[push ? "pushState" : "replaceState"](null, "", route(["compare"], { a, b, ...(board.isWhole() ? {} : board.view), lane: wanted.join(","), bin: columns[0].bin }));
    bar.tell();
  };
  const board = new Board(columns, viewOf(now.query), all, () => put(true));
  const [lanes] = connections(columns, (chosen) => { wanted.splice(0, wanted.length, ...chosen); put(false); board.show(); });
  const bar = toolbar(board, lanes ? [lanes] : [], () => put(false));
  place.append(make("h2", { class: "hidden" }, "Figures over time"), bar.element);
  if (!board.rows.length) place.append(troubled("Neither point has packets' records."));
  place.append(board.element);
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

// Of each metric of a flow that both have and that differs: {flow, name, a, b, way: "worse" or "better" or "", change}.
const moves = (pages, { better }) => {
  const [first, second] = pages.map(({ metrics: { flows, rows } }) => new Map(rows.flatMap(([name, ...values]) => values.map((value, i) => [`${flows[i]}\n${name}`, value]))));
  const none = { value: null, shown: "–" };
  const all = [...new Set([...first.keys(), ...second.keys()])].map((key) => [key.split("\n"), first.get(key) ?? none, second.get(key) ?? none]);
  const differ = ([[flow], a, b]) => pages.every(({ metrics: { flows } }) => flows.includes(flow)) && (a.value !== b.value || a.shown !== b.shown);
  return all.filter(differ).map(([[flow, name], a, b]) => {
    const known = a.value !== null && b.value !== null;
    const way = known && better[name] ? ((b.value > a.value) === (better[name] === "higher") ? "better" : "worse") : "";
    return { flow, name, a, b, way, change: known && a.value ? b.value / a.value - 1 : null };
  });
};
const WAYS = ["worse", "better", ""];
const SIGNS = { worse: "▼ worse", better: "▲ better", "": "" };

const metrics = (pages, looks) => {
  const all = moves(pages, looks);
  const headline = (one) => looks.headlines.indexOf(one.name);
  const first = all.filter((one) => headline(one) >= 0).sort((p, q) => headline(p) - headline(q));
  const others = all.filter((one) => headline(one) < 0).sort((p, q) => WAYS.indexOf(p.way) - WAYS.indexOf(q.way) || Math.abs(q.change ?? 0) - Math.abs(p.change ?? 0));
  const heads = ["flow", "metric", ...["A", "B", "B over A"].map((text) => make("th", { scope: "col", class: "number" }, text)), "B is"];
  const listed = (label, some) => scroll(label, sorted(table(heads.map((head) => (head instanceof Node ? head.cloneNode(true) : head)), some.map((one) => make("tr", {}, make("td", {}, one.flow), make("td", {}, one.name),
    ...[one.a, one.b].map(({ shown, value }) => make("td", { class: "number", "data-sort": value ?? "" }, shown)),
    make("td", { class: "number", "data-sort": one.change ?? "" }, percent(one.change)), make("td", { class: `nowrap ${one.way}` }, SIGNS[one.way]))))), some.length > 12 ? "tall" : "");
  const section = make("section", {}, make("h2", {}, "Metrics that differ"));
  if (!all.length) section.append(make("p", { class: "note" }, "None: all metrics of the flows that both points have are the same."));
  if (first.length) section.append(listed("Headline metrics", first));
  else if (all.length) section.append(make("p", { class: "note" }, "The headline metrics are the same."));
  if (others.length) section.append(make("details", { class: "small", open: others.length <= 12 }, make("summary", {}, `${many(others.length, "other metric")}, worse ones first`), listed("Other metrics", others)));
  return section;
};
