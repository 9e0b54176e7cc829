// SPDX-License-Identifier: Apache-2.0
// Figures of one point, or of two beside each other, over one window of time that all of them share.
import { ask, choose, drawn, make, plotly, showTime, at, say, task } from "./dom.js";
import { FIGURES, draw, learn, nsOf, rangeOf, spoken, summary, together } from "./plots.js";

const SHORTEST = 20; // ns, of a window

const onScreen = ({ element }) => {
  const { top, bottom } = element.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
};
const isOverlaid = (name) => FIGURES[name].each === "connection" && FIGURES[name].shape !== "packets";
const idle = (ms) => new Promise((done) => setTimeout(done, ms));

export class Board {
  // columns: [{run, point, page, lane, label}]; view {from, to} in ns; onView(view): the user chose another
  constructor(columns, view, looks, onView) {
    learn(looks);
    Object.assign(this, { columns, view, looks, onView, chosen: null, stopped: null, cells: [] });
    this.whole = { from: 0, to: Math.max(...columns.map(({ page }) => page.duration_ns), SHORTEST) };
    this.view = this.fit(view || this.whole);
    this.element = make("div");
    const names = Object.keys(FIGURES).filter((name) => columns.some(({ page }) => page.figures.includes(name)));
    this.rows = names.map((name) => this.row(name));
    this.watch = new IntersectionObserver((seen) => {
      const rows = this.rows.filter((row) => row.stale && seen.some((one) => one.isIntersecting && one.target === row.element));
      if (rows.length && this.stopped) this.fillAll(rows, this.view, this.stopped.signal);
    }, { rootMargin: "150px" });
    for (const row of this.rows) this.watch.observe(row.element);
  }

  row(name) {
    const { title, of, large } = FIGURES[name];
    const row = make("div", { class: "columns" });
    row.style.setProperty("--columns", this.columns.length);
    const cells = this.columns.map((column) => {
      const note = make("span", { class: "note" });
      const plot = make("div", { class: `plot ${large ? "large" : ""}`, role: "img", "aria-label": `${title}: loading`, "data-figure": name });
      row.append(make("figure", {}, make("figcaption", {}, make("h3", {}, this.columns.length > 1 ? `${title}: ${column.label}` : title), make("span", { class: "note" }, of), note), plot));
      if (!column.page.figures.includes(name)) plot.append(make("p", { class: "note" }, "This point has no records for it."));
      return { column, plot, note, has: column.page.figures.includes(name), ready: false };
    });
    this.element.append(row);
    return { name, cells, element: row, stale: true };
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
    const found = await Promise.all(cells.map(async (cell) => {
      if (!cell.has) return null;
      const { run, point, lane, bin, others = [] } = cell.column;
      const px = Math.min(Math.max(Math.round(cell.plot.clientWidth / 2), 120), 600);
      try {
        const of = (one) => ask(["runs", run, "points", point, "figures", name], { from: view.from, to: view.to, px, lane: one, bin }, signal);
        if (!others.length || !isOverlaid(name)) return await of(lane);
        const lanes = [lane, ...others];
        return together(lanes, await Promise.all(lanes.map(of)));
      } catch (error) {
        if (error.name === "AbortError") { row.stale = true; throw error; }
        return { lines: [], bucket_ns: 1, error: error.message };
      }
    }));
    await plotly();
    await task();
    if (signal.aborted) { row.stale = true; return; }
    const range = rangeOf(name, found, view);
    cells.forEach((cell, i) => cell.has && this.draw(name, cell, found[i], range, view));
  }

  draw(name, cell, data, range, view) {
    cell.last = [name, data, range, view];
    cell.plot.classList.remove("waiting");
    if (data.error || !range) {
      if (cell.ready) Plotly.purge(cell.plot);
      cell.ready = false;
      cell.plot.replaceChildren(make("p", { class: data.error ? "error" : "note" }, data.error || "Nothing was recorded for it in this time."));
      cell.note.textContent = "";
      cell.plot.setAttribute("aria-label", `${FIGURES[name].title}: ${data.error || "nothing"}`);
      return;
    }
    if (!cell.ready) cell.plot.replaceChildren();
    const stalls = cell.column.page.stalls.rows.filter((stall) => stall.end_ns >= view.from && stall.start_ns <= view.to &&
      (FIGURES[name].each !== "connection" || stall.lane === cell.column.lane));
    const near = stalls.length > 60 ? [...stalls].sort((a, b) => b.end_ns - b.start_ns - (a.end_ns - a.start_ns)).slice(0, 60) : stalls;
    const periods = (cell.column.page.recoveries?.rows || []).filter((one) => FIGURES[name].shape === "packets" && one.lane === cell.column.lane);
    draw(cell.plot, name, data, { view, range, looks: this.looks, stalls: near, periods, chosen: this.chosen });
    cell.note.textContent = [summary(name, data, view), data.left_out ? `${data.left_out} more are not drawn` : ""].filter(Boolean).join("; ");
    cell.plot.setAttribute("aria-label", spoken(name, data, view));
    if (cell.ready) return;
    cell.ready = true;
    cell.plot.on("plotly_relayout", (change) => {
      const [low, high] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      if (low === undefined || high === undefined) return;
      const drawnView = cell.last[3];
      this.set({ from: nsOf(drawnView, low), to: nsOf(drawnView, high) });
    });
    cell.plot.on("plotly_doubleclick", () => this.all());
  }

  restyle() {
    for (const { cells } of this.rows) for (const cell of cells) if (cell.last) this.draw(cell.last[0], cell, cell.last[1], cell.last[2], cell.last[3]);
  }

  leave() {
    this.watch.disconnect();
    this.stopped?.abort();
    for (const { cells } of this.rows) for (const cell of cells) if (cell.ready) Plotly.purge(cell.plot);
  }
}

const MOST = 8; // connections in one figure
// Which connection is shown, and which others in the same figures; changed() follows a choice.
export const connections = ({ column, page }, changed) => {
  if (page.lanes.length < 2) return [];
  const rest = () => page.lanes.filter((lane) => lane !== column.lane);
  const span = make("span", { class: "choices" });
  const set = (lane, others) => { Object.assign(column, { lane, others }); tell(); changed(); };
  const tell = () => {
    const chosen = !column.others?.length ? "" : column.others.length > 1 ? "all" : column.others[0];
    span.replaceChildren(choose("connection", page.lanes.map((lane) => [lane, lane]), column.lane, (lane) => set(lane, (column.others || []).filter((one) => one !== lane))),
      choose("and", [["", "no other"], ...rest().map((lane) => [lane, lane]), ...(page.lanes.length > 2 ? [["all", `${Math.min(rest().length, MOST - 1)} others`]] : [])], chosen,
        (value) => set(column.lane, value === "all" ? rest().slice(0, MOST - 1) : value ? [value] : [])));
  };
  tell();
  return [span, tell];
};

export const toolbar = (board, extra = []) => {
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
    button("All", "All of the point ( 0 )", () => board.all()), place, ...extra));
  return { element, tell };
};
export const zoomKeys = (board) => ({ "+": () => board.zoom(1 / 3), "=": () => board.zoom(1 / 3), "-": () => board.zoom(3),
  ArrowLeft: () => board.pan(-0.4), ArrowRight: () => board.pan(0.4), 0: () => board.all() });
export const viewOf = ({ from, to }) => (from !== undefined && Number.isFinite(Number(from)) && Number(to) > Number(from) ? { from: Number(from), to: Number(to) } : null);
