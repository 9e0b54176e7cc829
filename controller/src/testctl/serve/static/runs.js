// SPDX-License-Identifier: Apache-2.0
// The list of runs.
import { ask, badge, counts, drawn, looks, make, route, scroll, table, when } from "./dom.js";

export const showRuns = async (place) => {
  const [{ runs }, all] = await Promise.all([ask(["runs"]), looks()]);
  const rows = runs.map((run) => {
    const state = run.state === "complete" ? null : badge("", all, run.state);
    const row = make("tr", {},
      make("td", { class: "wide" }, make("a", { href: route(["run", run.name]), "data-item": true }, run.plan), " ", state,
        run.damage ? make("div", { class: "note" }, run.damage) : null),
      make("td", { class: "nowrap" }, when(run.started)),
      make("td", {}, counts(run.counts, all)),
      make("td", {}, run.digest ? make("code", { title: run.digest }, run.digest.slice(0, 12)) : "–"),
      make("td", { class: "nowrap" }, run.kernels.join(", ") || "–"),
      make("td", {}, make("code", {}, run.name)));
    row.dataset.text = `${run.plan} ${run.name} ${run.about} ${run.started} ${run.digest} ${run.kernels.join(" ")} ${run.state}`.toLowerCase();
    return row;
  });
  const none = make("p", { class: "note", hidden: true }, "No run has these words.");
  place.append(make("h1", {}, "Runs"));
  if (!runs.length) place.append(make("p", { class: "note" }, "There are no runs here yet. ", make("code", {}, "testctl run PLAN"), " makes one."));
  else place.append(scroll("Runs",
    table(["plan", "started (UTC)", "points", "digest", "kernel", "directory"], rows)), none);
  queueMicrotask(() => drawn("runs"));
  return {
    search: (words) => {
      let left = 0;
      for (const row of rows) left += !(row.hidden = !words.split(/\s+/).every((word) => row.dataset.text.includes(word)));
      none.hidden = left > 0;
    },
  };
};
