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
// Plotly reads a little markup in names and texts.
export const escaped = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

export class Refused extends Error {}

// Where answers come from, if not from a server: the report has them in itself.
let own = null;
export const answerFrom = (answer) => { own = answer; };

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

let known = null;
export const looks = async () => (known ??= await ask(["looks"]));

const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const RATES = [[1e9, "Gb/s"], [1e6, "Mb/s"], [1e3, "kb/s"], [1, "b/s"]];
const SIZES = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]];
const COUNTS = [[1, "packets"]];
const pick = (most, units) => units.find(([size]) => most >= size) || units.at(-1);
export const units = { time: (m) => pick(m, TIMES), rate: (m) => pick(m, RATES), size: (m) => pick(m, SIZES), count: () => COUNTS[0] };
const digits = (value) => (Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3))).toString();
export const showIn = (kind, value) => {
  const [size, name] = units[kind](Math.abs(value));
  return `${digits(value / size)} ${name}`;
};
export const showTime = (ns) => showIn("time", ns);
export const at = (ns) => `${(ns / 1e9).toFixed(9).replace(/0{1,6}$/, "")} s`;
export const when = (text) => (text ? text.slice(0, 16).replace("T", " ") : "–");

export const badge = (verdict, all, text = verdict) => {
  const element = make("span", { class: "badge" }, text);
  const [colour, sign] = all.verdicts[verdict] || [null, ""];
  if (colour) element.style.setProperty("--mine", colour);
  if (sign) element.prepend(make("span", { "aria-hidden": "true" }, `${sign} `));
  return element;
};
export const counts = (found, all) => make("span", { class: "badges" }, ...Object.entries(found)
  .filter(([, count]) => count).map(([verdict, count]) => badge(verdict, all, `${count} ${verdict}`)));
export const facts = (rows) => make("dl", { class: "facts" }, ...rows.filter(([, value]) => value)
  .map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
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
  const [path, query] = (location.hash.replace(/^#\/?/, "")).split("?");
  const decode = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
  return { path: path.split("/").filter(Boolean).map(decode), query: Object.fromEntries(new URLSearchParams(query || "")) };
};
export const drawn = (what) => {
  document.documentElement.dataset.drawn = what;
  dispatchEvent(new CustomEvent("testctl:drawn", { detail: what }));
};
