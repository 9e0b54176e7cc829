// SPDX-License-Identifier: Apache-2.0
// A figure's data as Plotly traces.  x is in the view's unit, counted from its origin, so that ticks stay short.
import { css, escaped, isDark, showIn, showTime, units } from "./dom.js";

const MANY_MARKS = 300; // markers of one kind in a figure; SVG is slow with more
const FEW_MARKS = 100; // where they only accompany a line

// The axis of a view [from, to) in ns: "µs after 1.234 s".
export const axisOf = ({ from, to }) => {
  const span = to - from;
  const [size, unit, before] = span >= 5e8 ? [1e9, "s", 0] : span >= 5e5 ? [1e6, "ms", 1e9] : span >= 500 ? [1e3, "µs", 1e6] : [1, "ns", 1e3];
  const origin = before ? Math.max(Math.floor(from / before), 0) * before : 0;
  const digits = { 1e9: 0, 1e6: 3, 1e3: 6 }[before] ?? 0;
  return { size, unit, origin, x: (ns) => (ns - origin) / size, ns: (x) => Math.round(x * size + origin),
    title: before && origin ? `time (${unit} after ${(origin / 1e9).toFixed(digits)} s)` : `time (${unit})` };
};

const shade = (colour, looks) => (isDark() && looks.dark[colour]) || colour;
const faint = (colour, share) => `rgba(${[1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16)).join(",")},${share})`;
const times = (line, view, axis) => line.t.map((t) => axis.x(t + view.from));
const lane = (i, looks) => shade(looks.lanes[i % looks.lanes.length], looks);
const inView = (line, view) => (line.t || []).filter((t) => t >= 0 && t <= view.to - view.from).length;
const within = (line, view) => {
  let [least, most] = [Infinity, -Infinity];
  const span = view.to - view.from;
  const look = (t, low, high) => { if (t >= 0 && t <= span) { least = Math.min(least, low); most = Math.max(most, high); } };
  if (line.beside) return [least, most];
  if (line.dt) line.y.forEach((y, i) => look(line.t0 + (i + 0.5) * line.dt, line.least?.[i] ?? y, line.most?.[i] ?? y));
  else line.y.forEach((y, i) => look(line.t[i], y - (line.length?.[i] || 0), y));
  return [least, most];
};

const rate = (data, view, axis, looks, unit) => data.lines.flatMap((line, i) => {
  const edges = line.t ? times(line, view, axis) : line.y.map((_, n) => axis.x(line.t0 + n * line.dt + view.from));
  const own = lane(i, looks);
  const scaled = (values) => values.map((value) => value / unit[0]);
  const band = line.most ? [
    { type: "scatter", mode: "lines", x: edges, y: scaled(line.least), line: { shape: "hv", width: 0 }, hoverinfo: "skip", showlegend: false },
    { type: "scatter", mode: "lines", x: edges, y: scaled(line.most), line: { shape: "hv", width: 0 }, fill: "tonexty", fillcolor: faint(own, 0.22), hoverinfo: "skip", showlegend: false },
  ] : [];
  return [...band, { type: "scatter", mode: "lines", name: escaped(line.name), x: edges, y: scaled(line.y),
    line: { shape: "hv", width: 1.5, color: own }, hovertemplate: `%{y:.4~g} ${unit[1]}<extra>${escaped(line.name)}</extra>` }];
});

const plain = (shape) => (data, view, axis, looks, unit) => data.lines.map((line, i) => lasting(shape, axis.x(view.to), {
  type: "scatter", mode: data.lines.every((one) => inView(one, view) <= FEW_MARKS) ? "lines+markers" : "lines", name: escaped(line.name), x: times(line, view, axis),
  y: line.y.map((value) => value / unit[0]), marker: { size: 4, color: lane(i, looks) },
  line: { shape, width: 1.3, color: lane(i, looks), dash: (line.label || line.name) === "slow-start threshold" ? "dot" : "solid" },
  hovertemplate: `%{y:.4~g} ${unit[1]}<extra>${escaped(line.name)}</extra>`,
}));

// A level holds after its last sample.
const lasting = (shape, end, trace) => (shape !== "hv" || !trace.x.length || trace.x.at(-1) >= end ? trace : { ...trace, x: [...trace.x, end], y: [...trace.y, trace.y.at(-1)] });

// What only packets tell is not known between two that are far apart: a dotted line holds the last value there, and a packet alone is a dot.
const perPacket = (data, view, axis, looks, unit) => plain("linear")(data, view, axis, looks, unit).flatMap((trace) => {
  const far = (view.to - view.from) / axis.size / 25;
  const [x, y, alone] = [[], [], { x: [], y: [] }];
  trace.x.forEach((at, n) => {
    const [before, behind] = [n > 0 && at - trace.x[n - 1] <= far, n + 1 < trace.x.length && trace.x[n + 1] - at <= far];
    if (n && !before) { x.push(null); y.push(null); }
    x.push(at); y.push(trace.y[n]);
    if (!before && !behind) { alone.x.push(at); alone.y.push(trace.y[n]); }
  });
  // The last value before a silence, until the next one.
  const held = { x: [], y: [] };
  const ends = [...trace.x.slice(1), axis.x(view.to)];
  trace.x.forEach((at, n) => { if (ends[n] - at > far) { held.x.push(at, ends[n], null); held.y.push(trace.y[n], trace.y[n], null); } });
  const silent = { ...trace, ...held, mode: "lines", line: { ...trace.line, dash: "dot", width: 1 }, opacity: 0.6, showlegend: false, hoverinfo: "skip", hovertemplate: undefined };
  const dots = { ...trace, ...alone, mode: "markers", showlegend: false };
  return trace.mode === "lines" && alone.x.length && alone.x.length <= MANY_MARKS ? [{ ...trace, x, y }, silent, dots] : [{ ...trace, x, y }, silent];
});

const FLAGS = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
const detail = (line, i) => {
  if (!line.flags) return "";
  const flags = FLAGS.filter((name, bit) => (line.flags[i] >> bit) & 1 && name !== "ACK");
  return [...flags, ...(line.ecn[i] === 3 ? ["CE"] : [])].map((word) => ` ${word}`).join("");
};
const sparse = (line, most) => {
  const every = Math.ceil(line.t.length / most);
  const keep = (values) => values?.filter((_, i) => i % every === 0);
  return { ...line, t: keep(line.t), y: keep(line.y), length: keep(line.length), flags: keep(line.flags), ecn: keep(line.ecn) };
};
const DASHES = { window: "dash", "snd.nxt + cwnd - pipe": "dot" };
const packets = (data, view, axis, looks, unit) => {
  const colours = { data: shade(looks.data, looks), retransmission: looks.retrans, ACK: looks.ack, "SACK block": looks.sack,
    window: looks.window, "snd.nxt + cwnd - pipe": looks.una, dropped: looks.fates.dropped, "marked CE": looks.fates["marked CE"], "never arrived": css("--ink") };
  const symbols = { dropped: "triangle-down", "marked CE": "diamond-open", retransmission: "x-thin", "never arrived": "x-thin" };
  const each = data.bucket_ns === 0;
  const scaled = (y) => y / unit[0];
  return data.lines.map((line) => {
    const base = { type: "scatter", name: !(line.name in symbols) ? line.name : `${line.name} (${line.rows})` };
    const colour = colours[line.name];
    if (each && line.length) {
      const [x, y, text] = [[], [], []];
      line.t.forEach((t, i) => {
        const at = axis.x(t + view.from);
        const words = `${line.y[i] - line.length[i]}:${line.y[i]}${detail(line, i)}`;
        x.push(at, at, null); y.push(scaled(line.y[i] - line.length[i]), scaled(line.y[i]), null); text.push(words, words, "");
      });
      return { ...base, mode: line.t.length <= MANY_MARKS ? "lines+markers" : "lines", x, y, text, line: { color: colour, width: line.name === "SACK block" ? 1.2 : line.name === "retransmission" ? 3.6 : 2.2, simplify: false }, marker: { size: 4, color: colour, symbol: "line-ew-open" },
        hovertemplate: `${line.name} %{text}<extra></extra>` };
    }
    if (line.name in symbols) {
      const few = sparse(line, each ? MANY_MARKS : FEW_MARKS);
      return { ...base, mode: "markers", x: times(few, view, axis), y: few.y.map(scaled), text: few.y,
        marker: { color: colour, symbol: symbols[line.name], size: few.t.length > 60 ? 5 : 8, opacity: few.t.length > 60 ? 0.6 : 1, line: { width: few.t.length > 60 ? 1 : 1.6, color: colour } }, hovertemplate: `${line.name} %{text:,d}<extra></extra>` };
    }
    return { ...base, mode: each && line.t.length <= MANY_MARKS ? "lines+markers" : "lines", x: times(line, view, axis), y: line.y.map(scaled), text: line.y.map((y, i) => `${y}${detail(line, i)}`),
      line: { color: colour, width: 1.3, dash: DASHES[line.name], shape: line.name === "ACK" || line.name in DASHES ? "hv" : "linear" }, marker: { size: 3.5, color: colour },
      hovertemplate: `${line.name} %{text}<extra></extra>` };
  });
};

const SHAPES = { rate, packets, steps: plain("hv"), line: plain("linear"), "line with gaps": perPacket };
export const FIGURES = {}; // by name, as testctl/curves declares them
export const learn = ({ figures }) => { for (const one of figures) FIGURES[one.name] = { ...one, traces: SHAPES[one.shape] }; };

// The range of y over all the data that are compared, in the base unit; null without any.
export const rangeOf = (name, all, view) => {
  let [least, most] = [Infinity, -Infinity];
  for (const data of all) for (const line of data?.lines || []) {
    if (name === "cwnd" && (line.label || line.name) === "slow-start threshold" && data.lines.length > 1) continue;
    const [low, high] = within(line, view);
    [least, most] = [Math.min(least, low), Math.max(most, high)];
  }
  if (least > most) { // nothing inside: the lines that cross the view
    const values = all.flatMap((data) => (data?.lines || []).flatMap((line) => line.y));
    if (!values.length) return null;
    for (const value of values) { least = Math.min(least, value); most = Math.max(most, value); }
  }
  if (FIGURES[name].zero) least = 0;
  if (FIGURES[name].zero && most === 0) return [0, FIGURES[name].kind === "time" ? 1e6 : 1]; // nothing but zeros
  const room = (most - least || Math.abs(most) || 1) * 0.06;
  return [FIGURES[name].zero ? 0 : least - room, most + room];
};

// The same figure of several connections as one; `names` are theirs.
export const together = (names, all) => ({ ...all[0], log: all.some((data) => data.log), bucket_ns: Math.max(...all.map((data) => data.bucket_ns)), error: all.find((data) => data.error)?.error,
  lines: all.flatMap((data, i) => data.lines.map((line) => ({ ...line, label: line.name, name: line.name === names[i] || data.lines.length === 1 ? names[i] : `${names[i]} ${line.name}` }))) });

export const summary = (name, data, view) => {
  const range = rangeOf(name, [data], view);
  if (!range || !data.lines.length) return "nothing here in this time";
  if (name === "throughput") return `${data.bucket_ns === data.fine_ns ? "bins" : "mean of bins"} of ${showTime(data.bucket_ns)}` +
    (data.fine_ns < data.bucket_ns ? `; band: their least and greatest ${showTime(data.fine_ns)}` : "");
  const inside = data.lines.reduce((sum, line) => sum + (line.beside ? 0 : inView(line, view)), 0);
  if (FIGURES[name].shape === "packets" && data.bucket_ns === 0) return `${inside} packets, each of them`;
  if (name === "cwnd") return "";
  const thin = data.lines.some((line) => line.rows > line.y.length);
  return thin ? `of each ${showTime(data.bucket_ns)} the first, least, greatest and last` : `${inside} values, each of them`;
};

export const draw = (element, name, data, { view, range, looks, stalls, periods = [], chosen }) => {
  const figure = FIGURES[name];
  const axis = axisOf(view);
  const unit = units[figure.kind](Math.max(Math.abs(range?.[1] ?? 1), Math.abs(range?.[0] ?? 0)));
  const traces = figure.traces(data, view, axis, looks, unit);
  const lines = { gridcolor: css("--grid"), linecolor: css("--line"), zerolinecolor: css("--line"), tickfont: { size: 11 } };
  const shapes = figure.stalls ? stalls.map((stall) => ({ type: "rect", x0: axis.x(stall.start_ns), x1: axis.x(stall.end_ns), y0: 0, y1: 1, yref: "paper",
    fillcolor: looks.stall, opacity: stall === chosen ? 0.32 : 0.14, line: { width: 0 }, layer: "below" })) : [];
  shapes.push(...periods.map((one) => ({ type: "rect", x0: axis.x(one.entry_ns), x1: axis.x(one.exit_ns), y0: 0, y1: 1, yref: "paper",
    fillcolor: looks.recovery[one.fast ? 1 : 0], opacity: 0.16, line: { width: 0 }, layer: "below" })));
  const longest = figure.large ? [...stalls].sort((a, b) => b.end_ns - b.start_ns - (a.end_ns - a.start_ns)).slice(0, 8) : [];
  const layout = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest", dragmode: "zoom",
    font: { color: css("--ink"), size: 12, family: "system-ui, 'DejaVu Sans', sans-serif" },
    margin: { l: 52, r: 8, t: 8, b: 36 }, showlegend: traces.filter((trace) => trace.showlegend !== false).length > 1,
    legend: { orientation: "h", y: 1, yanchor: "bottom", x: 0, font: { size: 11 } },
    hoverlabel: { bgcolor: css("--field"), bordercolor: css("--line"), font: { color: css("--ink") } },
    xaxis: { ...lines, range: [axis.x(view.from), axis.x(view.to)], title: { text: axis.title, font: { size: 11 }, standoff: 4 }, exponentformat: "none", separatethousands: false },
    yaxis: { ...lines, ...(data.log ? { type: "log" } : { range: range?.map((value) => value / unit[0]) }), fixedrange: true, title: { text: unit[1], font: { size: 11 }, standoff: 4 }, exponentformat: "none", nticks: figure.large ? 9 : 6 },
    shapes,
    annotations: longest.map((stall) => ({ x: axis.x((Math.max(stall.start_ns, view.from) + Math.min(stall.end_ns, view.to)) / 2), y: 0.02, yref: "paper", yanchor: "bottom", textangle: -90,
      text: escaped(innerWidth < 640 ? stall.length : `${stall.cause}, ${stall.length}`), showarrow: false, font: { size: 11 } })),
  };
  if (layout.showlegend) layout.margin.t = 26;
  return Plotly.react(element, traces, layout, { responsive: true, displayModeBar: false, doubleClick: false, showTips: false });
};
export const nsOf = (view, x) => axisOf(view).ns(x);
export const spoken = (name, data, view) => {
  const range = rangeOf(name, [data], view);
  const kind = FIGURES[name].kind;
  const shown = (value) => (kind === "count" ? `${Math.round(value)} packets` : showIn(kind, Math.max(value, 0)));
  return `${FIGURES[name].title}, ${showTime(view.to - view.from)} from ${showTime(view.from)}: ` +
    (range && data.lines.length ? `${data.lines.map((line) => line.name).join(", ")}; at most ${shown(range[1] / 1.06)}` : "nothing");
};
