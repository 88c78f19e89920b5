"use strict";
/* Tables of strings that are already formatted. */

const ONE_LINE_CHARS = 28;
const WIDE_COLUMNS = 9;

/** A table that is at most as wide as the page: if it does not fit, its rows become lists of headings and cells. */
function fitted(table) {
  const box = report.el("div", {}, table);
  let width = 0;
  const fit = () => {
    const now = box.clientWidth;
    if (now === 0 || now === width) return;
    width = now;
    table.classList.remove("stacked");
    table.classList.toggle("stacked", table.scrollWidth > width);
  };
  new ResizeObserver(() => requestAnimationFrame(fit)).observe(box);
  return box;
}

/** A table as in the terminal: title, headings, cells, notes. */
report.table = (table) => {
  const side = (place) => (table.columns[place].align === "right" ? "num" : "");
  const made = report.el(
    "table",
    { class: `data ${table.columns.length > WIDE_COLUMNS ? "wide" : ""}`.trim() },
    table.title ? report.said(table.title, "caption") : null,
    report.el("thead", {}, report.el("tr", {}, table.columns.map((column, place) => {
      const heading = report.said(column.name, "th", side(place));
      heading.scope = "col";
      return heading;
    }))),
    report.el("tbody", {}, table.rows.map((row) => report.el("tr", {}, row.map((text, place) => {
      const made = report.said(text, "td", side(place) || (text.length <= ONE_LINE_CHARS ? "short" : ""));
      // On a narrow screen each row is a list of headings and cells.
      made.dataset.heading = report.visible(table.columns[place].name);
      return made;
    })))),
  );
  return report.el(
    "div",
    { class: "table" },
    fitted(made),
    table.notes.map((note) => report.said(note, "p", "note")),
  );
};
