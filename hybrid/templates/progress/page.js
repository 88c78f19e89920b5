"use strict";
// Runs in progress: asks for their state every two seconds. Texts of models and data are inserted as text, never as markup.

const POLL_MS = 2000;
const STATES = { waiting: "waiting for the run to begin", running: "running", finished: "finished", stopped: "stopped; the same command resumes it", unreadable: "cannot be read at this moment" };

const element = (name, props = {}, ...children) => {
  const node = Object.assign(document.createElement(name), props);
  node.append(...children.filter((child) => child !== null));
  return node;
};

const number = (value, digits = 0) => (value === null || value === undefined ? "-" : value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }));

const duration = (seconds) => {
  if (seconds === null || seconds === undefined) return "-";
  if (seconds < 10) return `${number(seconds, 1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
};

const failures = (solver) => Object.entries(solver.failures).map(([kind, count]) => `${kind} ${count}`).concat(solver.tool_faults ? [`failed tool calls ${solver.tool_faults}`] : []).join(", ") || "none";

const COLUMNS = [
  ["solver", (solver) => element("span", { dir: "auto", textContent: solver.name })],
  ["finished", (solver) => element("span", {}, element("progress", { value: solver.finished, max: Math.max(1, solver.n), ariaLabel: `${solver.name}: finished` }), ` ${number(solver.finished)} of ${number(solver.n)}`)],
  ["per minute", (solver) => number(solver.per_minute, 1)],
  ["time left", (solver, running) => (running ? duration(solver.seconds_left) : "-")],
  ["tokens", (solver) => number(solver.tokens)],
  ["cost", (solver) => (solver.cost_usd === null ? "-" : `$${number(solver.cost_usd, 4)}`)],
  ["failures", (solver) => failures(solver)],
];

function solverTable(run) {
  const head = element("tr", {}, ...COLUMNS.map(([name]) => element("th", { scope: "col", textContent: name })));
  const rows = run.solvers.map((solver) => element("tr", {}, ...COLUMNS.map(([name, cell]) => {
    const td = element("td", {}, cell(solver, run.state === "running"));
    td.dataset.name = name;
    return td;
  })));
  return element("table", { className: "solvers" }, element("thead", {}, head), element("tbody", {}, ...rows));
}

function newest(run) {
  const items = run.newest.map((question) => element("li", {},
    element("span", { className: `verdict ${question.verdict === "right" ? "right" : ["wrong", "failed"].includes(question.verdict) ? "wrong" : ""}`, textContent: question.verdict }),
    element("b", { dir: "auto", textContent: question.id }),
    element("span", { className: "quiet", textContent: [question.solver, question.kind, question.answer ? `answer ${question.answer}` : null, question.seconds === undefined ? null : duration(question.seconds)].filter(Boolean).join(", ") }),
    element("span", { className: "reply", dir: "auto", textContent: question.text })));
  return element("details", { open: true }, element("summary", { textContent: "Newest questions" }), element("ol", { className: "newest", tabIndex: 0, ariaLabel: "Newest questions" }, ...items));
}

function section(run, place) {
  const facts = [STATES[run.state] ?? run.state, run.benchmark, run.model, ...(run.labels ?? [])].filter(Boolean);
  const node = element("section", {}, element("h2", { dir: "auto", textContent: run.path }), element("p", { className: `facts ${run.state}`, dir: "auto", textContent: facts.join(" | ") }, run.generated ? element("b", { className: "generated", textContent: " | generated questions" }) : null));
  if (run.problem) node.append(element("p", { className: "wrong", dir: "auto", textContent: run.problem }));
  if (run.solvers.length) node.append(element("p", {}, element("a", { href: `${place + 1}/`, textContent: "Scores, charts and conversations" })), solverTable(run));
  if (run.newest.length) node.append(newest(run));
  return node;
}

let shown = [];

function show(runs) {
  const texts = runs.map((run) => JSON.stringify(run));
  const place = document.getElementById("runs");
  runs.forEach((run, at) => {
    // A section is replaced only if something changed, to keep a selection and folded lists.
    if (texts[at] === shown[at]) return;
    const old = place.children[at], node = section(run, at);
    const list = node.querySelector("details"), before = old?.querySelector("details");
    if (list && before) list.open = before.open;
    const scrolled = before?.querySelector("ol").scrollTop ?? 0;
    if (old) old.replaceWith(node);
    else place.append(node);
    if (list) list.querySelector("ol").scrollTop = scrolled;
  });
  shown = texts;
  const running = runs.filter((run) => run.state === "running").length, waiting = runs.filter((run) => run.state === "waiting").length;
  const words = [`${running} of ${runs.length} running`, waiting ? `${waiting} not begun` : null].filter(Boolean).join(", ");
  const state = document.getElementById("state");
  if (state.textContent !== words) state.textContent = words;
  document.title = runs.length === 1 && runs[0].solvers.length ? `${Math.round((100 * runs[0].solvers.reduce((sum, solver) => sum + solver.finished, 0)) / Math.max(1, runs[0].solvers.reduce((sum, solver) => sum + solver.n, 0)))} % of ${runs[0].path}` : `${words}: runs in progress`;
}

async function look() {
  try {
    const response = await fetch("progress.json", { cache: "no-store" });
    if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
    show((await response.json()).runs);
  } catch (error) {
    document.getElementById("state").textContent = `hybrid view has ended or cannot be reached (${error.message})`;
  }
  setTimeout(look, POLL_MS);
}

look();
