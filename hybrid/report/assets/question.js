"use strict";
/* The page of a question: its text and images, and each solver's steps to its answer, side by side. */

const money = (value) => (value === null ? null : `$${value < 0.01 ? value.toPrecision(2) : value.toFixed(2)}`);
const json = (value) => JSON.stringify(value, null, 1);
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** `crop(image: "img:2")` as an element. */
function call(tool, args) {
  const inside = isObject(args)
    ? Object.entries(args).flatMap(([name, value], place) => [
        place ? ", " : null,
        report.said(name, "span", "arg"),
        ": ",
        report.said(JSON.stringify(value)),
      ])
    : [report.said(typeof args === "string" ? args : JSON.stringify(args ?? null))];
  return report.el("code", { class: "call" }, report.said(tool, "strong"), "(", inside, ")");
}

function modelStep(step) {
  const calls = Array.isArray(step.data.tool_calls) ? step.data.tool_calls : [];
  const thoughts = step.data.reasoning;
  return [
    typeof thoughts === "string" ? report.fold("Reasoning", () => report.longText(thoughts, "Reasoning"), "reasoning-fold") : null,
    step.text ? report.longText(step.text, "Message") : null,
    calls.map((one) => report.el("p", { class: "calls" }, report.el("span", { class: "quiet", text: "calls " }), isObject(one) ? call(String(one.tool ?? one.name ?? "?"), one.args) : call(String(one), {}))),
    !step.text && !calls.length ? report.el("p", { class: "quiet", text: "(an empty message)" }) : null,
  ];
}

function toolStep(step) {
  const { args, images, confidence, backend, version } = step.data;
  const about = [
    Array.isArray(images) && images.length ? `on ${images.join(", ")}` : "",
    typeof confidence === "number" ? `confidence ${confidence.toFixed(2)}` : "",
    typeof backend === "string" ? `backend ${backend}${typeof version === "string" && version !== backend ? ` ${version}` : ""}` : "",
  ].filter(Boolean).join(" · ");
  return [
    report.el("p", { class: "calls" }, call(step.name, args ?? {})),
    about ? report.said(about, "p", "about") : null,
    step.text ? report.longText(step.text, "Finding") : null,
  ];
}

function stepEntry(step, known) {
  const who = { model: "model", tool: "tool", rule: "rule" }[step.kind];
  for (const one of step.pictures) known.set(one.name, one);
  const hasData = isObject(step.data) ? Object.keys(step.data).length > 0 : step.data !== null;
  const data = isObject(step.data) ? step.data : {};
  return report.el(
    "li",
    { class: `step is-${step.kind} ${step.fault ? "has-fault" : ""}` },
    report.el(
      "p",
      { class: "who" },
      report.el("span", { class: "kind", text: who }),
      report.said(step.name, "bdi"),
      step.fault ? report.el("span", { class: "fault" }, "fault: ", report.said(step.fault, "bdi")) : null,
      step.seconds ? report.el("span", { class: "time", text: report.seconds(step.seconds) }) : null,
    ),
    step.kind === "model" ? modelStep({ ...step, data }) : step.kind === "tool" ? toolStep({ ...step, data }) : report.longText(step.text, "Decision"),
    report.pictures(step.pictures, known),
    hasData ? report.fold("Data", () => report.longText(json(step.data), "Data"), "data-fold") : null,
  );
}

function askEntry(ask, number, of, known) {
  for (const part of ask.prompt) if (typeof part !== "string") known.set(part.name, part);
  const usage = [
    `${report.plural(ask.model_calls, "model call")}`,
    ask.tool_calls ? report.plural(ask.tool_calls, "tool call") : null,
    ...(ask.reused_calls ? [`${ask.reused_calls} answered by replies of earlier runs: tokens, cost and seconds not known`] : [
      `${ask.input_tokens.toLocaleString("en")} tokens in, ${ask.output_tokens.toLocaleString("en")} out`,
      money(ask.cost_usd),
      report.seconds(ask.seconds),
    ]),
  ].filter(Boolean).join(" · ");
  // A reply that equals the last message is not shown twice.
  const last = ask.steps.filter((step) => step.kind === "model").at(-1);
  const same = last && last.text.trim() === ask.reply.trim();
  return report.el(
    "section",
    { class: "ask", "aria-label": of > 1 ? `Prompt ${number}` : "Conversation" },
    of > 1 ? report.el("h4", { text: `Prompt ${number} of ${of}` }) : null,
    ask.prompt.length ? report.el("div", { class: "step is-prompt" }, report.el("p", { class: "who" }, report.el("span", { class: "kind", text: "asked" })),
      ask.prompt.map((part) => (typeof part === "string" ? report.longText(part, "Prompt") : report.pictures([part], known)))) : null,
    report.el("ol", { class: "steps" }, ask.steps.map((step) => stepEntry(step, known))),
    same ? null : report.el("div", { class: "step is-reply" }, report.el("p", { class: "who" }, report.el("span", { class: "kind", text: "reply" })), ask.reply ? report.longText(ask.reply, "Reply") : report.el("p", { class: "quiet", text: "(empty)" })),
    report.el("p", { class: "usage", text: ask.outcome === "answered" ? usage : `${ask.outcome} · ${usage}` }),
  );
}

function solverColumn(entry, state, page, bench) {
  const known = new Map(page.pictures.map((one) => [one.name, one]));
  const isReused = entry.asks.some((ask) => ask.reused_calls);
  const total = isReused ? 0 : entry.asks.reduce((sum, ask) => sum + ask.input_tokens + ask.output_tokens, 0);
  const line = (name, value) => (value ? report.el("div", {}, report.el("dt", { text: name }), value) : null);
  const credit = entry.correct !== null && entry.correct > 0 && entry.correct < 1 ? ` (${entry.correct.toFixed(2)})` : "";
  const isSampled = bench.sampledHere && report.isError(state);
  return report.el(
    "section",
    { class: `column is-${state}`, "aria-label": report.visible(entry.solver) },
    report.el("header", {}, report.solverName(entry.solver, "h3"), report.el("p", { class: "said-verdict" }, report.verdict(state, true), credit)),
    state === "absent" ? report.el("p", { class: "quiet", text: "This solver was not asked this question." }) : [
      report.el(
        "dl",
        { class: "outcome" },
        line("answer", entry.answer ? report.el("dd", { class: "answer-said" }, report.longText(entry.answer, "Answer")) : report.el("dd", { class: "quiet", text: "none" })),
        line("read by", entry.rule ? report.said(entry.rule, "dd", "mono") : null),
        line("outcome", entry.outcome !== "answered" ? report.said(entry.outcome, "dd", "mono") : null),
        line("why", entry.why ? report.el("dd", {}, report.longText(entry.why, "Why")) : null),
        line("elapsed", entry.wall_s !== null ? report.el("dd", { text: report.seconds(entry.wall_s) }) : null),
        line("looked", entry.looked ? report.said(entry.looked, "dd") : null),
        line("tokens", total ? report.el("dd", { text: total.toLocaleString("en") }) : null),
      ),
      isSampled ? report.tagFields(bench.name, page.id, entry.solver) : null,
      entry.asks.map((ask, place) => askEntry(ask, place + 1, entry.asks.length, known)),
    ],
  );
}

const missing = (bench, id) => ({
  title: "No such question",
  node: report.el("div", { class: "page" }, report.el("h1", { tabindex: "-1", text: "No such question" }), report.el("p", {}, "This report has no question ", report.said(id, "code"), " here."), report.el("p", {}, report.el("a", { href: report.links.list(bench), text: "To the list" }))),
});

report.pages.question = async ({ bench, id, query }) => {
  const { rows, overview, counted, matching } = await report.found(bench, query);
  const row = rows.find(id);
  if (row < 0) return missing(bench, id);
  const page = await report.question(bench, rows.list, row);
  const filters = report.onlyFilters(query);
  const place = matching.indexOf(row);
  const to = (other) => (other >= 0 && other < matching.length ? report.links.question(bench, rows.id(matching[other]), filters) : null);
  // A question that the filters exclude has no previous and next question.
  const previous = place < 0 ? null : to(place - 1);
  const next = place < 0 ? null : to(place + 1);
  if (place >= 0) report.listState(`${bench}?${filters}`).active = place;
  const step = (label, href, rel) => (href ? report.el("a", { class: "button", href, rel, text: label }) : report.el("span", { class: "button off", "aria-hidden": "true", text: label }));
  const cellName = report.countName(counted);
  const where = place < 0 ? "not in the filtered list" : `${(place + 1).toLocaleString("en")} of ${matching.length.toLocaleString("en")}${filters.toString() ? " in the filtered list" : ""}`;
  const benchmark = { name: overview.benchmark, sampledHere: rows.of("sampled", row) };
  const list = report.links.list(bench, filters);
  // Most texts already contain their choices.
  const told = page.choices.every((choice) => page.text.includes(choice));
  const choices = (told ? [] : page.choices).map((choice) => report.el("li", {}, report.said(choice, "bdi")));
  return {
    title: report.visible(page.id),
    node: report.el(
      "div",
      { class: "page wide-page question" },
      report.el(
        "nav",
        { class: "walk", "aria-label": "Neighbouring questions" },
        report.el("a", { href: list, text: "← List" }),
        report.el("span", { class: "quiet where" }, where, cellName ? [" · ", report.said(cellName, "bdi")] : null),
        step("‹ Previous", previous, "prev"),
        step("Next ›", next, "next"),
      ),
      report.el("h1", { tabindex: "-1" }, report.said(page.id, "bdi")),
      report.el("p", { class: "groups" }, report.el("span", { class: "badge" }, report.said(page.task, "bdi")), page.groups.map((fact) => report.el("span", { class: "badge" }, report.said(fact.name, "bdi"), ": ", report.said(fact.value, "bdi"))), rows.of("sampled", row) ? report.el("a", { class: "badge", href: report.links.errors(bench), text: "on the error sheet" }) : null),
      page.error ? report.el("div", { class: "warnings" }, report.el("p", {}, "This question could not be asked: ", report.said(page.error))) : null,
      report.el(
        "section",
        { class: "asked", "aria-label": "The question" },
        report.pictures(page.pictures, new Map(page.pictures.map((one) => [one.name, one]))),
        report.el(
          "div",
          { class: "words" },
          report.longText(page.text, "Question"),
          choices.length ? report.el("ul", { class: "choices", "aria-label": "Choices" }, choices) : null,
          page.target ? report.el("p", { class: "target" }, report.el("span", { class: "label", text: "Right answer" }), report.said(page.target)) : null,
          page.evidence ? report.el("p", { class: "target" }, report.el("span", { class: "label", text: "Must be seen" }), report.said(page.evidence)) : null,
          markLegend(page.pictures),
        ),
      ),
      report.el("h2", { class: "unseen", text: "Solvers" }),
      answersOf(page.solvers, rows, row),
      page.again ? report.el("div", { class: "recompute again" }, report.el("span", { class: "quiet", text: `Ask it again, with every request and reply in the log${page.again_where ? `, ${page.again_where}` : ""}:` }), report.command(page.again)) : null,
      report.el("div", { class: "columns" }, page.solvers.map((entry, solver) => solverColumn(entry, rows.state(solver, row), page, benchmark))),
    ),
    keys: {
      down: () => { if (next) location.hash = next; },
      up: () => { if (previous) location.hash = previous; },
      back: () => { location.hash = list; },
    },
  };
};

/** The legend of the kinds of marks drawn on the pictures. */
function markLegend(pictures) {
  const kinds = new Set(pictures.flatMap((one) => (one.marks || []).map((mark) => mark.kind)));
  const names = { annotated: "must be seen", covering: "a call that covers it", elsewhere: "a call elsewhere" };
  const shown = Object.entries(names).filter(([kind]) => kinds.has(kind));
  return shown.length ? report.el("p", { class: "mark-legend" }, shown.map(([kind, name]) => report.el("span", { class: `mark-key is-${kind}`, text: name }))) : null;
}

/** The verdicts and answers of all solvers next to each other, if their conversations do not fit on one screen. */
function answersOf(solvers, rows, row) {
  if (solvers.length < 3) return null;
  return report.el("ul", { class: `answers ${solvers.length > 4 ? "" : "few"}`.trim(), "aria-label": "Answers" }, solvers.map((entry, solver) => report.el("li", {},
    report.solverName(entry.solver, "strong"), report.verdict(rows.state(solver, row), true), entry.answer ? report.said(rows.ofSolver("answer", solver, row), "bdi") : null)));
}
