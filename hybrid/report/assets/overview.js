"use strict";
/* The first page of a benchmark: conclusion, parts of the gain, each solver's value, differences by task; below, one
   folded line per section. */

report.pages = {};

const answeredBy = (solver) => {
  const parts = [report.plural(solver.n, "question")];
  if (solver.failed) parts.push(`${solver.failed.toLocaleString("en")} failed`);
  if (solver.open) parts.push(`${solver.open.toLocaleString("en")} not finished yet`);
  return parts.join(", ");
};

const solverCard = (solver) =>
  report.el(
    "li",
    { class: "card" },
    report.solverName(solver.name, "strong"),
    report.el("span", { class: "quiet" }, { hybrid: "MLLM with specialists", mllm: "MLLM alone", specialist: "specialists alone", chance: "chance" }[solver.role]),
    solver.model ? report.said(solver.model, "span", "mono") : null,
    solver.control ? report.el("span", { class: "badge" }, "control: ", report.said(solver.control, "bdi")) : null,
    report.el("span", { class: "quiet", text: answeredBy(solver) }),
  );

/** The drawer: solvers, model, settings, versions, and the command that wrote the report. */
report.showRun = async (bench) => {
  const overview = await report.load(`${bench}/overview`);
  report.dialog("drawer", "What was run", report.el("ul", { class: "cards" }, overview.solvers.map(solverCard)),
    report.el("dl", { class: "facts" }, overview.facts.map((fact) => report.el("div", {}, report.said(fact.name, "dt"), report.said(fact.value, "dd")))),
    report.said(report.site.made_by, "p", "quiet"));
};

function warningsOf(warnings) {
  if (!warnings.length) return null;
  const list = report.el("ul", {}, warnings.map((one) => report.said(one, "li")));
  if (warnings.length === 1 && warnings[0].length < 160) return report.el("section", { class: "warnings", "aria-label": "Warning" }, list);
  return report.el("section", { class: "warnings", "aria-label": "Warnings" }, report.el("details", {}, report.el("summary", { text: `${report.plural(warnings.length, "warning")}: read before you quote a number` }), list));
}

/** Shows one of several figures, with a menu of their names; `draw(place, menu)` makes the figure. */
function oneOf(kind, names, draw) {
  const place = report.el("div", { class: kind });
  const menu = names.length === 1 ? null : report.el("select", { "aria-label": "Which solvers" }, names.map((name, at) => report.el("option", { value: String(at), text: report.visible(name) })));
  const show = (at) => place.replaceChildren(draw(at, menu));
  if (menu) menu.addEventListener("change", () => { show(Number(menu.value)); menu.focus(); });
  show(0);
  return place;
}

/** The differences of one pair at a time, or the values of one solver, the highest first. */
function byTask(chart, where) {
  const nameOf = chart.kind === "intervals" ? pairName : (row) => row.a;
  const names = distinct(chart.rows.map(nameOf));
  return oneOf("front-tasks", names, (at, menu) => {
    const rows = chart.rows.filter((row) => nameOf(row) === names[at]).sort((a, b) => b.value - a.value);
    if (chart.kind === "intervals") return report.chart({ ...chart, rows }, { ...where, menu });
    const lines = rows.map((row) => ({ label: row.group, row, look: report.look(row.a), text: number(row), told: told(row.group, row), href: where.ofTask(row) }));
    return figure("bars", chart.title, rows, { ...where, menu }, report.drawn(lines.map((line) => line.told).join("; "), points(lines, reach(rows, true))));
  });
}

/** The file name of a section's chart, and the links of its counts. */
const chartOf = (bench, id, number) => ({
  name: `${bench}-${id}${number ? `-${number + 1}` : ""}`,
  ofRow: (place) => report.links.list(bench, new URLSearchParams({ cell: `${id}.${number}.${place}` })),
});

function frontCharts(bench, overview) {
  const list = (name, value) => report.links.list(bench, new URLSearchParams({ [name]: value }));
  const ofSolver = (row) => list("verdict", `${row.a}/wrong`);
  const steps = overview.front.filter((one) => one.kind === "waterfall");
  const [values, tasks] = [overview.front.find((one) => one.kind === "bars" && !one.rows[0].group), overview.front.find((one) => one.rows[0].group)];
  const front = report.el("div", { class: "front" },
    values ? report.el("div", { class: "front-values" },
      // A section starts with its charts on the first screen.
      steps.length ? oneOf("front-steps", steps.map((one) => lineName(one.rows[0])), (at, menu) => report.chart(steps[at], { ...chartOf(bench, steps[at].rows[0].section.replaceAll("_", "-"), at), ofSolver, menu })) : null,
      report.chart(values, { name: `${bench}-values`, ofSolver })) : null,
    tasks ? byTask(tasks, { name: `${bench}-by-${overview.by}`, ofTask: (row) => list(overview.by, row.group) }) : null);
  // Use the full page width, because at half of it the table of solvers would become a list.
  const numbers = () => report.el("div", {}, overview.headline.map((table) => report.table(table)));
  return [front, values ? report.fold("The numbers", numbers) : null];
}

/** Charts, tables and the command of a section, read when it is first opened. */
async function sectionBody(bench, id) {
  const section = await report.load(`${bench}/sections/${id}`);
  return [
    report.pictures(section.pictures, new Map(section.pictures.map((one) => [one.name, one]))),
    section.charts.map((one, number) => report.chart(one, chartOf(bench, id, number))),
    section.tables.map((table) => report.table(table)),
    section.command ? report.el("div", { class: "recompute" }, report.el("span", { class: "quiet", text: "The same numbers:" }), report.command(section.command)) : null,
  ];
}

function foldedSection(bench, section) {
  const body = report.el("div", { class: "section-body" });
  const details = report.el("details", { class: "fold section", id: `s-${section.id}` },
    report.el("summary", {}, report.el("h2", {}, report.said(section.title, "bdi")), section.lead ? report.said(section.lead, "span", "lead") : null), body);
  details.addEventListener("toggle", async () => {
    if (!details.open || body.children.length) return;
    // Mark it as filled at once, otherwise a second opening would fill it twice.
    body.append(report.el("p", { class: "quiet", text: "Reading …" }));
    try {
      body.replaceChildren(...(await sectionBody(bench, section.id)).flat().filter(Boolean));
      details.dataset.filled = "1";
    } catch (error) {
      body.replaceChildren(report.el("p", { text: error.message }));
    }
  });
  return details;
}

/** A sentence of the conclusion; a command at its end becomes code with a copy button. */
function sentence(text) {
  const at = text.search(/\bhybrid (run|study|compare|ablate) [^.]*$/);
  if (at < 0) return report.said(text, "p", "sentence");
  return report.el("div", { class: "sentence" }, report.said(text.slice(0, at).trimEnd(), "p"), report.command(text.slice(at)));
}

/** Models, benchmark and split, number of questions and date; generated questions stand out. */
function headLine(parts) {
  if (!parts.length) return null;
  return report.el("p", { class: "head" }, parts.flatMap((part, at) => [at ? " | " : null, report.said(part, "span", /^(and )?generated questions$/.test(part) ? "generated" : "")]));
}

report.pages.overview = async ({ bench }) => {
  const overview = await report.load(`${bench}/overview`);
  return {
    title: overview.title,
    node: report.el(
      "div",
      { class: "page overview" },
      // For a report of one benchmark, the bar above shows the title.
      report.el("h1", { tabindex: "-1", class: overview.title === report.site.title ? "unseen" : "" }, report.said(overview.title, "bdi")),
      headLine(overview.head),
      overview.conclusion.length ? report.el("section", { class: "conclusion", "aria-label": "Conclusion" }, overview.conclusion.map(sentence)) : null,
      warningsOf(overview.warnings),
      frontCharts(bench, overview),
      overview.sections.length ? report.el("div", { class: "sections" }, overview.sections.map((one) => foldedSection(bench, one))) : report.el("p", { class: "quiet", text: "There is nothing to compare yet." }),
    ),
  };
};
