"use strict";
/* The first page of a benchmark: what was run, what must be known of it, and a section for each question. */

report.pages = {};

const fractionAsked = (solver) => {
  const parts = [report.plural(solver.n, "question")];
  if (solver.failed) parts.push(`${solver.failed.toLocaleString("en")} failed`);
  if (solver.open) parts.push(`${solver.open.toLocaleString("en")} not asked yet`);
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
    report.el("span", { class: "quiet", text: fractionAsked(solver) }),
  );

// A comparison of many solvers has tables of hundreds of rows, between which a section would not be found.
const LONG_ROWS = 24;
const foldedIfLong = (table) =>
  table.rows.length <= LONG_ROWS ? report.table(table)
    : report.fold(`${report.visible(table.title || "The table")} (${table.rows.length.toLocaleString("en")} rows)`, () => report.table(table, { title: false }), "table-fold");

report.pages.overview = async ({ bench }) => {
  const overview = await report.load(`${bench}/overview`);
  const contents = report.el("nav", { class: "contents", "aria-label": "Sections" }, report.el("ul", {}, overview.sections.map((one) =>
    report.el("li", {}, report.el("a", { href: report.links.section(bench, one.id) }, report.said(one.title, "bdi"))))));
  const sections = overview.sections.map((section) => report.el(
    "section",
    { class: "section", id: `s-${section.id}`, "aria-labelledby": `h-${section.id}` },
    report.el("h2", { id: `h-${section.id}`, tabindex: "-1" }, report.said(section.title, "bdi")),
    section.lead ? report.said(section.lead, "p", "lead") : null,
    section.charts.map((chart, number) => report.chart(chart, { bench, section: section.id, number })),
    section.tables.map(foldedIfLong),
    section.command ? report.el("div", { class: "recompute" }, report.el("span", { class: "quiet", text: "The same numbers:" }), report.command(section.command)) : null,
  ));
  return {
    title: overview.title,
    node: report.el(
      "div",
      { class: "page overview" },
      report.el("h1", { tabindex: "-1" }, report.said(overview.title, "bdi")),
      overview.warnings.length ? report.el(
        "section",
        { class: "warnings", "aria-label": "Warnings" },
        report.el("h2", { class: "small", text: overview.warnings.length === 1 ? "Know this first" : "Know these first" }),
        report.el("ul", {}, overview.warnings.map((one) => report.said(one, "li"))),
      ) : null,
      report.el(
        "section",
        { class: "run", "aria-label": "What was run" },
        report.el("h2", { class: "small", text: "What was run" }),
        report.el("ul", { class: "cards" }, overview.solvers.map(solverCard)),
        report.el("dl", { class: "facts" }, overview.facts.map((fact) => report.el("div", {}, report.said(fact.name, "dt"), report.said(fact.value, "dd")))),
      ),
      overview.sections.length ? contents : report.el("p", { class: "quiet", text: "There is nothing to compare yet." }),
      sections,
    ),
  };
};
