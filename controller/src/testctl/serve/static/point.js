// SPDX-License-Identifier: Apache-2.0
// One point: figures, stalls, packets, metrics.
import { ask, at, badge, drawn, facts, isExport, looks, make, many, route, scroll, showTime, sorted, table, troubled, wrapped } from "./dom.js";
import { fileTable } from "./files.js";
import { Board, connections, toolbar, viewOf, zoomKeys } from "./board.js";
import { markButton } from "./marks.js";
import { eventLists } from "./lists.js";
import { stallList } from "./stalls.js";
import { chartFigure } from "./sweep.js";

const FEW = 2e6; // ns: windows up to here have a table of packets when asked for

export const showPoint = async (place, now, ready) => {
  const [, run, , id] = now.path;
  const [page, all] = await Promise.all([ask(["runs", run, "points", id]), looks()]);
  const asked = (now.query.lane || "").split(",").filter((lane) => page.lanes.includes(lane));
  const column = { run, point: id, page, lanes: asked.length ? asked : page.lanes.slice(0, 1), label: id, bin: now.query.bin };
  const name = `${page.run}/${page.id}`;
  place.append(make("h1", {}, "Point ", make("code", {}, page.id), " ", badge(page.verdict, all)));
  if (page.name !== page.id) place.append(make("p", { class: "note" }, page.name));
  if (page.reason) place.append(make("p", { class: "error" }, page.reason));
  place.append(make("div", { class: "choices" }, markButton(name, `point ${page.id}`),
    isExport() ? null : make("a", { href: route(["trend", page.id], { metric: "throughput_bps" }) }, "Trend over runs"),
    make("span", { class: "note" }, [page.packets ? `${many(page.packets, "packet")}, ${showTime(page.duration_ns)}` : "no packets", page.requests && many(page.requests, "request")].filter(Boolean).join("; "))));
  place.append(make("details", { class: "small" }, make("summary", {}, isExport() ? "What was asked" : "What was asked, and files"), tuples(page),
    ...(isExport() ? [] : [make("h2", {}, "Files"), fileTable(page.run, page.files, `points/${page.id}/`)]), facts([["Digest", page.digest && make("code", {}, page.digest)], ["Took", `${page.wall} for ${page.virtual} of the point's own time`]])));

  const requests = await requestFigures(page, run, id, all);
  if (!page.figures.length) {
    const why = page.not_drawn ? "Not drawn: the run has more points than an export takes." : page.reason ? "No packets were recorded, for the reason above."
      : `This point has no packets' records${requests ? "" : ", so that there is nothing to draw"}.`;
    place.append(make("p", { class: "note" }, why), requests?.element ?? "", metrics(page));
    if (ready()) requests?.draw();
    queueMicrotask(() => drawn("figures"));
    return { mark: name, restyle: () => requests?.draw() };
  }
  const put = (extra, push) => history[push ? "pushState" : "replaceState"](null, "", route(["run", run, "point", id],
    { ...(board.isWhole() ? {} : board.view), lane: column.lanes.join(",") === page.lanes[0] ? "" : column.lanes.join(","), bin: column.bin, ...extra }));
  const board = new Board([column], viewOf(now.query), all, () => { put({}, true); changed(); });
  const [lanes, tellLanes] = connections([column], () => { put({}, false); board.show(); changed(); });
  const bar = toolbar(board, lanes ? [lanes] : [], () => put({}, false));
  const stalls = stallList(page, (stall) => board.jump(stall));
  const packets = packetList(column, board);
  const changed = () => { bar.tell(); stalls.tell(board.chosen); packets.tell(); };
  let lists = null;
  const events = make("div");
  place.append(make("h2", { class: "hidden" }, "Figures over time"), bar.element, board.element, requests?.element ?? "", events, stalls.element, isExport() ? "" : packets.element, metrics(page));
  ready(); // the figures need their width
  requests?.draw();
  board.show();
  ask(["runs", run, "points", id, "events"]).then((found) => {
    lists = eventLists(found, all, (one) => {
      if (page.lanes.includes(one.lane)) { column.lanes = [one.lane]; tellLanes?.(); }
      board.set(one);
    });
    events.append(lists.element);
  }).catch((error) => events.append(troubled(error.message)));
  return {
    mark: name,
    keys: { ...zoomKeys(board), n: () => stalls.step(1, board), p: () => stalls.step(-1, board) },
    restyle: () => { board.restyle(); requests?.draw(); lists?.restyle(); },
    leave: () => board.leave(),
    same: (next) => next.path.join("/") === now.path.join("/"),
    update: (next) => { board.set(viewOf(next.query) || board.whole, false); changed(); },
  };
};

// Completion times over time, their distribution, slowdown by size: they need no packets.
const requestFigures = async (page, run, id, looks) => {
  if (!page.requests) return null;
  const figures = (await ask(["runs", run, "points", id, "requests"])).figures.map((chart) => chartFigure(chart, looks));
  return figures.length ? { element: make("section", {}, make("h2", {}, "Requests"), make("div", { class: "sweeps" }, ...figures.map((one) => one.element))),
    draw: () => figures.forEach((one) => one.draw()) } : null;
};

export const tuples = (page) => scroll("Tuples", table(["entity", "parameter", "value"],
  page.tuples.map((item) => make("tr", {}, ...item.map((text) => make("td", {}, text))))));

// Those without a value in any flow are named, and take no rows.
const metrics = (page) => {
  const has = ([, ...values]) => values.some(({ shown }) => shown !== "–");
  const listed = page.metrics.rows.filter(has);
  const empty = page.metrics.rows.filter((row) => !has(row)).map(([metric]) => metric);
  return make("details", { class: "small" }, make("summary", {}, `Metrics (${page.metrics.rows.length})`),
    scroll("Metrics", sorted(table(["metric", ...page.metrics.flows.map((flow) => make("th", { scope: "col", class: "number" }, flow))],
      listed.map(([metric, ...values]) => make("tr", {},
        make("td", {}, isExport() ? metric : make("a", { href: route(["trend", page.id], { metric }) }, metric)),
        ...values.map((value) => make("td", { class: value.text ? "text" : "number", "data-sort": value.value }, value.text ? wrapped(value.shown) : value.shown))))))),
    empty.length ? make("p", { class: "note" }, `Without a value: ${empty.join(", ")}.`) : null);
};

// The packets of the window in words, when it is short enough.
const packetList = (column, board) => {
  const body = scroll("Packets", null, "tall");
  const note = make("p", { class: "note" });
  const section = make("details", {}, make("summary", {}, "Packets in this time"), note, body);
  let turn = 0;
  const tell = async () => {
    if (!section.open) return;
    const mine = ++turn;
    const { from, to } = board.view;
    body.replaceChildren();
    if (to - from > FEW) { note.textContent = `Zoom in to ${showTime(FEW)} or less to read packets.`; return; }
    try {
      const { rows, more } = await ask(["runs", column.run, "points", column.point, "packets"], { from, to, lane: column.lanes[0] });
      if (mine !== turn) return;
      note.textContent = more ? `The first ${rows.length} of ${column.lanes[0]} are listed.` : `${rows.length} in all of ${column.lanes[0]}.`;
      body.replaceChildren(table(["time", "where", "way", "data", "ACK", "flags", "notes"], rows.map((row) => make("tr", {},
        make("td", { class: "number" }, at(row.time_ns)), ...[row.where, row.way, row.data, row.ack, row.flags, row.notes].map((text) => make("td", {}, text))))));
    } catch (error) { body.replaceChildren(troubled(error.message)); }
  };
  section.addEventListener("toggle", tell);
  return { element: section, tell };
};
