// SPDX-License-Identifier: Apache-2.0
// The list of runs.
import { ask, badge, changed, choose, counts, drawn, here, looks, make, route, scroll, sorted, table, when } from "./dom.js";

export const showRuns = async (place) => {
  const [{ runs }, all] = await Promise.all([ask(["runs"]), looks()]);
  const rows = runs.map((run) => {
    const state = run.state === "complete" ? null : badge("", all, run.state);
    const row = make("tr", {},
      make("td", { class: "wide" }, make("a", { href: route(["run", run.name]), "data-item": true }, run.plan), " ", state,
        changed(run),
        run.damage ? make("div", { class: "note" }, run.damage) : null),
      make("td", { class: "nowrap" }, when(run.started)),
      make("td", {}, counts(run.counts, all)),
      make("td", {}, run.digest ? make("code", { title: run.digest }, run.digest.slice(0, 12)) : "–"),
      make("td", { class: "nowrap" }, run.kernels.join(", ") || "–"),
      make("td", {}, make("code", {}, run.name)));
    row.dataset.text = `${run.plan} ${run.name} ${run.about} ${run.started} ${run.digest} ${run.kernels.join(" ")} ${run.state} ${run.overrides.join(" ")}`.toLowerCase();
    return row;
  });
  const none = make("p", { class: "note", hidden: true }, "No run is like that.");
  const state = { words: "", plan: here().query.plan || "" };
  const filter = () => {
    let left = 0;
    rows.forEach((row, i) => { left += !(row.hidden = (state.plan && runs[i].plan !== state.plan) || !state.words.split(/\s+/).every((word) => row.dataset.text.includes(word))); });
    none.hidden = left > 0;
    about.hidden = !state.plan;
    about.replaceChildren(make("a", { href: route(["plan", state.plan]) }, `Trends of ${state.plan}`));
  };
  const about = make("span", { hidden: true });
  const plans = [...new Set(runs.map((run) => run.plan))].sort();
  place.append(make("h1", {}, "Runs"));
  if (!runs.length) place.append(make("p", { class: "note" }, "There are no runs here yet. ", make("code", {}, "testctl run PLAN"), " makes one."));
  else place.append(make("div", { class: "choices" }, choose("plan", [["", "all plans"], ...plans.map((name) => [name, name])], state.plan,
    (value) => { state.plan = value; history.replaceState(null, "", route([], { plan: value })); filter(); }), about),
  scroll("Runs", sorted(table(["plan", "started (UTC)", "points", "digest", "kernel", "directory"], rows))), none);
  filter();
  queueMicrotask(() => drawn("runs"));
  return { search: (words) => { state.words = words; filter(); } };
};
