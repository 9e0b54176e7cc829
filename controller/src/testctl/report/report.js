// SPDX-License-Identifier: Apache-2.0
// The page of a run: matrix, sorting, and the figures of a point once it is opened.
// All text from a plan goes in through textContent, or through escaped() where Plotly reads markup.
"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const index = read("index");
  const root = document.documentElement;
  const drawn = new Map(); // plot element -> function that gives its traces and layout

  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const escaped = (text) =>
    String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
  const shade = (colour) => (isDark() && index.colours.dark[colour]) || colour;
  const lane = (i) => shade(index.colours.lanes[i % index.colours.lanes.length]);
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  // ---- light and dark
  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const redraw = () => { for (const [element, figure] of drawn) draw(element, figure); };
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  // ---- the matrix
  const axisX = document.getElementById("axis-x");
  const axisY = document.getElementById("axis-y");
  const show = document.getElementById("matrix-show");
  const options = (select, labels, chosen) => {
    labels.forEach((label, i) => select.append(make("option", { value: i }, label)));
    select.value = chosen;
  };
  const labels = index.factors.map((factor) => factor.label);
  options(axisX, labels.length ? labels : ["–"], 0);
  options(axisY, labels.length ? labels : ["–"], Math.min(1, Math.max(labels.length - 1, 0)));
  options(show, ["verdict", ...index.metrics.map((metric) => metric[1])], 0);

  const cell = (point, metric) => {
    const [colour, sign] = index.looks[point.verdict];
    const value = metric && point.metrics[metric];
    const text = `${point.verdict}: ${point.text}` +
      index.metrics.map(([name, title]) => point.metrics[name] ? `\n${title} ${point.metrics[name][1]}` : "").join("");
    const link = make("a", { class: `cell ${point.verdict}`, href: `#p-${point.id}`, title: text, "aria-label": text },
      value ? `${sign} ${value[1]}` : sign);
    link.style.background = colour;
    return link;
  };
  const matrix = () => {
    const [x, y] = [Number(axisX.value), Number(axisY.value)];
    const none = { label: "", values: [undefined] };
    const across = index.factors[x] || none;
    const down = index.factors.length > 1 && y !== x ? index.factors[y] : none;
    const metric = show.value > 0 ? index.metrics[show.value - 1][0] : null;
    const head = make("tr", {}, make("th", {}, down.label ? `${down.label} ↓   ${across.label} →` : `${across.label} →`),
      ...across.values.map((value) => make("th", { scope: "col" }, String(value ?? ""))));
    const rows = down.values.map((low) => make("tr", {}, make("th", { scope: "row" }, String(low ?? "")),
      ...across.values.map((wide) => make("td", {}, make("div", {}, ...index.points
        .filter((p) => (across === none || p.at[x] === wide) && (down === none || p.at[y] === low))
        .map((p) => cell(p, metric)))))));
    document.getElementById("matrix").replaceChildren(
      make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
  };
  document.getElementById("matrix-form").addEventListener("change", matrix);
  matrix();

  // ---- sorting
  const table = document.getElementById("table");
  const heads = [...table.querySelectorAll("thead th")];
  heads.forEach((head, column) => head.querySelector("button")?.addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    heads.forEach((other) => other.hasAttribute("aria-sort") && other.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => row.cells[column].dataset.sort ?? row.cells[column].textContent.trim();
    const compare = (a, b) => {
      const [p, q] = [key(a), key(b)];
      if (p === "" || q === "") return (p === "") - (q === ""); // no value: last, both ways
      const order = p - q;
      const by = Number.isNaN(order) ? p.localeCompare(q, "en", { numeric: true }) : order;
      return up ? by : -by;
    };
    const body = table.tBodies[0];
    body.append(...[...body.rows].sort(compare));
  }));

  // ---- figures
  const draw = (element, figure) => {
    const { traces, layout } = figure();
    const axis = { gridcolor: css("--grid"), linecolor: css("--line"), zerolinecolor: css("--line"), automargin: true };
    const base = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest",
      font: { color: css("--ink"), size: 12, family: "system-ui, 'DejaVu Sans', sans-serif" },
      margin: { l: 56, r: 14, t: 26, b: 42 }, showlegend: traces.length > 1,
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--soft"), activecolor: css("--ink") },
      hoverlabel: { bgcolor: css("--field"), bordercolor: css("--line"), font: { color: css("--ink") } },
    };
    const full = { ...base, ...layout, xaxis: { ...axis, ...layout.xaxis }, yaxis: { ...axis, ...layout.yaxis } };
    Plotly.react(element, traces, full, { responsive: true, displaylogo: false, displayModeBar: "hover",
      modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", "toImage"]] });
    drawn.set(element, figure);
  };
  const seconds = (duration) => ({ title: { text: "time (s)" }, range: [0, duration] });
  const named = (trace, line, i) => ({ ...trace, name: escaped(line.name),
    line: { color: lane(i), width: 1.4, ...trace.line }, marker: { color: lane(i), ...trace.marker } });
  const lines = (list, trace = {}) =>
    list.map((line, i) => named({ type: "scatter", mode: "lines", x: line.x, y: line.y, ...trace }, line, i));

  const throughput = (data, bin) => () => ({
    traces: data.throughput.bins[bin].lines.map((line, i) => named({
      type: "scatter", mode: "lines", x: line.x, x0: line.x0, dx: line.dx, y: line.y,
      line: { shape: "hv" }, hovertemplate: `%{y:.4~g} ${data.throughput.unit} at %{x} s<extra></extra>`,
    }, line, i)),
    layout: { xaxis: seconds(data.duration), yaxis: { title: { text: `throughput (${data.throughput.unit})` }, rangemode: "tozero" } },
  });

  // Window against loss rate, both logarithmic, and Reno's line.
  const response = (one) => () => ({
    traces: [...one.curves.map((curve, i) => named({ type: "scatter", mode: "lines+markers", x: curve.rates, y: curve.windows,
      marker: { symbol: i }, hovertemplate: "%{y:.3~g} segments at %{x:.1~g}<extra>%{fullData.name}</extra>" }, curve, i)),
      { type: "scatter", mode: "lines", name: one.reno.name, x: one.reno.rates, y: one.reno.windows, line: { dash: "dash", color: css("--soft") }, hoverinfo: "name" }],
    layout: { xaxis: { type: "log", title: { text: "rate of random loss" }, exponentformat: "power" }, yaxis: { type: "log", title: { text: "window (segments)" }, dtick: "D2" } },
  });

  const sequence = (data, which) => () => {
    const one = data.sequence[which];
    const hover = (what) => `${what} %{y:,d} at %{x:.6f} s<extra></extra>`;
    const traces = [
      { type: "scatter", mode: "markers", name: "data (last byte)", ...one.data, marker: { color: shade(index.colours.data), size: 3 }, hovertemplate: hover("data to") },
      { type: "scatter", mode: "lines", name: "ACK", ...one.ack, line: { color: index.colours.ack, width: 1.2, shape: "hv" }, hovertemplate: hover("ACK") },
    ];
    if (one.retrans.x.length) traces.push({ type: "scatter", mode: "markers", name: "retransmission", ...one.retrans,
      marker: { color: index.colours.retrans, size: 9, symbol: "x-thin", line: { width: 2.5, color: index.colours.retrans } }, hovertemplate: hover("retransmitted to") });
    const shapes = { "dropped": "triangle-down-open", "marked CE": "diamond-open" };
    for (const fate of one.fates) traces.push({ type: "scatter", mode: "markers", name: `${fate.what} (${fate.count})`, x: fate.x, y: fate.y,
      marker: { color: index.colours.fates[fate.what], size: fate.count > 100 ? 5 : 9, symbol: shapes[fate.what], line: { width: fate.count > 100 ? 1 : 1.6 } }, hovertemplate: hover(`${fate.what} by a switch:`) });
    const longest = one.stalls.length > 8 ? [...one.stalls].sort((a, b) => b.to - b.from - (a.to - a.from)).slice(0, 8) : one.stalls;
    return { traces, layout: {
      xaxis: seconds(data.duration),
      yaxis: { title: { text: "sequence number (bytes)" }, tickformat: "~s", rangemode: "tozero" },
      shapes: one.stalls.map((stall) => ({ type: "rect", x0: stall.from, x1: stall.to, y0: 0, y1: 1, yref: "paper",
        fillcolor: index.colours.stall, opacity: 0.22, line: { width: 0 }, layer: "below" })),
      annotations: longest.map((stall) => ({ x: (stall.from + stall.to) / 2, y: 0.02, yref: "paper", yanchor: "bottom", textangle: -90,
        text: escaped(innerWidth < 640 ? stall.text.split(", ").pop() : stall.text), showarrow: false, font: { size: 11 } })),
    } };
  };

  // Packets as bars from their first byte to their last, in the manner of a time-sequence plot by tcptrace.
  const bars = (part, name, colour, width) => {
    const [x, y, text] = [[], [], []];
    part.x.forEach((t, i) => {
      const [low, high] = [part.low[i], part.low[i] + part.size[i]];
      x.push(t, t, null);
      y.push(low, high, null);
      text.push(`${low}:${high}`, `${low}:${high}`, "");
    });
    return { type: "scatter", mode: "lines", name, x, y, text, line: { color: colour, width, simplify: false }, visible: x.length ? true : "legendonly",
      hovertemplate: `${name} %{text} at %{x:.6f} s<extra></extra>` };
  };
  const step = (part, name, colour, dash) => ({ type: "scatter", mode: "lines", name, ...part, line: { color: colour, width: 1.3, shape: "hv", dash },
    hovertemplate: `${name} %{y:,d} at %{x:.6f} s<extra></extra>` });
  const timeSequence = (one, view) => () => {
    const colours = index.colours;
    const traces = [bars(one.sacks, "SACK block", colours.sack, 1.2), bars(one.data, "data", shade(colours.data), 2.4),
      bars(one.again, "retransmission", colours.retrans, 3.6), step(one.una, "snd.una", colours.una, "solid"), step(one.edge, "window", colours.window, "dash")];
    if (one.allowed.x.length) traces.push(step(one.allowed, "snd.nxt + cwnd - pipe", colours.una, "dot"));
    if (one.drops.x.length) traces.push({ type: "scatter", mode: "markers", name: one.drops_say, ...one.drops,
      marker: { color: css("--ink"), symbol: "x-thin", size: 9, line: { width: 1.8, color: css("--ink") } }, hovertemplate: `${one.drops_say}: %{y:,d} at %{x:.6f} s<extra></extra>` });
    const { from, to } = one.views[view];
    let [low, high] = [Infinity, -Infinity];
    for (const part of [one.data, one.again]) part.x.forEach((t, i) => {
      if (t >= from && t <= to) [low, high] = [Math.min(low, part.low[i]), Math.max(high, part.low[i] + part.size[i])];
    });
    const room = Math.max((high - low) * 0.06, 1);
    return { traces, layout: {
      xaxis: { title: { text: "time (s)" }, range: [from, to] },
      yaxis: { title: { text: "sequence number (bytes)" }, tickformat: "~s", ...(high > low ? { range: [low - room, high + room] } : {}) },
      shapes: one.periods.map((part) => ({ type: "rect", x0: part.from, x1: part.to ?? one.views[view].to, y0: 0, y1: 1, yref: "paper",
        fillcolor: colours.recovery[part.fast ? 1 : 0], opacity: 0.16, line: { width: 0 }, layer: "below" })),
    } };
  };
  const recoveryList = (found) => {
    const heads = ["at (s)", "flow", "entered by", "ended by", "time", "FlightSize", "sent on each ACK", "burst", "silence", "resent", "cwnd − ssthresh", "limit"];
    const kinds = ["number", "", "", "", "number", "number", "pattern", "number", "number", "number", "", ""];
    const more = found.left_out ? `, the first of ${found.list.length + found.left_out}` : "";
    return make("div", { class: "figure wide" }, make("h3", {}, `Recoveries (${found.list.length}${more})`), plain("Recoveries", heads, found.list, kinds),
      make("p", { class: "note" }, "Sent: N a new segment, R a retransmission, a number before it for several, . nothing; from the first duplicate ACK on. FlightSize, burst and cwnd in segments. Above, the time from entry to end is shaded: yellow fast recovery, red after a timeout."));
  };

  const overTime = (part, title, unit, duration, trace, log = false) => () => ({
    traces: lines(part, { hovertemplate: `%{y:.4~g} ${unit} at %{x:.6f} s<extra></extra>`, ...trace }),
    layout: { xaxis: seconds(duration), yaxis: { title: { text: `${title} (${unit})` }, ...(log ? { type: "log" } : { rangemode: "tozero" }) } },
  });

  const latency = (part) => () => ({
    traces: part.lines.map((line, i) => named({ type: "scatter", mode: "lines", x: line.x, y: part.y,
      hovertemplate: `%{y:.3%} within %{x} ${part.unit}<extra></extra>` }, line, i)),
    layout: { xaxis: { title: { text: `one-way latency (${part.unit})` }, rangemode: "tozero" },
      yaxis: { title: { text: "share of packets" }, range: [0, 1.01], tickformat: ".0%" } },
  });

  const panel = (into, title, figure, { wide = false, choices = null } = {}) => {
    const plot = make("div", { class: "plot", role: "img", "aria-label": title });
    const heading = make("h3", {}, title);
    into.append(make("div", { class: wide ? "figure wide" : "figure" }, heading, plot));
    if (choices && choices.labels.length > 1) {
      const buttons = choices.labels.map((label, i) => {
        const button = make("button", { type: "button", "aria-pressed": i === choices.first }, label);
        button.addEventListener("click", () => {
          buttons.forEach((other) => other.setAttribute("aria-pressed", other === button));
          draw(plot, figure(i));
        });
        return button;
      });
      heading.append(make("span", { class: "buttons", role: "group", "aria-label": `${title}: choose` }, ...buttons));
    }
    draw(plot, choices ? figure(choices.first) : figure);
  };

  const proof = (stall) => {
    const rows = [];
    stall.proof.forEach(([time, where, text, after, key], i) => {
      if (after && (i === 0 || !stall.proof[i - 1][3])) {
        rows.push(make("tr", { class: "gap" }, make("td", { colspan: 3 }, `silence of ${stall.length}`)));
      }
      rows.push(make("tr", key ? { class: "key" } : {}, make("td", {}, `${time} s`), make("td", {}, where), make("td", {}, text)));
    });
    return make("details", {}, make("summary", {}, "packets"), make("p", { class: "note" }, stall.words),
      make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "packets" },
        make("table", { class: "proof" }, make("tbody", {}, ...rows))));
  };

  const stallList = (stalls) => {
    const head = ["at (s)", "flow", "length", "cause", "ended by", "proof"].map((text) => make("th", {}, text));
    const rows = stalls.map((stall) => make("tr", {}, make("td", { class: "number" }, stall.from), make("td", {}, stall.flow),
      make("td", { class: "number" }, stall.length), make("td", { title: stall.why }, stall.cause), make("td", {}, stall.ended),
      make("td", {}, stall.proof.length ? proof(stall) : "")));
    return make("div", { class: "figure wide" }, make("h3", {}, `Stalls (${stalls.length})`),
      make("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "Stalls" },
        make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows))));
  };

  const plain = (label, heads, rows, classes = []) => make("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": label },
    make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((text, i) => make("th", classes[i] ? { class: classes[i] } : {}, text)))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((text, i) => make("td", classes[i] ? { class: classes[i] } : {}, String(text))))))));

  const fateList = (fates) => {
    const into = make("div", { class: "figure wide" }, make("h3", {}, "Fates that happened"));
    if (fates.asked.length) {
      const conns = fates.asked.some((one) => one[2] > 0);
      const rows = fates.asked.map(([at, rule, conn, asked, happened, which, note, fault]) =>
        [`${fault ? "✗" : "✓"} ${rule}`, at, ...(conns ? [conn] : []), asked, happened, which, note]);
      into.append(plain("Fates asked", ["asked", "switch", ...(conns ? ["connection"] : []), "packets", "happened", "which", "note"],
        rows, ["", "", ...(conns ? ["number"] : []), "number", "number"]));
    }
    const counts = fates.counts.map(([at, flow, what, count]) => `${flow} at ${at}: ${count} ${what}`);
    if (counts.length) into.append(make("p", { class: "note" }, counts.join("; ")));
    if (fates.packets.length) {
      const more = fates.left_out ? `, the first of ${fates.packets.length + fates.left_out}` : "";
      into.append(make("details", fates.packets.length <= 12 ? { open: "" } : {}, make("summary", {}, `${fates.packets.length} packets${more}`),
        plain("Packets with a fate", ["at (s)", "port", "flow", "packet", "what", "queue (bytes)"], fates.packets, ["number", "", "", "", "", "number"])));
    }
    return into;
  };

  index.responses.forEach((one) => panel(document.getElementById("responses"), one.title, () => response(one)));

  const open = (details) => {
    const into = details.querySelector(".figures");
    if (!into || into.childElementCount) return;
    const data = read(`d-${details.dataset.point}`);
    const bins = data.throughput.bins.map((bin) => bin.label);
    if (bins.length) panel(into, "Throughput", (i) => throughput(data, i), { wide: true, choices: { labels: bins, first: Math.min(1, bins.length - 1) } });
    if (data.lanes.length) panel(into, "Sequence number", (i) => sequence(data, i), { wide: true, choices: { labels: data.lanes, first: 0 } });
    if (data.recovery) {
      for (const one of data.recovery.figures) {
        const title = data.recovery.figures.length > 1 ? `Recoveries, ${one.name}` : "Recoveries: data, SACK blocks, snd.una, window";
        panel(into, title, (i) => timeSequence(one, i), { wide: true, choices: { labels: one.views.map((view) => view.label), first: 0 } });
        if (one.drawn < one.recoveries) into.append(make("p", { class: "note" }, `Packets around the first ${one.drawn} of ${one.recoveries} recoveries.`));
      }
      into.append(recoveryList(data.recovery));
    }
    if (data.left_out) into.append(make("p", { class: "note" }, `${data.left_out} more connections are not drawn.`));
    if (data.fates) into.append(fateList(data.fates));
    if (data.stalls.length) into.append(stallList(data.stalls));
    if (data.cwnd.length) panel(into, "Congestion window", overTime(data.cwnd, "cwnd", "segments", data.duration, { line: { shape: "hv" } }));
    if (data.rtt) panel(into, "Round-trip time", overTime(data.rtt.lines, "RTT", data.rtt.unit, data.duration, { mode: "markers", marker: { size: 3 } }, data.rtt.log));
    const queues = data.queue ? data.queue.lines : [];
    if (data.queue) panel(into, queues.length === 1 ? `Queue, ${queues[0].name}` : "Queue", overTime(data.queue.lines, "queue", data.queue.unit, data.duration, {}));
    if (data.latency) panel(into, "Latency, one way", latency(data.latency));
  };
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
})();
