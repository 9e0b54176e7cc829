// SPDX-License-Identifier: Apache-2.0
// In report.html: the answers that a server would give, as testctl/report/packed.py packs them.  Each is read when it is first asked for.
import { Refused, answerFrom, byId, make, route, vegaFrom } from "./dom.js";

const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%:()*+-;,=.?@^_`{|}~";
const VALUES = new Uint8Array(128);
[...LETTERS].forEach((letter, value) => { VALUES[letter.charCodeAt(0)] = value; });
// Five letters are four bytes, the last group may be shorter.
const bytesOf = (text) => {
  const bytes = new Uint8Array(Math.ceil(text.length / 5) * 4);
  for (let from = 0, to = 0; from < text.length; from += 5) {
    let word = 0;
    for (let i = from; i < from + 5; i += 1) word = word * 85 + (i < text.length ? VALUES[text.charCodeAt(i)] : 84);
    for (let shift = 24; shift >= 0; shift -= 8) { bytes[to] = (word / 2 ** shift) & 255; to += 1; }
  }
  return bytes.subarray(0, Math.floor(text.length * 4 / 5));
};
const inflated = async (id) => {
  try {
    return await new Response(new Blob([bytesOf(byId(id).textContent)]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).text();
  } catch (error) {
    throw new Refused(`This browser can't read what is packed here (${error.message}); testctl serve shows it, too.`);
  }
};
const numbers = ([unit, ...steps]) => { let sum = 0; return steps.map((step) => (sum += step) * unit); };
const unpacked = (_, value) => {
  if (!value?.["~"]) return value;
  const found = numbers(value["~"]);
  for (const place of value["!"] ?? []) found[place] = null;
  return found;
};
const kept = new Map();
const read = (id) => {
  if (!kept.has(id)) kept.set(id, inflated(id).then((text) => JSON.parse(text, unpacked)));
  return kept.get(id);
};
vegaFrom(async () => document.head.append(make("script", {}, await inflated("e-vega"))));

// Values of a metric are those of its column.
const values = ({ columns, points }, metric) => {
  const at = columns.findIndex(([name, heading]) => name === metric && !heading.endsWith(", each"));
  return Object.fromEntries(points.map(({ id, cells }) => [id, cells[at][0]]));
};
// Of a figure's windows the shortest that holds what is asked for, else the longest; of several connections those that have all.
const inWindow = (all, { from, to, lane = "", bin = "" }) => {
  const length = (one) => one.to - one.from;
  const windows = all.filter((one) => one.bin === Number(bin) || (!one.bin && !all.some((other) => other.bin === Number(bin))));
  const asked = lane.split(",").filter(Boolean);
  const ofAll = windows.filter(({ lanes }) => !lanes.length || asked.every((one) => lanes.includes(one)));
  const fewest = Math.min(...ofAll.map(({ lanes }) => lanes.length));
  const found = ofAll.filter(({ lanes }) => lanes.length === fewest).sort((a, b) => length(a) - length(b));
  const best = found.find((one) => one.from <= from && one.to >= to) || found.at(-1);
  if (!best) throw new Refused(`An export has no figure of ${asked.join(" and ")} alone; testctl serve draws it.`);
  return best;
};
// A part of a window has its own axes.
const rangeIn = ({ lines, data, range }, from, to) => {
  let [least, most] = [Infinity, -Infinity];
  for (const { set } of lines) data[set].y.forEach((y, i) => { if (y !== null && data[set].t[i] >= from && data[set].t[i] <= to) [least, most] = [Math.min(least, y), Math.max(most, y)]; });
  if (least > most) return range;
  const room = (most - least || Math.abs(most) || 1) * 0.06;
  return [range[0] === 0 ? 0 : least - room, most + room];
};
const seenIn = ({ answer, ...whole }, { from, to }) => {
  if (from === whole.from && to === whole.to) return answer;
  const { x, ...others } = answer.spec.encoding;
  const axis = { ...x.axis, title: "time (s)", labelExpr: "format(datum.value / 1e9, '.9~f')" };
  return { ...answer, range: rangeIn(answer, from, to), spec: { ...answer.spec, encoding: { ...others, x: { ...x, axis, scale: { ...x.scale, domain: [from, to] } } } } };
};

const answers = read("e-run");
const pointAnswer = async ({ run, together, not_drawn: notDrawn }, asked, [what, name], parameters) => {
  const at = run.points.findIndex(({ id }) => id.startsWith(asked));
  if (at < 0) throw new Refused(`run ${run.name} has no point '${asked}'`);
  const { id, name: words } = run.points[at];
  const element = byId(`d-${id}`);
  const recorded = element && await read(`d-${element.dataset.same || id}`); // a point whose packets are those of another has its data
  if (what === "events" || what === "requests") return recorded?.[what] ?? {};
  if (what === "figures") return seenIn(inWindow(recorded.figures[name] ?? [], parameters), parameters);
  const details = (await read(`m-${Math.floor(at / together)}`))[id];
  return { ...details, packets: 0, duration_ns: 0, lanes: [], lanes_in_all: 0, figures: [], stalls: { rows: [], in_all: 0 }, ...recorded?.page,
    run: run.name, name: words, files: [], not_drawn: notDrawn.includes(id) };
};
answerFrom(async ([first, , what, point, ...rest], parameters) => {
  const { looks, run, sweeps } = await answers;
  if (first === "looks") return looks;
  if (what === "points") return pointAnswer(await answers, point, rest, parameters);
  if (what === "values") return values(run, parameters.metric);
  return what === "sweeps" ? sweeps : { ...run, metrics: [...new Set(run.columns.filter(([, heading]) => !heading.endsWith(", each")).map(([metric]) => metric))], flows: [] };
});

// The page is about one run; addresses of an older report have a point's id alone.
const follow = () => {
  const point = /^#p-(.+)$/.exec(location.hash)?.[1];
  if (point || location.hash.length < 3) history.replaceState(null, "", route(["run", byId("e-run").dataset.run, ...(point ? ["point", point] : [])]));
};
addEventListener("hashchange", follow);
follow();
