// SPDX-License-Identifier: Apache-2.0
// What a run found, in tables: what failing points share, expectations with their bounds, claims of papers; and how it was made.
import { badge, facts, make, many, route, scroll, table, when } from "./dom.js";

const numberHead = (text) => make("th", { scope: "col", class: "number" }, text);

// only(verdict, where) shows those points.
export const failureTables = (run, looks, only) => make("section", {}, make("h2", {}, "What failing points share"), ...run.failures.map(({ verdict, count, rows, more }) => {
  const lines = rows.map(({ share, where, worst }) => make("tr", {}, make("td", { class: "nowrap" }, share),
    make("td", { class: "text" }, make("button", { type: "button", onclick: () => only(verdict, where) }, where.map(([label, value]) => `${label}=${value}`).join(" and "))), make("td", { class: "text" }, worst)));
  if (more) lines.push(make("tr", {}, make("td", {}, `${more} more`), make("td", {}, make("button", { type: "button", onclick: () => only(verdict, []) }, "all of them")), make("td", {})));
  return make("div", {}, make("p", {}, badge(verdict, looks), ` ${many(count, "point")}${rows.length > 1 ? "; each row is about those that no row above has" : ""}`), scroll(`Points: ${verdict}`, table(["share", "with", "worst"], lines, { class: "blocks" })));
}));

export const expectationTable = (run, looks) => {
  const judged = run.expectations.filter(({ verdict }) => verdict !== "skip").length;
  const passed = run.expectations.filter(({ verdict }) => verdict === "pass").length;
  const lines = run.expectations.map(({ name, verdict, metric, bound, found, detail, points }) => make("tr", {},
    make("td", {}, badge(verdict, looks)), make("td", { class: "text" }, name),
    make("td", { class: "text" }, `${metric} ${bound}`.trim()), make("td", { class: "text" }, found),
    make("td", { class: "text" }, points.length ? make("details", {}, make("summary", {}, detail.split(/[:;]/)[0]), make("p", { class: "note" }, detail),
      ...points.map(([id, words]) => make("div", {}, make("a", { href: route(["run", run.name, "point", id]) }, words)))) : detail)));
  return make("details", { class: "part", open: true },
    make("summary", {}, make("h2", {}, `Expectations (${passed} of ${judged} pass${judged < run.expectations.length ? `, ${run.expectations.length - judged} about no point` : ""})`)),
    scroll("Expectations", table(["verdict", "expectation", "wanted", "found", "points"], lines, { class: "blocks" })));
};

export const claimTable = (run, looks) => make("section", {}, make("h2", {}, "Claims of papers"), scroll("Claims of papers",
  table(["verdict", "claim", "paper", "ours", numberHead("points"), numberHead("difference")], run.claims.flatMap((one) => {
    return [make("tr", {}, make("td", {}, badge(one.badge, looks, one.verdict, one.sign)), make("td", { class: "text" }, one.claim, make("br"), make("span", { class: "note" }, `${one.source} · ${one.metric}`)),
      make("td", { class: "text" }, one.published), make("td", { class: "text" }, one.ours), make("td", { class: "number" }, String(one.points)), make("td", { class: "number" }, one.difference)),
    ...(one.why ? [make("tr", {}, make("td"), make("td", { colspan: 5, class: "text" }, make("b", {}, "Why: "), one.why))] : [])];
  }), { class: "blocks" })));

const took = (seconds, whole = Math.round(seconds)) => (!seconds ? "" : whole < 120 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`);
const pairs = (rows) => table(["what", "value"], rows.map(([what, text]) => make("tr", {}, make("td", {}, what), make("td", { class: "text" }, text))));

export const provenance = (run) => make("details", { class: "part" }, make("summary", {}, make("h2", {}, "How it was made")),
  facts([["Run", run.name], ["Started", when(run.started)], ["Took", took(run.wall_s)], ["Digest", run.digest && make("code", {}, run.digest)], ["Reproduce", run.reproduce && make("code", {}, run.reproduce)]]),
  run.statement.length ? pairs(run.statement) : "", run.versions.length ? scroll("Versions", pairs(run.versions)) : "",
  run.plan_text ? make("details", { class: "small" }, make("summary", {}, "Plan"), make("pre", { tabindex: "0" }, run.plan_text)) : "");
