"use strict";
/* Tables of strings that are formatted already. */

const ONE_LINE_CHARS = 28;

/** A table as it is printed: title, headings, cells, notes. */
report.table = (table, { title = true } = {}) => {
  const side = (place) => (table.columns[place].align === "right" ? "num" : "");
  const made = report.el(
    "table",
    { class: "data" },
    table.title && title ? report.said(table.title, "caption") : null,
    report.el("thead", {}, report.el("tr", {}, table.columns.map((column, place) => {
      const heading = report.said(column.name, "th", side(place));
      heading.scope = "col";
      return heading;
    }))),
    report.el("tbody", {}, table.rows.map((row) => report.el("tr", {}, row.map((text, place) => report.said(text, "td", side(place) || (text.length <= ONE_LINE_CHARS ? "short" : "")))))),
  );
  return report.el(
    "div",
    { class: "table" },
    report.scrolling(table.title || "Table", made),
    table.notes.map((note) => report.said(note, "p", "note")),
  );
};

/** The numbers of a chart, folded below it. */
report.numbers = (title, columns, rows) =>
  report.fold("The numbers", () =>
    report.table({ title, columns: columns.map(([name, align]) => ({ name, align })), rows, notes: [] }, { title: false }));
