// SPDX-License-Identifier: Apache-2.0
// The stalls of a point, and the packets that prove them.
import { at, make, scroll, table } from "./dom.js";

const packets = (stall) => {
  const rows = stall.packets.flatMap(([time, where, text, after, key], i) => [
    ...(after && (i === 0 || !stall.packets[i - 1][3]) ? [make("tr", { class: "gap" }, make("td", { colspan: 3 }, `silence of ${stall.length}`))] : []),
    make("tr", { class: key ? "key" : null }, make("td", {}, `${time} s`), make("td", {}, where), make("td", {}, text))]);
  return make("details", {}, make("summary", {}, "packets"),
    scroll(`Packets around ${at(stall.start_ns)}`, make("table", { class: "proof" }, make("tbody", {}, ...rows))));
};

// Stalls in order of time; each is a link to its place.
export const stallList = (page, jump) => {
  const { rows, in_all: inAll } = page.stalls;
  const section = make("section", {}, make("h2", {}, `Stalls (${inAll})`));
  if (!rows.length) section.append(make("p", { class: "note" }, "No silence of this point was long enough to be called a stall."));
  if (inAll > rows.length) section.append(make("p", { class: "note" }, `The ${rows.length} longest are listed.`));
  const lines = rows.map((stall) => make("tr", {},
    make("td", {}, make("button", { type: "button", "data-item": true, "aria-label": `Show the stall of ${stall.length} at ${at(stall.start_ns)}`, onclick: () => jump(stall) }, at(stall.start_ns))),
    make("td", { class: "number" }, stall.length), make("td", {}, stall.lane),
    make("td", { class: "nowrap", title: stall.why }, stall.cause), make("td", {}, stall.ended), make("td", { class: "wide" }, stall.proof, stall.packets.length ? packets(stall) : null)));
  if (rows.length) section.append(scroll("Stalls",
    table(["begins", make("th", { scope: "col", class: "number" }, "lasts"), "connection", "cause", "ended by", "evidence"], lines), "tall"));
  return {
    element: section,
    tell: (chosen) => rows.forEach((stall, i) => lines[i].classList.toggle("chosen", stall === chosen)),
    step: (by, board) => {
      if (!rows.length) return;
      const middle = (board.view.from + board.view.to) / 2;
      const from = rows.indexOf(board.chosen);
      const next = from >= 0 ? from + by : by > 0 ? rows.filter((stall) => !board.isWhole() && stall.start_ns <= middle).length : rows.findLastIndex((stall) => stall.end_ns < middle);
      const stall = rows[Math.min(Math.max(next, 0), rows.length - 1)];
      jump(stall);
      const line = lines[rows.indexOf(stall)];
      line.parentElement.parentElement.parentElement.scrollTop = line.offsetTop - 60;
    },
  };
};
