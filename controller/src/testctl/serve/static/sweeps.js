// SPDX-License-Identifier: Apache-2.0
// The figures of a run that its plan asks for, or a default one, and one that is chosen here.
import { ask, choose, here, isExport, make, pick, route, say } from "./dom.js";
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
  let turn = 0;
  const show = async () => {
    const mine = ++turn;
    const given = state.kind === "cdf" ? { ...state, x: "" } : state;
    try {
      const found = await ask(["runs", run.name, "sweep"], given);
      if (mine !== turn) return;
      own = chartFigure(found, looks);
      into.replaceChildren(own.element);
      own.draw();
    } catch (error) {
      if (mine !== turn) return;
      own = null;
      into.replaceChildren(make("p", { class: "error" }, error.message));
      say(error.message);
    }
  };
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
  const another = make("details", { class: "small", open: Boolean(written), ontoggle: () => { if (another.open && !own) show(); } },
    make("summary", {}, "Another figure"), form, into);
  const element = make("section", {}, make("h2", {}, "Figures"),
    make("div", { class: "sweeps" }, ...figures.map((one) => one.element)), sweeps.swept.length && !isExport() ? another : "");
  return { element, draw: () => { figures.forEach((one) => one.draw()); own?.draw(); if (another.open && !own) show(); } };
};
