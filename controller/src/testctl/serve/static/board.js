// SPDX-License-Identifier: Apache-2.0
// Figures of one point, or of two beside each other, over one window of time that all of them share.
import { alike, drawChart, union } from "./chart.js";
import { ask, choose, drawn, isExport, make, showIn, showTime, at, say } from "./dom.js";

const SHORTEST = 20; // ns, of a window
const NEAR = 0.02; // of the window: what is further from the pointer has no value there

const onScreen = ({ element }) => {
  const { top, bottom } = element.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
};
const idle = (ms) => new Promise((done) => setTimeout(done, ms));
// The place in ascending times of the last that is not later; -1 before the first.
const placeOf = (times, t) => {
  let [low, high] = [0, times.length];
  while (low < high) { const middle = (low + high) >> 1; if (times[middle] <= t) low = middle + 1; else high = middle; }
  return low - 1;
};

export class Board {
  // columns: [{run, point, page, lanes, label}]; view {from, to} in ns; onView(view): the user chose another
  constructor(columns, view, looks, onView) {
    Object.assign(this, { columns, view, looks, onView, chosen: null, stopped: null });
    this.whole = { from: 0, to: Math.max(...columns.map(({ page }) => page.duration_ns), SHORTEST) };
    this.view = this.fit(view || this.whole);
    this.element = make("div", { class: "board" });
    this.rows = looks.figures.filter(({ name }) => columns.some(({ page }) => page.figures.includes(name))).map((figure) => this.row(figure));
    this.watch = new IntersectionObserver((seen) => {
      const rows = this.rows.filter((row) => row.stale && seen.some((one) => one.isIntersecting && one.target === row.element));
      if (rows.length && this.stopped) this.fillAll(rows, this.view, this.stopped.signal);
    }, { rootMargin: "150px" });
    for (const row of this.rows) this.watch.observe(row.element);
  }

  row({ name, title, of, large }) {
    const row = make("div", { class: "columns" });
    row.style.setProperty("--columns", this.columns.length);
    const cells = this.columns.map((column) => {
      const [note, value] = [make("span", { class: "note" }), make("output", { class: "value", "aria-hidden": "true" })];
      const plot = make("div", { class: `plot ${large ? "large" : ""}`, role: "img", "aria-label": `${title}: loading`, "data-figure": name });
      const line = make("i", { class: "crosshair", hidden: true });
      const frame = make("div", { class: "frame" }, plot, line);
      row.append(make("figure", {}, make("figcaption", {}, make("h3", {}, this.columns.length > 1 ? `${title}: ${column.label}` : title), make("span", { class: "note" }, of), note, value), frame));
      const has = column.page.figures.includes(name);
      if (!has) plot.append(make("p", { class: "note" }, "This point has no records for it."));
      const cell = { column, plot, note, value, line, has, view: null, chart: null };
      this.listen(frame, cell);
      return cell;
    });
    this.element.append(row);
    return { name, title, cells, element: row, stale: true };
  }

  // ---- the pointer: a line at its time in all figures, with their values; drag to zoom, shift and drag to pan
  listen(frame, cell) {
    let begin = null;
    const timeAt = (event) => {
      if (!cell.view) return null;
      const x = event.clientX - frame.getBoundingClientRect().left - cell.view.origin()[0];
      const share = x / cell.view.width();
      return share < 0 || share > 1 ? null : cell.shown.from + share * (cell.shown.to - cell.shown.from);
    };
    const band = make("i", { class: "band", hidden: true });
    frame.append(band);
    frame.addEventListener("pointerdown", (event) => { if (event.button === 0 && timeAt(event) !== null) { begin = { t: timeAt(event), x: event.clientX, pan: event.shiftKey }; frame.setPointerCapture(event.pointerId); } });
    frame.addEventListener("pointermove", (event) => {
      this.point(timeAt(event));
      if (!begin || begin.pan) return;
      band.hidden = false;
      const left = frame.getBoundingClientRect().left;
      Object.assign(band.style, { left: `${Math.min(begin.x, event.clientX) - left}px`, width: `${Math.abs(event.clientX - begin.x)}px` });
    });
    frame.addEventListener("pointerleave", () => this.point(null));
    frame.addEventListener("pointerup", (event) => {
      const end = timeAt(event);
      const [from, moved] = [begin, begin && Math.abs(event.clientX - begin.x) > 4];
      begin = null;
      band.hidden = true;
      if (!from || !moved || end === null) return;
      if (from.pan) this.set({ from: this.view.from + from.t - end, to: this.view.to + from.t - end });
      else this.set({ from: Math.min(from.t, end), to: Math.max(from.t, end) });
    });
    frame.addEventListener("dblclick", () => this.all());
  }

  point(t) {
    for (const { cells } of this.rows) for (const { view, chart, shown, line, value } of cells) {
      const inside = t !== null && view && t >= shown.from && t <= shown.to;
      line.hidden = !inside;
      value.textContent = inside ? this.valuesAt(chart, t, shown) : "";
      if (inside) line.style.left = `${view.origin()[0] + ((t - shown.from) / (shown.to - shown.from)) * view.width()}px`;
    }
  }

  valuesAt({ lines, data, kind }, t, { from, to }) {
    const words = lines.map(({ set, label }) => {
      const { t: times, y, tip } = data[set];
      const place = placeOf(times, t);
      if (place < 0 || y[place] === null || (tip && t - times[place] > (to - from) * NEAR)) return null;
      return `${lines.length > 1 ? `${label} ` : ""}${tip?.[place] ?? (kind === "count" ? y[place] : showIn(kind, y[place]))}`;
    });
    const shaded = Object.values(data).flatMap(({ label = [], t: low, x2: high }) => label.filter((text, i) => high && text && low[i] <= t && high[i] >= t));
    return `${at(Math.round(t))}: ${[...words, ...shaded].filter(Boolean).join(", ") || "–"}`;
  }

  fit({ from, to }) {
    const room = (this.whole.to - this.whole.from) * 0.05;
    let span = Math.min(Math.max(to - from, SHORTEST), this.whole.to + room);
    span = Math.round(span);
    const start = Math.round(Math.max(Math.min(from + (to - from - span) / 2, this.whole.to + room - span), this.whole.from));
    return span >= this.whole.to ? { ...this.whole } : { from: start, to: start + span };
  }

  isWhole() { return this.view.from === this.whole.from && this.view.to === this.whole.to; }

  set(view, told = true) {
    this.view = this.fit(view);
    if (told) this.onView(this.view);
    return this.show();
  }

  zoom(factor) {
    const [middle, half] = [(this.view.from + this.view.to) / 2, ((this.view.to - this.view.from) / 2) * factor];
    return this.set({ from: middle - half, to: middle + half });
  }

  pan(share) {
    const by = (this.view.to - this.view.from) * share;
    return this.set({ from: this.view.from + by, to: this.view.to + by });
  }

  all() { return this.set(this.whole); }

  jump(stall) {
    this.chosen = stall;
    const length = stall.end_ns - stall.start_ns;
    return this.set({ from: stall.start_ns - length * 0.6, to: stall.end_ns + length * 0.6 });
  }

  // Rows on the screen first, then the view is drawn; the others follow while nothing else happens.
  async show() {
    this.stopped?.abort();
    const stop = (this.stopped = new AbortController());
    const view = this.view;
    for (const row of this.rows) {
      row.stale = true;
      for (const cell of row.cells) if (cell.has) cell.plot.classList.add("waiting");
    }
    if (!(await this.fillAll(this.rows.filter(onScreen), view, stop.signal))) return;
    say(`${showTime(view.to - view.from)} from ${at(view.from)}`);
    drawn("figures");
    await idle(250);
    for (const row of this.rows) if (row.stale && !(await this.fillAll([row], view, stop.signal))) return;
    drawn("all");
  }

  // Whether they were drawn, and not overtaken by another view.
  async fillAll(rows, view, signal) {
    try {
      if (!signal.aborted) await Promise.all(rows.map((row) => row.stale && this.fill(row, view, signal)));
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
    return !signal.aborted;
  }

  async fill(row, view, signal) {
    const { name, cells } = row;
    row.stale = false;
    const found = alike(await Promise.all(cells.map(async (cell) => {
      if (!cell.has) return null;
      const { run, point, lanes, bin } = cell.column;
      const px = Math.min(Math.max(Math.round(cell.plot.clientWidth / 2), 120), 600);
      try {
        return await ask(["runs", run, "points", point, "figures", name], { from: view.from, to: view.to, px, lane: lanes.join(","), bin }, signal);
      } catch (error) {
        if (error.name === "AbortError") { row.stale = true; throw error; }
        return { error: error.message };
      }
    })));
    if (signal.aborted) { row.stale = true; return; }
    const range = union(found);
    cells.forEach((cell, i) => { if (cell.has) cell.last = [found[i], range, view]; });
    await Promise.all(cells.map((cell, i) => cell.has && this.draw(row, cell, found[i], range, view)));
  }

  async draw(row, cell, chart, range, view) {
    Object.assign(cell, { last: [chart, range, view], chart, shown: view });
    cell.plot.classList.remove("waiting");
    cell.view?.finalize();
    cell.view = null;
    const zero = chart.zero && row.cells.every(({ last }) => !last || last[0].zero);
    cell.plot.classList.toggle("flat", zero);
    if (chart.error || !chart.range || zero) {
      cell.plot.chart = chart;
      cell.plot.replaceChildren(make("p", { class: chart.error ? "error" : "note" }, chart.error || (zero ? "0 throughout this time." : "Nothing was recorded for it in this time.")));
      cell.note.textContent = "";
      cell.plot.setAttribute("aria-label", `${row.title}: ${chart.error || (zero ? "0 throughout" : "nothing")}`);
      return;
    }
    cell.note.textContent = chart.note;
    cell.view = await drawChart(cell.plot, chart, this.looks, range);
  }

  restyle() {
    for (const row of this.rows) for (const cell of row.cells) if (cell.last) this.draw(row, cell, ...cell.last);
  }

  leave() {
    this.watch.disconnect();
    this.stopped?.abort();
    for (const { cells } of this.rows) for (const { view } of cells) view?.finalize();
  }
}

const MOST = 8; // connections in one figure
// Which connection is shown, and which others in the same figures, in all columns; changed() follows a choice.
export const connections = (columns, changed) => {
  const all = [...new Set(columns.flatMap(({ page }) => page.lanes))];
  if (all.length < 2) return [];
  const span = make("span", { class: "choices" });
  const set = (lanes) => {
    for (const column of columns) column.lanes = lanes.filter((lane) => column.page.lanes.includes(lane));
    tell();
    changed(lanes);
  };
  const tell = () => {
    const [first, ...others] = columns.map(({ lanes }) => lanes).sort((a, b) => b.length - a.length)[0];
    const rest = all.filter((lane) => lane !== first);
    span.replaceChildren(choose("connection", all.map((lane) => [lane, lane]), first, (lane) => set([lane, ...others.filter((one) => one !== lane)])),
      choose("and", [["", "no other"], ...rest.map((lane) => [lane, lane]), ...(rest.length > 1 ? [["all", `${Math.min(rest.length, MOST - 1)} others`]] : [])],
        !others.length ? "" : others.length > 1 ? "all" : others[0], (value) => set([first, ...(value === "all" ? rest.slice(0, MOST - 1) : value ? [value] : [])])));
  };
  tell();
  return [span, tell];
};

// changed() follows a choice of another width of bins; an export has some widths of the whole point.
export const toolbar = (board, extra, changed) => {
  const [first, long, { bins, most }] = [board.columns[0], board.whole.to, board.looks.bins];
  const widths = bins.filter((ns) => long >= 10 * ns && (!isExport() || long <= most * ns)).map((ns) => [String(ns), showTime(ns)]);
  const binned = choose("bins", [["", "auto"], ...widths], first.bin ?? "", (bin) => {
    for (const column of board.columns) column.bin = bin;
    changed();
    board.show();
  });
  const place = make("output", { "aria-label": "What is shown" });
  const button = (text, label, act) => make("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
  const tell = () => {
    const { from, to } = board.view;
    place.textContent = board.isWhole() ? `all of ${showTime(to - from)}` : `${showTime(to - from)} from ${at(from)}`;
  };
  tell();
  const element = make("div", { class: "view", role: "toolbar", "aria-label": "Time that is shown" }, make("div", { class: "choices" },
    button("−", "Zoom out ( − )", () => board.zoom(3)), button("+", "Zoom in ( + )", () => board.zoom(1 / 3)),
    button("◀", "Earlier ( ← )", () => board.pan(-0.4)), button("▶", "Later ( → )", () => board.pan(0.4)),
    button("All", "All of the point ( 0 )", () => board.all()), place, ...(widths.length ? [binned] : []), ...extra));
  return { element, tell };
};
export const zoomKeys = (board) => ({ "+": () => board.zoom(1 / 3), "=": () => board.zoom(1 / 3), "-": () => board.zoom(3),
  ArrowLeft: () => board.pan(-0.4), ArrowRight: () => board.pan(0.4), 0: () => board.all() });
export const viewOf = ({ from, to }) => (from !== undefined && Number.isFinite(Number(from)) && Number(to) > Number(from) ? { from: Number(from), to: Number(to) } : null);
