// SPDX-License-Identifier: Apache-2.0
// The scorecards of testctl certify and testctl papers on the home page.
import { badge, make, scroll, sorted, table, when } from "./dom.js";

const HEADS = ["scorecard", "not met of what MUST be evaluated", "verdicts", "kernel", "started (UTC)", "directory"];

export const scorecardTable = (cards, all) => {
  const rows = cards.map((card) => make("tr", {},
    make("td", { class: "wide" }, make("a", { href: `/scorecards/${encodeURIComponent(card.name)}/scorecard.html`, "data-item": true }, card.ccs[0] ?? (card.kind || card.name)),
      card.ccs.length > 1 ? make("div", { class: "note" }, `beside ${card.ccs.slice(1).join(", ")}`) : null, card.damage ? make("div", { class: "note" }, card.damage) : null),
    make("td", { class: card.missed ? "worse" : "" }, card.musts === null ? "–" : `${card.missed} of ${card.musts}`),
    make("td", {}, make("span", { class: "badges" }, ...card.counts.map(([look, text]) => badge(look, all, text)))),
    make("td", { class: "nowrap" }, card.kernel || "–"),
    make("td", { class: "nowrap" }, when(card.started)),
    make("td", {}, make("code", {}, card.name))));
  const texts = rows.map((row) => row.textContent.toLowerCase());
  return {
    element: cards.length ? make("section", {}, make("h2", {}, "Scorecards"), scroll("Scorecards", sorted(table(HEADS, rows)))) : "",
    search: (words) => rows.forEach((row, i) => { row.hidden = !words.every((word) => texts[i].includes(word)); }),
  };
};
