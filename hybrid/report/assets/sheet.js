"use strict";
/* The error sheet: sampled questions by task, a tag and a note for each error, and counts of the tags. */

function tabulated(benchmark, rows) {
  const here = report.tags.all().filter((one) => one.benchmark === benchmark && one.tag);
  if (!here.length) return report.el("p", { class: "quiet", text: "No error has a tag yet." });
  const words = [...new Set(here.map((one) => one.tag))];
  const solvers = rows.solvers.filter((solver) => here.some((one) => one.solver === solver));
  const others = here.some((one) => !rows.solvers.includes(one.solver));
  const columns = others ? [...solvers, "others"] : solvers;
  const inColumn = (one, column) => (column === "others" && others ? !rows.solvers.includes(one.solver) : one.solver === column);
  const lines = words
    .map((word) => {
      const of = here.filter((one) => one.tag === word);
      return [word, ...columns.map((column) => of.filter((one) => inColumn(one, column)).length), of.length];
    })
    .sort((a, b) => b.at(-1) - a.at(-1));
  const total = ["all", ...columns.map((column) => here.filter((one) => inColumn(one, column)).length), here.length];
  return report.table({
    title: "Tags by solver",
    columns: [{ name: "tag", align: "left" }, ...columns.map((name) => ({ name, align: "right" })), { name: "all", align: "right" }],
    rows: [...lines, total].map((line) => line.map(String)),
    notes: [],
  });
}

const saveTags = () => report.saveFile("tags.json", new Blob([report.tags.text()], { type: "application/json" }));

report.pages.errors = async ({ bench }) => {
  const [rows, overview] = await Promise.all([report.rows(bench), report.load(`${bench}/overview`)]);
  const benchmark = overview.benchmark;
  const byTask = new Map();
  for (const row of rows.sampled()) {
    const task = rows.of("task", row);
    if (!byTask.has(task)) byTask.set(task, []);
    byTask.get(task).push(row);
  }
  const query = new URLSearchParams({ sampled: "1" });
  const entry = (row) => {
    const errors = rows.solvers.map((_, solver) => solver).filter((solver) => report.isError(rows.state(solver, row)));
    return report.el(
      "li",
      { class: "entry" },
      report.el("p", { class: "entry-head" }, report.el("a", { class: "link", href: report.links.question(bench, rows.id(row), query) }, report.said(rows.id(row), "bdi")), report.said(rows.of("words", row), "span", "quiet")),
      errors.length ? report.el("ul", { class: "errors" }, errors.map((solver) => report.el(
        "li",
        {},
        report.el("span", { class: "err" }, report.verdict(rows.state(solver, row)), report.solverName(rows.solvers[solver]), report.said(rows.ofSolver("answer", solver, row).slice(0, 60) || rows.ofSolver("outcome", solver, row), "bdi", "quiet")),
        report.tagFields(benchmark, rows.id(row), rows.solvers[solver]),
      ))) : report.el("p", { class: "quiet", text: "No solver is wrong here." }),
    );
  };
  const table = report.el("div", { class: "tabulated", "aria-live": "off" });
  const told = report.el("p", { class: "quiet", role: "status" });
  const retell = () => {
    table.replaceChildren(tabulated(benchmark, rows));
    const kept = report.tags.keptByBrowser ? "This browser keeps them for this report; save the file to share them or to keep a copy." : "This browser keeps nothing for pages such as this one: save the file before you leave.";
    told.textContent = `${report.plural(report.tags.all().length, "error")} noted. ${kept}`;
  };
  const body = report.el("div", {});
  const fill = () => {
    body.replaceChildren(...(byTask.size ? [...byTask].map(([task, of]) => report.el("section", {}, report.el("h2", {}, report.said(task, "bdi")), report.el("ul", { class: "entries" }, of.map(entry)))) : [report.el("p", { text: "No questions were sampled. " }), report.command("hybrid report RUN -o DIR --sample-errors 10")]));
  };
  const file = report.el("input", { type: "file", accept: ".json,application/json", class: "unseen", id: "tags-file" });
  file.addEventListener("change", async () => {
    if (!file.files.length) return;
    try {
      const n = report.tags.read(await file.files[0].text());
      fill();
      retell();
      told.textContent = `${report.plural(n, "tag")} read from ${report.visible(file.files[0].name)}. ${told.textContent}`;
    } catch (error) {
      told.textContent = `${report.visible(file.files[0].name)}: ${error.message}`;
    }
    file.value = "";
  });
  fill();
  retell();
  report.tags.listeners.add(retell);
  const links = () => [...body.querySelectorAll("a.link")];
  const move = (by) => {
    const all = links();
    const at = all.findIndex((one) => one.closest(".entry").contains(document.activeElement));
    const to = all[Math.min(Math.max(0, at + by), all.length - 1)];
    if (to) {
      to.focus();
      to.closest(".entry").scrollIntoView({ block: "nearest" });
    }
  };
  return {
    title: "Error sheet",
    node: report.el(
      "div",
      { class: "page sheet" },
      report.el("h1", { tabindex: "-1", text: "Error sheet" }),
      // Without a sample, show first how to draw one.
      byTask.size ? null : body,
      byTask.size ? report.el("p", { class: "lead", text: "A sample of questions that a solver got wrong, by task. Describe in your own words what went wrong in each error; the table counts your tags." }) : null,
      report.el("div", { class: "sheet-tools" },
        report.el("button", { type: "button", id: "save-tags", on: { click: saveTags }, text: "Save tags.json" }),
        report.el("label", { class: "button", for: "tags-file" }, "Read a saved file"), file),
      told,
      table,
      byTask.size ? body : null,
    ),
    leave: () => report.tags.listeners.delete(retell),
    keys: { down: () => move(1), up: () => move(-1), back: () => { location.hash = report.links.overview(bench); } },
  };
};
