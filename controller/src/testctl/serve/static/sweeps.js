// SPDX-License-Identifier: Apache-2.0
// The figures of a run that its plan asks for, or a default one, and one that is chosen here.
import { ask, choose, here, isExport, latest, make, pick, route, troubled } from "./dom.js";
import { chartFigure } from "./sweep.js";

const KINDS = [["metric", "median"], ["box", "box"], ["cdf", "distribution"], ["heatmap", "heat map"]];
const FIELDS = ["kind", "metric", "x", "by", "facet", "flow"];

export const sweepSection = (run, sweeps, looks, written) => {
  const figures = sweeps.figures.map((one) => (one.spec ? chartFigure(one, looks) : chartFigure(() => ask(["runs", run.name, "figures", one.number]), looks, one.title)));
  const first = sweeps.figures.find((one) => one.asked)?.asked || { kind: "metric", metric: run.columns[0]?.[0] ?? "", x: "", by: "", facet: "" };
  const state = { ...first, x: first.x || sweeps.swept[0], flow: "" };
  if (written) written.split(",").slice(0, FIELDS.length).forEach((value, i) => { state[FIELDS[i]] = value; });
  const into = make("div", { class: "sweeps" });
  const form = make("div", { class: "choices" });
  let own = null;
  const show = latest(() => ask(["runs", run.name, "sweep"], state.kind === "cdf" ? { ...state, x: "" } : state), (found) => {
    own = chartFigure(found, looks);
    into.replaceChildren(own.element);
    own.draw();
  }, (error) => {
    own = null;
    into.replaceChildren(troubled(error.message));
  });
  const change = (name) => (value) => {
    state[name] = value;
    if (state.kind === "heatmap" && !state.by) state.by = keys.find((key) => key !== state.x) ?? "";
    history.replaceState(null, "", route(here().path, { ...here().query, figure: FIELDS.map((field) => state[field]).join(",") }));
    controls();
    show();
  };
  const keys = [...sweeps.swept, ...(run.flows.length > 1 ? ["flow"] : [])];
  const kinds = KINDS.filter(([kind]) => kind !== "heatmap" || keys.length > 1);
  const controls = () => {
    const focused = [...form.querySelectorAll("select, input")].indexOf(document.activeElement);
    const named = keys.map((key) => [key, key]);
    form.replaceChildren(choose("show", kinds, state.kind, change("kind")), pick("of", run.metrics, state.metric, change("metric")),
      ...(state.kind === "cdf" ? [] : [choose("over", named, state.x, change("x"))]),
      choose("by", state.kind === "heatmap" ? named : [["", "–"], ...named], state.by, change("by")), choose("panels", [["", "–"], ...named], state.facet, change("facet")),
      ...(run.flows.length > 1 ? [choose("flow", [["", "point, or greatest flow"], ...run.flows.map((name) => [name, name])], state.flow, change("flow"))] : []));
    if (focused >= 0) form.querySelectorAll("select, input")[focused]?.focus();
  };
  controls();
  const asks = sweeps.swept.length && !isExport();
  const another = make("details", { class: "small", open: Boolean(asks && written), ontoggle: () => { if (another.open && !own) show(); } },
    make("summary", {}, "Another figure"), form, into);
  const element = make("section", {}, make("h2", {}, "Figures"),
    make("div", { class: "sweeps" }, ...figures.map((one) => one.element)), asks ? another : "");
  return { element, draw: () => { figures.forEach((one) => one.draw()); own?.draw(); if (another.open && !own) show(); } };
};
