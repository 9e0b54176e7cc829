// SPDX-License-Identifier: Apache-2.0
// What all views share: elements, requests, times and units in words.  Text goes in as text, never as markup.

export const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
};

export const byId = (id) => document.getElementById(id);
export const say = (text) => { byId("said").textContent = text; };
export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const isDark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "")) === "dark";
export const percent = (change) => (change === null ? "" : `${change < 0 ? "−" : "+"}${Number(Math.abs(change * 100).toPrecision(3))} %`);
export const many = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

export class Refused extends Error {}

// Where answers come from, if not from a server: report.html, an export of one run, has them in itself.
let own = null;
export const answerFrom = (answer) => { own = answer; };
export const isExport = () => own !== null;
export const ONLY_SERVED = "This page is an export of one run. testctl serve also shows every packet, files, other runs and trends.";

export const ask = async (path, parameters = {}, signal = undefined) => {
  if (own) return own(path, parameters);
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== undefined));
  const address = "/api/" + path.map(encodeURIComponent).join("/") + (query.size ? `?${query}` : "");
  let answer;
  try {
    answer = await fetch(address, { signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The server does not answer. Is testctl serve still running?");
  }
  if (answer.status === 401) throw new Refused("The server wants its token: open the address that it printed.");
  let body;
  try {
    body = await answer.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(`The server's answer can't be read (${answer.status}).`);
  }
  if (!answer.ok) throw new Refused(body.error || `The server refused (${answer.status}).`);
  return body;
};

// Of requests one after another, as choices make them, the last one alone is answered.
export const latest = (fetched, shown, failed) => {
  let turn = 0;
  return async () => {
    const mine = ++turn;
    try {
      const found = await fetched();
      if (mine === turn) shown(found);
    } catch (error) { if (mine === turn) failed(error); }
  };
};

// The library that draws is read when the page is on the screen and a figure comes into view.
let library = null;
let read = () => new Promise((done, failed) => {
  document.head.append(make("script", { src: "/static/vega.js", onload: done, onerror: () => failed(new Refused("vega.js can't be read: there are no figures.")) }));
});
export const vegaFrom = (reading) => { read = reading; };
export const task = () => new Promise((done) => setTimeout(done));
// A page that nobody sees, in a tab behind others, has no frames: it waits for none.
const painted = () => new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); setTimeout(done, 1000); });
export const vega = () => (library ??= painted().then(read).then(() => vegaEmbed).catch((error) => { library = null; throw error; }));

// Draws each element when it comes into view, one in a task, so that the page answers between them; then the others,
// one by one, so that a print or a picture of the whole page has all.
const waiting = new Map();
let drawing = Promise.resolve();
const drawNow = (element) => {
  const act = waiting.get(element);
  if (!act) return;
  waiting.delete(element);
  seen.unobserve(element);
  drawing = drawing.then(vega).then(task).then(() => element.isConnected && act()).catch((error) => element.replaceChildren(troubled(error.message)));
};
const seen = new IntersectionObserver((all) => all.forEach((one) => one.isIntersecting && drawNow(one.target)), { rootMargin: "200px" });
let later = 0;
const drawOthers = () => {
  const next = [...waiting.keys()].find(({ clientWidth }) => clientWidth); // what is folded has no width
  if (next) drawNow(next);
  if (next) drawing.then(() => { later = setTimeout(drawOthers, 100); });
};
export const whenSeen = (element, act) => {
  waiting.set(element, act);
  seen.observe(element);
  clearTimeout(later);
  later = setTimeout(drawOthers, 500);
};

let known = null;
export const looks = async () => (known ??= await ask(["looks"]));

const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const RATES = [[1e9, "Gb/s"], [1e6, "Mb/s"], [1e3, "kb/s"], [1, "b/s"]];
const SIZES = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]];
const SHARES = [[1e4, "%"]];
const COUNTS = [[1, "packets"]];
const unitOf = (most, units) => units.find(([size]) => most >= size) || units.at(-1);
export const units = { time: (m) => unitOf(m, TIMES), rate: (m) => unitOf(m, RATES), size: (m) => unitOf(m, SIZES), share: () => SHARES[0], count: () => COUNTS[0] };
const digits = (value) => (Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3))).toString();
export const showIn = (kind, value) => {
  const [size, name] = units[kind](Math.abs(value));
  return `${digits(value / size)} ${name}`;
};
export const showTime = (ns) => showIn("time", ns);
export const at = (ns) => `${(ns / 1e9).toFixed(9).replace(/0{1,6}$/, "")} s`;
export const when = (text) => (text ? text.slice(0, 16).replace("T", " ") : "–");

export const badge = (verdict, all, text = verdict, instead = null) => {
  const element = make("span", { class: "badge" }, text);
  const [colour, own] = all.verdicts[verdict] || [null, ""];
  const sign = instead ?? own;
  if (colour) element.style.setProperty("--mine", colour);
  if (sign) element.prepend(make("span", { "aria-hidden": "true" }, `${sign} `));
  return element;
};
export const counts = (found, all) => make("span", { class: "badges" }, ...Object.entries(found)
  .filter(([, count]) => count).map(([verdict, count]) => badge(verdict, all, `${count} ${verdict}`)));
// What a run changed of its plan: "--set …" and "--without …".
export const changed = (run) => (run.overrides.length ? make("div", { class: "note" }, make("code", {}, run.overrides.join(" "))) : null);
export const facts = (rows) => make("dl", { class: "facts" }, ...rows.filter(([, value]) => value)
  .map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
// ---- tables that a click on a head sorts
const NONE = ["", "–"];
export const inOrder = (p, q, up) => {
  if (NONE.includes(p) || NONE.includes(q)) return NONE.includes(p) - NONE.includes(q); // no value: last, both ways
  const by = Number.isNaN(p - q) ? String(p).localeCompare(String(q), "en", { numeric: true }) : p - q;
  return up ? by : -by;
};
// chosen(column, up) is called; now: [column, up] that it is sorted by already.
export const sortHeads = (heads, chosen, now = null) => heads.forEach((head, column) => {
  if (!head.textContent || head.hasAttribute("data-plain")) return;
  const button = head.querySelector("button") || make("button", { type: "button" }, ...head.childNodes);
  head.append(button);
  head.setAttribute("aria-sort", now?.[0] !== column ? "none" : now[1] ? "ascending" : "descending");
  button.addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    heads.forEach((other) => other.hasAttribute("aria-sort") && other.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    chosen(column, up);
  });
});
// Sorts its rows where they are, by data-sort of a cell or its text.
export const sorted = (element) => {
  const key = (row, column) => row.cells[column].dataset.sort ?? row.cells[column].textContent.trim();
  const [body] = element.tBodies;
  sortHeads([...element.tHead.rows[0].cells], (column, up) => body.append(...[...body.rows].sort((a, b) => inOrder(key(a, column), key(b, column), up))));
  return element;
};

export const table = (heads, rows, attributes = {}) => make("table", attributes,
  make("thead", {}, make("tr", {}, ...heads.map((head) => head instanceof Node ? head : make("th", { scope: "col" }, head)))),
  make("tbody", {}, ...rows));
// What may be wider than the page scrolls by itself, with the keys too.  A page has each label once.
export const scroll = (label, child = null, more = "") => make("div", { class: `scroll ${more}`.trim(), tabindex: "0", role: "region", "aria-label": label }, child);
export const choose = (label, options, chosen, onchange) => {
  const select = make("select", { onchange: (event) => onchange(event.target.value) },
    ...options.map(([value, text]) => make("option", { value, selected: value === chosen }, text)));
  return make("label", {}, label, select);
};
// One of many names: typed, with those that have these letters to choose from.
let lists = 0;
export const pick = (label, names, chosen, onchange) => {
  const id = `names-${lists++}`;
  const input = make("input", { list: id, value: chosen, size: 24, autocomplete: "off", spellcheck: "false", placeholder: "all names have a list", onchange: () => {
    const value = input.value.trim();
    const wrong = value && !names.includes(value);
    input.setCustomValidity(wrong ? `There is no ${label} of this name here.` : "");
    if (wrong) input.reportValidity(); else onchange(value);
  } });
  return make("span", {}, make("label", {}, label, input), make("datalist", { id }, ...names.map((name) => make("option", { value: name }))));
};
// A text of many lines shows how it begins, and all of it when asked for.
const LONG = 300;
export const wrapped = (text) => (text.length <= LONG ? text :
  make("details", {}, make("summary", {}, `${text.slice(0, LONG)}… (${text.length} characters)`), text));
export const troubled = (text) => make("p", { class: "error", role: "alert" }, text);

// Addresses: #/run/NAME/point/ID?from=…  Every view can be shared.
export const route = (path, parameters = {}) => {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== undefined && value !== ""));
  return "#/" + path.map(encodeURIComponent).join("/") + (query.size ? `?${query}` : "");
};
export const here = () => {
  const [path, query] = (/^#\/(.*)/.exec(location.hash)?.[1] ?? "").split("?"); // "#main" is a place in a page
  const decode = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
  return { path: path.split("/").filter(Boolean).map(decode), query: Object.fromEntries(new URLSearchParams(query || "")) };
};
export const fileOf = (run, path) => "/files/" + [run, ...path.split("/")].map(encodeURIComponent).join("/");
export const drawn = (what) => {
  document.documentElement.dataset.drawn = what;
  dispatchEvent(new CustomEvent("testctl:drawn", { detail: what }));
};
