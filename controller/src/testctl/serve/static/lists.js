// SPDX-License-Identifier: Apache-2.0
// What a point's page has of its packets beside the figures: broken rules, recoveries, fates, and the distribution of latency.
import { make, many, scroll, table, whenSeen } from "./dom.js";
import { drawChart } from "./chart.js";

const list = (label, titles, rows, classes) => scroll(label, table(titles.map((text, i) => make("th", { scope: "col", class: classes[i] || null }, text)),
  rows.map((row) => make("tr", {}, ...row.map((cell, i) => make("td", { class: classes[i] || null }, cell instanceof Node ? cell : String(cell)))))), "tall");

const TITLES = ["at (s)", "flow", "entered by", "ended by", "time", "FlightSize", "sent on each ACK", "burst", "silence", "resent", "cwnd − ssthresh", "limit"];
const KINDS = ["number", "", "", "", "number", "number", "pattern", "number", "number", "number", "", ""];
const recoveryList = ({ rows, in_all: inAll }, jump) => {
  const cells = rows.map((one) => [make("button", { type: "button", "aria-label": `Show the recovery at ${one.cells[0]} s`, onclick: () => jump(one) }, one.cells[0]), ...one.cells.slice(1)]);
  return make("section", {}, make("h2", {}, `Recoveries (${rows.length}${inAll > rows.length ? `, the first of ${inAll}` : ""})`), list("Recoveries", TITLES, cells, KINDS),
    make("p", { class: "note" }, "Sent: N a new segment, R a retransmission, a number before it for several, . nothing; from the first duplicate ACK on. FlightSize, burst and cwnd in segments. In the figure of time and sequence, the time from entry to end is shaded: yellow fast recovery, red after a timeout."));
};

const BROKEN = ["at (s)", "rule", "standard", "flow", "host", "what", "packets"];
const violationList = ({ rows, in_all: inAll }, jump) => {
  const cells = rows.map(({ cells: [when, rule, ...rest], must, ...one }) => [
    make("button", { type: "button", "aria-label": `Show the packet at ${when} s that breaks ${rule}`, onclick: () => jump(one) }, when),
    make("span", { title: must }, rule), ...rest]);
  return make("section", {}, make("h2", {}, `Broken rules (${inAll}${inAll > rows.length ? `, ${rows.length} listed` : ""})`),
    list("Broken rules", BROKEN, cells, ["number"]));
};

const fateList = (fates) => {
  const into = make("section", {}, make("h2", {}, "What switches did to packets"));
  if (fates.asked.length) {
    const conns = fates.asked.some((one) => one[2] > 0);
    const rows = fates.asked.map(([at, rule, conn, asked, happened, which, note, fault]) =>
      [`${fault ? "✗" : "✓"} ${rule}`, at, ...(conns ? [conn] : []), asked, happened, which, note]);
    into.append(list("Fates asked", ["asked", "switch", ...(conns ? ["connection"] : []), "packets", "happened", "which", "note"], rows, ["", "", ...(conns ? ["number"] : []), "number", "number"]));
  }
  const counts = fates.counts.map(([at, flow, what, count]) => `${flow} at ${at}: ${count} ${what}`);
  if (counts.length) into.append(make("p", { class: "note" }, counts.join("; ")));
  if (fates.packets.length) {
    const more = fates.left_out ? `, the first of ${fates.packets.length + fates.left_out}` : "";
    into.append(make("details", { open: fates.packets.length <= 12 }, make("summary", {}, `${many(fates.packets.length, "packet")}${more}`),
      list("Packets with a fate", ["at (s)", "port", "flow", "packet", "what", "queue (bytes)"], fates.packets, ["number", "", "", "", "", "number"])));
  }
  return into;
};

const programList = (rows) => make("section", {}, make("h2", {}, "What the switch's program held at the end"),
  list("Registers and counters", ["switch", "register or counter", "cell", "value"], rows, ["", "", "number", "number"]));

// {element, restyle}; jump(recovery) shows it in the figures.
export const eventLists = (events, looks, jump) => {
  const element = make("div");
  if (events.violations?.rows.length) element.append(violationList(events.violations, jump));
  if (events.recoveries?.rows.length) element.append(recoveryList(events.recoveries, jump));
  if (events.fates) element.append(fateList(events.fates));
  if (events.programs?.length) element.append(programList(events.programs));
  if (!events.latency) return { element, restyle: () => undefined };
  const plot = make("div", { class: "plot", role: "img", "aria-label": `${events.latency.title}: loading`, "data-figure": "distribution" });
  const draw = () => drawChart(plot, events.latency, looks);
  element.append(make("figure", {}, make("figcaption", {}, make("h3", {}, events.latency.title)), plot));
  whenSeen(plot, draw);
  return { element, restyle: () => plot.childElementCount && draw() };
};
