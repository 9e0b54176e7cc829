// SPDX-License-Identifier: Apache-2.0
// The files of a run or a point.
import { ask, drawn, fileOf, make, route, scroll, showIn, sorted, table } from "./dom.js";

export const fileTable = (run, files, below = "") => (files.length ? scroll("Files", sorted(table(["file", make("th", { scope: "col", class: "number" }, "size")], files.map(([path, bytes]) => make("tr", {},
  make("td", {}, make("a", { href: fileOf(run, below + path), target: "_blank", rel: "noopener" }, path)),
  make("td", { class: "number", "data-sort": bytes }, showIn("size", bytes))))))) : make("p", { class: "note" }, "There are no files."));

export const showFiles = async (place, now) => {
  const run = await ask(["runs", now.path[1]]);
  place.append(make("h1", {}, "Files of ", make("a", { href: route(["run", run.name]) }, run.name)),
    make("p", { class: "note" }, "Each point's page lists the point's own files. docs/results.md says what is in which."), fileTable(run.name, run.files));
  queueMicrotask(() => drawn("files"));
  return {};
};
