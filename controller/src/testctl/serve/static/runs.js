// SPDX-License-Identifier: Apache-2.0
// The home page: plans with their last verdict, and the list of runs.
import { ask, badge, changed, choose, counts, drawn, here, inOrder, isExport, looks, make, many, route, scroll, showTime, sortHeads, sorted, table, when } from "./dom.js";
import { scorecardTable } from "./scorecards.js";
import { spark } from "./spark.js";

const MAX = 300; // rows of runs; the search finds the others
const HEADS = ["plan", "started (UTC)", "points", "digest", "kernel", "directory"];
const keys = [(run) => run.plan, (run) => run.started, (run) => Object.values(run.counts).join(" "), (run) => run.digest, (run) => run.kernels.join(" "), (run) => run.name];

export const showRuns = async (place) => {
  const [{ runs, plans }, all, found] = await Promise.all([ask(["runs"]), looks(), ask(["scorecards"]).catch(() => [])]);
  const cards = scorecardTable(found, all);
  const texts = runs.map(wordsOf);
  const state = { words: "", plan: here().query.plan || "", sort: null };
  const list = scroll("Runs");
  const said = make("p", { class: "note" });
  const about = make("span");
  const points = make("p", { class: "note", hidden: true });
  let turn = 0;
  // Of the last runs of plans those that have such points; the search on a run's page shows them.
  const findPoints = async (text) => {
    const mine = ++turn;
    points.hidden = !text;
    if (!text) return;
    await new Promise((done) => { setTimeout(done, 150); }); // somebody is still writing
    const lasts = mine === turn ? await ask(["points"], { words: text }).catch(() => []) : [];
    if (mine !== turn) return;
    points.replaceChildren(lasts.length ? "Points of the last runs: " : "No point of a plan's last run has these words.", ...lasts.flatMap(({ plan, run, count }, i) => [i ? ", " : "",
      make("a", { href: route(["run", run], { search: text }), "data-item": true }, `${plan}: ${many(count, "point")}`)]));
  };
  const fitting = () => {
    const words = state.words.split(/\s+/);
    const fit = runs.filter((run, i) => (!state.plan || run.plan === state.plan) && words.every((word) => texts[i].includes(word)));
    if (!state.sort) return fit;
    const [column, up] = state.sort;
    return fit.sort((a, b) => inOrder(keys[column](a), keys[column](b), up));
  };
  const show = () => {
    const fit = fitting();
    said.textContent = !fit.length ? "No run has these words." : fit.length > MAX ? `The first ${MAX} of ${many(fit.length, "run")} are shown; the search finds the others.` : "";
    about.replaceChildren(...(state.plan ? [make("a", { href: route(["plan", state.plan]) }, `Trends of ${state.plan}`)] : []));
    const element = table(HEADS, fit.slice(0, MAX).map((run) => rowOf(run, all)), { class: "blocks" });
    sortHeads([...element.tHead.rows[0].cells], (column, up) => {
      state.sort = [column, up];
      show();
      list.querySelectorAll("thead th")[column].querySelector("button").focus();
    }, state.sort);
    list.hidden = !fit.length;
    list.replaceChildren(element);
    overview.search(state.plan, words());
    cards.search(words());
  };
  const words = () => state.words.split(/\s+/);
  const overview = planTable(plans, all);
  const names = plans.map((plan) => plan.plan).sort();
  if (!runs.length) place.append(make("h1", {}, "Runs"), make("p", { class: "note" }, "There are no runs here yet. ", make("code", {}, "testctl run PLAN"), " makes one."), cards.element);
  else {
    const plansHead = found.length ? [make("h1", {}, "Results"), cards.element, make("h2", {}, "Plans")] : [make("h1", {}, "Plans")];
    place.append(points, ...plansHead, overview.element, make("h2", {}, "Runs"),
      make("div", { class: "choices" }, choose("plan", [["", "all plans"], ...names.map((name) => [name, name])], state.plan,
        (value) => { state.plan = value; history.replaceState(null, "", route([], { plan: value })); show(); }), about), said, list);
    show();
    overview.fill();
  }
  queueMicrotask(() => drawn("runs"));
  return { search: (text) => { state.words = text; show(); findPoints(text); }, leave: () => overview.leave() };
};

// What the search looks at; of verdicts those that a point of the run has.
const wordsOf = (run) => [run.plan, run.name, run.about, run.started, run.digest, ...run.kernels, run.state, ...run.overrides,
  ...Object.keys(run.counts).filter((verdict) => run.counts[verdict])].join(" ").toLowerCase();

const rowOf = (run, all) => make("tr", {},
  make("td", { class: "wide" }, make("a", { href: route(["run", run.name]), "data-item": true }, run.plan), " ", run.state === "complete" ? null : badge("", all, run.state),
    changed(run), run.damage ? make("div", { class: "note" }, run.damage) : null),
  make("td", { class: "nowrap" }, when(run.started)),
  make("td", {}, run.progress ? make("div", {}, going(run.progress)) : null, counts(run.counts, all)),
  make("td", {}, run.digest ? make("code", { title: run.digest }, run.digest.slice(0, 12)) : "–"),
  make("td", { class: "nowrap" }, run.kernels.join(", ") || "–"),
  make("td", {}, make("code", {}, run.name)));

// "24 of 48 points, about 31 s left"
export const going = ({ done, points, left_s: left }) => `${done} of ${many(points, "point")}${left === null ? "" : `, about ${clock(left)} left`}`;
const clock = (seconds) => (seconds < 100 ? showTime(Math.ceil(seconds) * 1e9) : `${Math.round(seconds / 60)} min`);

const planTable = (plans, all) => {
  const cells = plans.map(() => make("td", { class: "wide" }, "…"));
  const rows = plans.map((plan, i) => make("tr", {},
    make("td", { class: "wide" }, make("a", { href: route(["plan", plan.plan]), title: plan.about }, plan.plan),
      plan.going ? make("div", { class: "note" }, make("a", { href: route(["run", plan.going.name]) }, "in progress"), plan.going.progress ? `: ${going(plan.going.progress)}` : "") : null),
    make("td", { "data-sort": i }, counts(plan.last.counts, all)),
    cells[i],
    make("td", { class: "trend spare" }, spark(plan.shares.map((one) => one.share), plan.shares.map((one) => one.verdict), all, { range: [0, 1] })),
    make("td", { class: "nowrap", "data-sort": plan.last.started }, make("a", { href: route(["run", plan.last.name]) }, when(plan.last.started))),
    make("td", { class: "number spare" }, String(plan.runs))));
  const texts = plans.map((plan) => `${plan.plan} ${plan.about} ${Object.keys(plan.last.counts).filter((verdict) => plan.last.counts[verdict]).join(" ")}`.toLowerCase());
  let left = false;
  return {
    element: scroll("Plans", sorted(table(["plan", "last verdict", "since the run before", make("th", { scope: "col", "data-plain": true }, "passed, over the runs"), "last run (UTC)", make("th", { scope: "col", class: "number" }, "runs")], rows, { class: "blocks" }))),
    search: (plan, words) => rows.forEach((row, i) => { row.hidden = (plan && plans[i].plan !== plan) || !words.every((word) => texts[i].includes(word)); }),
    leave: () => { left = true; },
    // One plan after the other: each needs two whole summaries.
    fill: async () => {
      for (const [i, plan] of plans.entries()) {
        if (left) return;
        if (plan.last.state === "complete") await since(plan.last.name, cells[i]); else cells[i].replaceChildren();
      }
    },
  };
};

// What changed in a run since the one before, and how much of its plan a nightly run was; returns the points that differ.
export const since = async (run, element, names) => {
  try {
    const found = await ask(["runs", run, "since"]);
    element.replaceChildren(...difference(found, run, names));
    return found.points;
  } catch (error) { element.replaceChildren(make("span", { class: "note" }, error.message)); }
  return [];
};
// names: of the points by their ids, where these are to be listed, each beside itself in the run before
export const difference = ({ since: before, text, worse, share, points }, run, names) => [names ? make("span", { class: worse ? "worse" : "" }, text) : make("a", { class: worse ? "worse" : "", href: route(["run", run]) }, text), make("div", { class: "note" }, share, share && before ? "; " : "",
  ...(before ? ["since ", isExport() ? before : make("a", { href: route(["run", before]) }, before)] : [])),
  names && points.length ? make("details", { class: "small", open: points.length <= 12 }, make("summary", {}, points.length > 1 ? `The ${points.length} points` : "The point"), make("ul", {}, ...points.map((id) => make("li", {},
    make("a", { href: route(["run", run, "point", id]) }, names.get(id) ?? id), ...(isExport() ? [] : [", ", make("a", { href: route(["compare"], { a: `${before}/${id}`, b: `${run}/${id}` }) }, "beside the run before")]))))) : ""];
