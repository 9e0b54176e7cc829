// SPDX-License-Identifier: Apache-2.0
// Which view an address shows, and the keys.
import { ONLY_SERVED, byId, drawn, here, isDark, isExport, make, route, say, troubled } from "./dom.js";
import { showRuns } from "./runs.js";
import { showRun } from "./run.js";
import { showPoint } from "./point.js";
import { showComparison } from "./compare.js";
import { showTrend } from "./trend.js";
import { showPlan } from "./plan.js";
import { showFiles } from "./files.js";
import { mark, showMarks } from "./marks.js";

const main = byId("main");
const search = byId("search");
let view = null; // what is shown: {keys, search, leave, same}
let turn = 0;

const pages = [
  [/^$/, () => [["Runs", route([])]], showRuns],
  [/^run$/, ([, run]) => [["Runs", route([])], [run, route(["run", run])]], showRun],
  [/^run\/point$/, ([, run, , point]) => [["Runs", route([])], [run, route(["run", run])], [point, ""]], showPoint],
  [/^run\/files$/, ([, run]) => [["Runs", route([])], [run, route(["run", run])], ["Files", ""]], showFiles],
  [/^plan$/, ([, plan]) => [["Runs", route([])], [plan, ""]], showPlan],
  [/^compare$/, () => [["Runs", route([])], ["Comparison", ""]], showComparison],
  [/^trend$/, ([, point]) => [["Runs", route([])], [`Trend of ${point}`, ""]], showTrend],
];
const EXPORTED = [showRun, showPoint, showComparison];
const shape = (path) => path.filter((_, i) => i % 2 === 0).join("/");

const crumbs = (list) => byId("crumbs").replaceChildren(...list.slice(isExport() && list.length > 1 ? 1 : 0).map(([text, address], i) => make("li", {},
  make("a", { href: address || location.hash, "aria-current": text === list.at(-1)[0] && "page" }, text))));

const show = async () => {
  const now = here();
  const found = pages.find(([pattern, , open]) => pattern.test(shape(now.path)) && (!isExport() || EXPORTED.includes(open)));
  if (view?.same?.(now)) { view.update(now); return; }
  view?.leave?.();
  view = null;
  search.value = "";
  const mine = ++turn;
  if (!found) {
    if (!isExport()) crumbs(pages[0][1]());
    main.replaceChildren(make("h1", {}, "No such page"), troubled(isExport() ? ONLY_SERVED : "There is no such page. The list of runs is at the top left."));
    return;
  }
  const [, trail, open] = found;
  crumbs(trail(now.path));
  document.title = `${trail(now.path).at(-1)[0]} – testctl`;
  const place = make("div");
  try {
    const opened = await open(place, now, () => { if (mine === turn) main.replaceChildren(place); return mine === turn; });
    if (mine !== turn) { opened?.leave?.(); return; }
    view = opened;
    if (!place.isConnected) main.replaceChildren(place);
    search.parentElement.hidden = !view?.search;
    if (view?.search && now.query.search) { search.value = now.query.search; view.search(search.value.trim().toLowerCase()); }
    scrollTo(0, 0);
  } catch (error) {
    if (mine !== turn || error.name === "AbortError") return;
    main.replaceChildren(make("h1", {}, "Not shown"), troubled(error.message));
    say(error.message);
    drawn("error");
  }
};

// ---- keys
const items = () => [...main.querySelectorAll("[data-item]")].filter((item) => item.offsetParent !== null);
const step = (by) => {
  const all = items();
  if (!all.length) return;
  const now = all.indexOf(document.activeElement);
  const next = all[now < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(now + by, 0), all.length - 1)];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
};
const up = () => {
  const all = [...byId("crumbs").querySelectorAll("a")];
  if (all.length > 1) location.hash = all.at(-2).getAttribute("href");
};
const help = byId("help");
byId("help-button").addEventListener("click", () => help.showModal());
const root = document.documentElement.dataset;
byId("theme-button").addEventListener("click", () => {
  root.theme = isDark() ? "light" : "dark";
  try { localStorage.setItem("theme", root.theme); } catch { /* a page without a place to keep it */ }
  view?.restyle?.();
});
try { root.theme = localStorage.getItem("theme") ?? ""; } catch { /* as above */ }

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || help.open) return;
  const typing = event.target.closest?.("input, textarea, select");
  if (event.key === "Escape") {
    if (event.target === search && search.value) { search.value = ""; view?.search?.(""); }
    else if (typing) { event.target.blur(); main.focus(); }
    else up();
    event.preventDefault();
    return;
  }
  if (event.target === search && event.key === "Enter") { step(1); event.preventDefault(); return; }
  if (event.target === search && event.key === "ArrowDown") { step(1); event.preventDefault(); return; }
  if (typing) return;
  const inList = event.target.matches?.("[data-item]");
  const actions = {
    "/": () => { if (view?.search) { search.focus(); search.select(); } },
    "?": () => help.showModal(),
    j: () => step(1),
    k: () => step(-1),
    m: () => { const target = inList && event.target.dataset.mark ? event.target.dataset.mark : view?.mark; if (target) mark(target); },
    ...(inList ? { ArrowDown: () => step(1), ArrowUp: () => step(-1) } : {}),
    ...(view?.keys || {}),
  };
  const act = actions[event.key];
  if (act) { act(); event.preventDefault(); }
});
search.addEventListener("input", () => view?.search?.(search.value.trim().toLowerCase()));
addEventListener("hashchange", () => /^(#\/|#?$)/.test(location.hash) && show());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view?.restyle?.());
if (isExport()) main.after(make("footer", { class: "note" }, ONLY_SERVED));
showMarks();
show();
