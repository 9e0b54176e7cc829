// SPDX-License-Identifier: Apache-2.0
// Points marked for comparison: two at most, kept while the page is open.
import { byId, make, route, say } from "./dom.js";

let marks = []; // "run/point"

export const isMarked = (name) => marks.includes(name);
export const mark = (name) => {
  marks = isMarked(name) ? marks.filter((other) => other !== name) : [...marks, name].slice(-2);
  showMarks();
  say(isMarked(name) ? `marked ${name}` : `no longer marked: ${name}`);
};
export const showMarks = () => {
  const bar = byId("marked");
  bar.hidden = !marks.length;
  bar.replaceChildren(
    make("span", {}, marks.length === 2 ? "Marked: " : "Marked; mark a second point to compare: ",
      ...marks.flatMap((name, i) => [i ? ", " : "", make("code", {}, name)])),
    marks.length === 2 ? make("a", { href: route(["compare"], { a: marks[0], b: marks[1] }) }, "Compare them") : "",
    make("button", { type: "button", onclick: () => { marks = []; showMarks(); } }, "Clear"));
  for (const button of document.querySelectorAll("button[data-marks]")) dress(button);
};
const dress = (button) => {
  const on = isMarked(button.dataset.marks);
  button.setAttribute("aria-pressed", on);
  button.textContent = on ? "marked" : "mark";
};
export const markButton = (name, text) => {
  const button = make("button", { type: "button", "data-marks": name, "aria-label": `Mark ${text} for comparison`, onclick: () => mark(name) });
  dress(button);
  return button;
};
