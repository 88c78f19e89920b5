"use strict";
/* The buttons "Save as SVG, PNG, csv" of a chart. A saved picture uses the light theme, for paper, and needs no other
   file. */

const PNG_SCALE = 3;
const KEPT_MS = 60000;
const HEAD_PX = 22;
const HEAD_CHARACTER_PX = 6;
const CSV = ["section", "quantity", "unit", "a", "b", "metric", "group", "value", "low", "high", "p", "p_holm", "family", "n", "none", "note", "no_claim"];

const lightColour = (name) => {
  const value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const both = value.match(/^light-dark\(([^,]+),/);
  return both ? both[1] : value;
};

/** Return a copy of a chart for a file, with the page's head below it. */
function withHead(svg) {
  const copy = svg.cloneNode(true);
  const head = document.querySelector(".page .head")?.textContent;
  if (!head) return copy;
  const [width, height] = ["width", "height"].map((side) => Number(svg.getAttribute(side)));
  // A long head is compressed to the width of the chart.
  const fit = head.length * HEAD_CHARACTER_PX > width ? { textLength: width, lengthAdjust: "spacingAndGlyphs" } : {};
  copy.append(report.svg("text", { x: 0, y: height + HEAD_PX - 6, "font-size": 11, fill: "var(--ink-2)", ...fit }, head));
  copy.setAttribute("height", height + HEAD_PX);
  copy.setAttribute("viewBox", `0 0 ${width} ${height + HEAD_PX}`);
  return copy;
}

/** The text of a chart as a complete SVG file. */
report.svgText = (svg) => {
  const copy = withHead(svg);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  for (const link of copy.querySelectorAll("a")) link.replaceWith(...link.childNodes);
  for (const one of copy.querySelectorAll("*")) {
    for (const name of ["fill", "stroke"]) {
      const variable = (one.getAttribute(name) || "").match(/^var\((--[a-z0-9-]+)\)$/);
      if (variable) one.setAttribute(name, lightColour(variable[1]));
    }
  }
  copy.prepend(report.svg("rect", { width: "100%", height: "100%", fill: "#ffffff" }));
  return `${new XMLSerializer().serializeToString(copy)}\n`;
};

// A spreadsheet treats a cell that begins with one of these characters as a formula (see `hybrid/scoring/rendering.py`).
const FORMULA = /^'*(?:[\s\u200b-\u200d\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b]| *[\t\r\n])/;
const neutral = (text) => (FORMULA.test(text) ? `'${text}` : text);
const csvCell = (value) => {
  if (value === undefined || value === null) return "";
  const text = typeof value === "string" ? neutral(value) : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

report.csvText = (rows) => `${[CSV, ...rows.map((row) => CSV.map((name) => row[name]))].map((row) => row.map(csvCell).join(",")).join("\n")}\n`;

report.saveFile = (name, blob) => {
  const link = report.el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  // A busy browser starts the download late, and needs the address until then.
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
};

function savePng(name, svg) {
  const picture = new Image();
  const canvas = document.createElement("canvas");
  picture.onload = () => {
    [canvas.width, canvas.height] = [PNG_SCALE * picture.naturalWidth, PNG_SCALE * picture.naturalHeight];
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => report.saveFile(name, blob), "image/png");
  };
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(report.sayable(report.svgText(svg)))}`;
}

/** Three buttons that save the chart of a figure; `rows` are its numbers. */
report.saveButtons = (stem, rows) => {
  const button = (text, save) => report.el("button", { type: "button", "aria-label": `Save the chart as ${text}`, text, on: { click: (event) => save(event.currentTarget.closest("figure").querySelector("svg")) } });
  return report.el("span", { class: "saving" }, report.el("span", { class: "wide-only", "aria-hidden": "true", text: "Save as " }),
    button("SVG", (svg) => report.saveFile(`${stem}.svg`, new Blob([report.svgText(svg)], { type: "image/svg+xml" }))),
    button("PNG", (svg) => savePng(`${stem}.png`, svg)),
    button("csv", () => report.saveFile(`${stem}.csv`, new Blob([report.csvText(rows)], { type: "text/csv" }))));
};
