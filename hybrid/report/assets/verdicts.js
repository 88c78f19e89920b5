"use strict";
/* The verdict on an answer as a word and a sign, and the colours and symbols of solvers in lists, charts and pages. */

/** States in the order in which filters offer them. The signs distinguish them without colour. */
report.STATES = {
  right: { word: "right", sign: "✓" },
  partly: { word: "partly right", sign: "◐" },
  wrong: { word: "wrong", sign: "✗" },
  unscored: { word: "neither right nor wrong", sign: "○" },
  none: { word: "no answer", sign: "∅" },
  failed: { word: "failed", sign: "!" },
  open: { word: "not finished yet", sign: "…" },
  absent: { word: "not among its questions", sign: "·" },
};

report.isError = (state) => state === "wrong" || state === "partly" || state === "none";

/** A sign, with its word for screen readers. */
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
const SYMBOLS = ["circle", "square", "triangle", "diamond"];

let looksOf = null;
let names = new Map();

/** Colour and symbol of each solver, by its role, the same on every tab. */
report.looks = () => {
  if (looksOf === report.site) return names;
  looksOf = report.site;
  names = new Map();
  for (const role of ROLES) {
    let tone = 0;
    for (const bench of report.site.benchmarks) {
      for (const solver of bench.solvers) {
        if (solver.role !== role || names.has(solver.name)) continue;
        const symbol = SYMBOLS[ROLES.indexOf(role)];
        names.set(solver.name, { role, colour: `var(--${role}-${tone % TONES})`, symbol });
        tone += 1;
      }
    }
  }
  return names;
};

report.look = (name) => report.looks().get(name) || { role: "chance", colour: "var(--chance-0)", symbol: "circle" };

/** A solver's colour. */
report.swatch = (name) => {
  const swatch = report.el("span", { class: "swatch", "aria-hidden": "true" });
  swatch.style.background = report.look(name).colour;
  return swatch;
};

/** A solver's name with its colour. */
report.solverName = (name, tag = "span") => report.el(tag, { class: "solver" }, report.swatch(name), report.said(name, "bdi"));
