"use strict";
/* What became of a question, in a word and a sign, and the looks of solvers: the same in lists, charts and pages. */

/** States in the order in which filters offer them. The sign tells them apart without colour. */
report.STATES = {
  right: { word: "right", sign: "✓" },
  partly: { word: "partly right", sign: "◐" },
  wrong: { word: "wrong", sign: "✗" },
  unscored: { word: "not right or wrong", sign: "○" },
  none: { word: "no answer", sign: "∅" },
  failed: { word: "failed", sign: "!" },
  open: { word: "not asked yet", sign: "…" },
  absent: { word: "not among its questions", sign: "·" },
};

const FAILED = new Set(["not_recorded", "outage", "broken"]);

/** The state of a verdict: right and wrong are said of answers alone; credit for having none is no right answer. */
report.state = (outcome, correct) => {
  if (outcome === "") return "absent";
  if (outcome === "open") return "open";
  if (FAILED.has(outcome)) return "failed";
  if (outcome !== "answered") return "none";
  if (correct === null) return "unscored";
  if (correct >= 1) return "right";
  return correct > 0 ? "partly" : "wrong";
};

report.isError = (state) => state === "wrong" || state === "partly" || state === "none";

/** A sign with its word for those who do not see it. */
report.verdict = (state, showWord = false) => {
  const { word, sign } = report.STATES[state];
  return report.el(
    "span",
    { class: `verdict is-${state}`, title: showWord ? null : word },
    report.el("span", { class: "sign", "aria-hidden": "true", text: sign }),
    report.el("span", { class: showWord ? "" : "unseen", text: showWord ? ` ${word}` : word }),
  );
};

const ROLES = ["hybrid", "mllm", "specialist", "chance"];
const TONES = 6;
const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "cross", "wye", "times"];

let looksOf = null;
let names = new Map();

/** Colour and symbol of each solver's name: of its role's family, the same on every tab. */
report.looks = () => {
  if (looksOf === report.site) return names;
  looksOf = report.site;
  names = new Map();
  for (const role of ROLES) {
    let tone = 0;
    for (const bench of report.site.benchmarks) {
      for (const solver of bench.solvers) {
        if (solver.role !== role || names.has(solver.name)) continue;
        const symbol = SYMBOLS[(ROLES.indexOf(role) + 4 * (tone % 2)) % SYMBOLS.length];
        names.set(solver.name, { role, colour: `var(--${role}-${tone % TONES})`, symbol });
        tone += 1;
      }
    }
  }
  return names;
};

report.look = (name) => report.looks().get(name) || { role: "chance", colour: "var(--chance-0)", symbol: "circle" };

/** A solver's name with its colour. */
report.solverName = (name, tag = "span") => {
  const swatch = report.el("span", { class: "swatch", "aria-hidden": "true" });
  swatch.style.background = report.look(name).colour;
  return report.el(tag, { class: "solver" }, swatch, report.said(name, "bdi"));
};
