// SPDX-License-Identifier: Apache-2.0
// The page of a run: matrix, sorting, and a point's figures once it is opened, drawn by serve's own modules.
import { answerFrom, byId, choose, css, drawn, escaped, isDark, make, many, plotlyFrom, scroll, showTime, sorted, table, troubled, whenSeen, wrapped } from "./dom.js";
import { Board, connections, toolbar } from "./board.js";
import { stallList } from "./stalls.js";
import { sweepFigure } from "./sweep.js";

const index = JSON.parse(byId("index").textContent);
const { looks } = index;
const dark = (colour) => (isDark() && looks.dark[colour]) || colour;
const lane = (i) => dark(looks.lanes[i % looks.lanes.length]);

// ---- what is embedded, as testctl/report/packed.py writes it; each is read when it is first needed
const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%:()*+-;,=.?@^_`{|}~";
const VALUES = new Uint8Array(128);
[...LETTERS].forEach((letter, value) => { VALUES[letter.charCodeAt(0)] = value; });
// Five letters are four bytes, the last group may be shorter.
const bytesOf = (text) => {
  const bytes = new Uint8Array(Math.ceil(text.length / 5) * 4);
  for (let from = 0, to = 0; from < text.length; from += 5) {
    let word = 0;
    for (let i = from; i < from + 5; i += 1) word = word * 85 + (i < text.length ? VALUES[text.charCodeAt(i)] : 84);
    for (let shift = 24; shift >= 0; shift -= 8) { bytes[to] = (word / 2 ** shift) & 255; to += 1; }
  }
  return bytes.subarray(0, Math.floor(text.length * 4 / 5));
};
const inflated = async (id) => {
  const bytes = bytesOf(byId(id).textContent);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).text();
};
const read = async (id) => JSON.parse(await inflated(id));
const kept = (reading) => { const found = new Map(); return (key) => { if (!found.has(key)) found.set(key, reading(key)); return found.get(key); }; };
plotlyFrom(async () => document.head.append(make("script", {}, await inflated("plotly"))));
const numbers = ([unit, ...steps]) => { let sum = 0; return steps.map((step) => (sum += step) * unit); };
const COLUMNS = ["t", "y", "least", "most", "length", "flags", "ecn"];
const line = (packed) => Object.fromEntries(Object.entries(packed).map(([name, value]) => [name, COLUMNS.includes(name) ? numbers(value) : value]));
const unread = (into) => (error) => into.append(troubled(`This browser can't read what is embedded here (${error.message}); testctl serve shows it, too.`));

// ---- light and dark
const restyles = []; // what draws again in other colours
const restyle = () => restyles.forEach((again) => again());
byId("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  restyle();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);

// ---- the matrix
const [axisX, axisY, show] = ["axis-x", "axis-y", "matrix-show"].map(byId);
const options = (select, labels, chosen) => {
  labels.forEach((label, i) => select.append(make("option", { value: i }, label)));
  select.value = chosen;
};
const labels = index.factors.map((factor) => factor.label);
options(axisX, labels.length ? labels : ["–"], 0);
options(axisY, labels.length ? labels : ["–"], Math.min(1, Math.max(labels.length - 1, 0)));
options(show, ["verdict", ...index.metrics], 0);

const cell = (point, metric) => {
  const [colour, sign] = looks.verdicts[point.verdict];
  const value = metric && point.metrics[metric];
  const text = `${point.verdict}: ${point.text}` +
    index.metrics.map((name) => (point.metrics[name] ? `\n${name} ${point.metrics[name][1]}` : "")).join("");
  const link = make("a", { class: `cell ${point.verdict}`, href: `#p-${point.id}`, title: text, "aria-label": text }, value ? `${sign} ${value[1]}` : sign);
  link.style.background = colour;
  return link;
};
const matrix = () => {
  const [x, y] = [Number(axisX.value), Number(axisY.value)];
  const none = { label: "", values: [undefined] };
  const across = index.factors[x] || none;
  const down = index.factors.length > 1 && y !== x ? index.factors[y] : none;
  const metric = show.value > 0 ? index.metrics[show.value - 1] : null;
  const head = make("tr", {}, make("th", {}, down.label ? `${down.label} ↓   ${across.label} →` : `${across.label} →`),
    ...across.values.map((value) => (value === undefined ? make("td") : make("th", { scope: "col" }, String(value)))));
  const rows = down.values.map((low) => make("tr", {}, low === undefined ? make("td") : make("th", { scope: "row" }, String(low)),
    ...across.values.map((wide) => make("td", {}, make("div", {}, ...index.points
      .filter((p) => (across === none || p.at[x] === wide) && (down === none || p.at[y] === low))
      .map((p) => cell(p, metric)))))));
  byId("matrix").replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
};
byId("matrix-form").addEventListener("change", matrix);
matrix();

// ---- sorting and filtering the table
const rows = [...sorted(byId("table")).tBodies[0].rows];
const [words, failures, left] = ["words", "failures", "left"].map(byId);
const filter = () => {
  const wanted = words.value.trim().toLowerCase().split(/\s+/);
  for (const row of rows) row.hidden = (failures.checked && row.dataset.verdict === "pass") || !wanted.every((word) => row.textContent.toLowerCase().includes(word));
  const shown = rows.filter((row) => !row.hidden).length;
  left.textContent = shown === rows.length ? "" : shown ? `${shown} of ${many(rows.length, "point")}` : "No point is like that.";
};
for (const input of [words, failures]) input.addEventListener("input", filter);
filter();

// ---- figures without an axis of time
const chart = (into, title, lines, layout) => {
  const plot = make("div", { class: "plot", role: "img", "aria-label": title });
  into.append(make("figure", {}, make("figcaption", {}, make("h3", {}, title)), plot));
  const again = () => {
    const axis = { gridcolor: css("--grid"), linecolor: css("--line"), zerolinecolor: css("--line"), automargin: true };
    const traces = lines.map((line, i) => ({ type: "scatter", mode: "lines", line: { color: lane(i), width: 1.4 }, marker: { color: lane(i) }, ...line, name: escaped(line.name) }));
    Plotly.react(plot, traces, { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest", showlegend: traces.length > 1,
      font: { color: css("--ink"), size: 12, family: "system-ui, 'DejaVu Sans', sans-serif" }, margin: { l: 56, r: 14, t: 26, b: 42 },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 }, hoverlabel: { bgcolor: css("--field"), bordercolor: css("--line"), font: { color: css("--ink") } },
      xaxis: { ...axis, ...layout.xaxis }, yaxis: { ...axis, ...layout.yaxis } }, { responsive: true, displayModeBar: false });
  };
  restyles.push(() => plot.data && again());
  whenSeen(plot, again);
};
// Metrics over the swept parameters: captions and tables at once, plots when plotly.js is there.
const sweeps = index.sweeps.map((one) => sweepFigure(one, looks));
byId("sweeps")?.append(...sweeps.map((figure) => figure.element));
sweeps.forEach((figure) => { restyles.push(figure.draw); figure.draw(); });
// Window against loss rate, both logarithmic, and Reno's line.
index.responses.forEach((one) => chart(byId("responses"), one.title, [
  ...one.curves.map((curve, i) => ({ name: curve.name, mode: "lines+markers", x: curve.rates, y: curve.windows, marker: { symbol: i, color: lane(i) }, hovertemplate: "%{y:.3~g} segments at %{x:.1~g}<extra>%{fullData.name}</extra>" })),
  { name: one.reno.name, x: one.reno.rates, y: one.reno.windows, line: { dash: "dash", color: css("--soft") }, hoverinfo: "name" }],
{ xaxis: { type: "log", title: { text: "rate of random loss" }, exponentformat: "power" }, yaxis: { type: "log", title: { text: "window (segments)" }, dtick: "D2" } }));
const distribution = (into, { unit, y, lines }) => chart(into, "Distribution of latency",
  lines.map(({ name, x }) => ({ name, x, y, hovertemplate: `%{y:.3%} within %{x} ${unit}<extra></extra>` })),
  { xaxis: { title: { text: `one-way latency (${unit})` }, rangemode: "tozero" }, yaxis: { title: { text: "share of packets" }, range: [0, 1.01], tickformat: ".0%" } });

// ---- lists
const list = (label, titles, rows, classes = []) => scroll(label,
  make("table", {}, make("thead", {}, make("tr", {}, ...titles.map((text, i) => make("th", { class: classes[i] || null }, text)))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((text, i) => make("td", { class: classes[i] || null }, text instanceof Node ? text : String(text))))))), "tall");
const recoveryList = ({ rows, in_all: inAll }, jump, id) => {
  const titles = ["at (s)", "flow", "entered by", "ended by", "time", "FlightSize", "sent on each ACK", "burst", "silence", "resent", "cwnd − ssthresh", "limit"];
  const kinds = ["number", "", "", "", "number", "number", "pattern", "number", "number", "number", "", ""];
  const cells = rows.map((one) => [make("button", { type: "button", onclick: () => jump(one) }, one.cells[0]), ...one.cells.slice(1)]);
  return make("section", {}, make("h2", {}, `Recoveries (${rows.length}${inAll > rows.length ? `, the first of ${inAll}` : ""})`), list(`Recoveries of ${id}`, titles, cells, kinds),
    make("p", { class: "note" }, "Sent: N a new segment, R a retransmission, a number before it for several, . nothing; from the first duplicate ACK on. FlightSize, burst and cwnd in segments. In the figure of time and sequence, the time from entry to end is shaded: yellow fast recovery, red after a timeout."));
};
const fateList = (fates, id) => {
  const into = make("section", {}, make("h2", {}, "Fates that happened"));
  if (fates.asked.length) {
    const conns = fates.asked.some((one) => one[2] > 0);
    const rows = fates.asked.map(([at, rule, conn, asked, happened, which, note, fault]) =>
      [`${fault ? "✗" : "✓"} ${rule}`, at, ...(conns ? [conn] : []), asked, happened, which, note]);
    into.append(list(`Fates asked of ${id}`, ["asked", "switch", ...(conns ? ["connection"] : []), "packets", "happened", "which", "note"], rows, ["", "", ...(conns ? ["number"] : []), "number", "number"]));
  }
  const counts = fates.counts.map(([at, flow, what, count]) => `${flow} at ${at}: ${count} ${what}`);
  if (counts.length) into.append(make("p", { class: "note" }, counts.join("; ")));
  if (fates.packets.length) {
    const more = fates.left_out ? `, the first of ${fates.packets.length + fates.left_out}` : "";
    into.append(make("details", { open: fates.packets.length <= 12 }, make("summary", {}, `${fates.packets.length} packets${more}`),
      list(`Packets of ${id} with a fate`, ["at (s)", "port", "flow", "packet", "what", "queue (bytes)"], fates.packets, ["number", "", "", "", "", "number"])));
  }
  return into;
};

// ---- a point
const pageOf = kept(async (id) => {
  const { same } = byId(`d-${id}`).dataset; // a point whose packets are those of this one has its data
  if (same) return pageOf(same);
  const page = await read(`d-${id}`);
  for (const one of Object.values(page.figures).flat()) one.data.lines = one.data.lines.map(line);
  return page;
});
// Of what is embedded of a figure, the shortest time that holds what is asked for.
answerFrom(async ([, , , point, , name], { from, to, lane: chosen, bin }) => {
  const found = (await pageOf(point)).figures[name].filter((one) => (!one.lane || one.lane === chosen) && (!one.bin || one.bin === bin));
  const whole = found.find((one) => !found.some((other) => other.to - other.from > one.to - one.from));
  const best = found.filter((one) => one.from <= from && one.to >= to).sort((a, b) => a.to - a.from - (b.to - b.from))[0] || whole;
  if (!best) return { lines: [], bucket_ns: 1 };
  const later = best.from - from;
  return { ...best.data, lines: best.data.lines.map((one) => (one.t ? { ...one, t: one.t.map((t) => t + later) } : { ...one, t0: one.t0 + later })) };
});

const small = (title, ...inside) => make("details", { class: "small" }, make("summary", {}, title), ...inside);
const metrics = ({ flows, rows }, id) => small("Metrics", scroll(`Metrics of ${id}`,
  table(["metric", ...flows.map((flow) => make("th", { class: "number" }, flow))], rows.map(([name, ...cells]) => make("tr", {}, make("th", { scope: "row" }, name),
    ...cells.map((cell) => make("td", { class: cell.text ? "text" : "number" }, cell.text ? wrapped(cell.shown) : cell.shown)))), { class: "plain" })));
const tuples = (id, { tuples: rows, captures, digest, virtual, wall }) => small("Tuples, files and digest",
  make("table", { class: "plain" }, make("tbody", {}, ...rows.map(([entity, parameter, value]) => make("tr", {}, make("th", { scope: "row" }, entity), make("td", {}, parameter), make("td", {}, value))))),
  make("p", {}, "Files: ", make("code", {}, `points/${id}/`), captures.length ? `, captures of ${captures.join(", ")}` : "", ". Digest ", make("code", {}, digest || "–"), `. ${virtual} of traffic took ${wall}.`));

const figures = async (id, into) => {
  const found = await pageOf(id);
  const page = { ...found, figures: Object.keys(found.figures) };
  const column = { run: "", point: id, page, lane: page.lanes[0], bin: page.bins[Math.min(1, page.bins.length - 1)], label: "" };
  const board = new Board([column], null, looks, () => { bar.tell(); stalls.tell(board.chosen); });
  const redraw = (key, value) => { column[key] = value; board.show(); };
  const [lanes, lanesChanged] = connections({ column, page }, () => board.show());
  const bar = toolbar(board, [choose("bins", page.bins.map((width) => [width, showTime(width)]), column.bin, (text) => redraw("bin", Number(text))),
    ...(lanes ? [lanes] : [])]);
  const stalls = stallList(page, (stall) => board.jump(stall), ` of ${id}`);
  into.append(bar.element, board.element);
  if (page.left_out) into.append(make("p", { class: "note" }, `${page.left_out} more connections are not drawn.`));
  if (page.recoveries.rows.length) into.append(recoveryList(page.recoveries, (one) => { if (page.lanes.includes(one.lane) && lanes) { Object.assign(column, { lane: one.lane, others: [] }); lanesChanged(); }
    board.set({ from: one.from, to: one.to }); }, id));
  if (page.fates) into.append(fateList(page.fates, id));
  if (page.stalls.rows.length) into.append(stalls.element);
  if (page.distribution) distribution(into, page.distribution);
  restyles.push(() => board.restyle());
  board.show();
};
const detailsOf = kept((group) => read(`m-${group}`));
const open = kept(async (details) => {
  const [into, more, id] = [details.querySelector(".figures"), details.querySelector(".more"), details.dataset.point];
  try {
    const found = (await detailsOf(details.dataset.group))[id];
    more.append(metrics(found.metrics, id), tuples(id, found));
    if (into) await figures(id, into);
  } catch (error) {
    unread(more)(error);
  }
});
const points = [...document.querySelectorAll("details.point")];
points.forEach((details) => details.addEventListener("toggle", () => details.open && open(details)));
const follow = () => {
  const details = points.find((one) => `#${one.id}` === location.hash);
  if (!details) return;
  details.open = true;
  open(details);
  details.scrollIntoView();
  details.querySelector("summary").focus({ preventScroll: true });
};
addEventListener("hashchange", follow);
follow();
drawn("report");
