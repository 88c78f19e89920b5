"use strict";
/* Creates elements and texts. Every text of a model or of data becomes a text node here; none is parsed as markup. */

// One namespace for all files, because browsers load no modules from disk.
window.report = {};

/** An element. `props` holds `class`, `text`, `on` (listeners) and attributes; false and null omit an attribute. */
report.el = (tag, props = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") made.textContent = value;
    else if (name === "class") made.className = value;
    else if (name === "on") for (const [event, run] of Object.entries(value)) made.addEventListener(event, run);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
};

/** Replaces control characters by visible symbols (from U+2400 on); line ends and tabs stay. */
report.visible = (text) =>
  String(text)
    .replace(/\r\n?/g, "\n")
    .replace(/[\u0000-\u0008\u000b-\u001f]/g, (char) => String.fromCharCode(0x2400 + char.charCodeAt(0)))
    .replace(/\u007f/g, "\u2421");

/** A text from models or data: its writing direction is isolated, and it may break anywhere. */
report.said = (text, tag = "span", kind = "") =>
  report.el(tag, { class: `said ${kind}`.trim(), dir: "auto", text: report.visible(text) });

const SHORT_CHARS = 1500;
const SHORT_LINES = 30;
const HEAD_CHARS = 700;

const PIECE_CHARS = 2000;

/** A text in pieces that a browser lays out only when visible, because a word of a million letters would block it. */
function inPieces(text) {
  const pieces = [];
  for (let from = 0; from < text.length; ) {
    const line = text.lastIndexOf("\n", from + PIECE_CHARS);
    let to = line > from ? line + 1 : from + PIECE_CHARS;
    // Do not split a surrogate pair.
    if (/[\ud800-\udbff]/.test(text.charAt(to - 1))) to += 1;
    pieces.push(report.el("div", { class: "piece", text: text.slice(from, to) }));
    from = to;
  }
  return pieces;
}

/** Text of any length. A long text is shown with its beginning and its length; on demand, a scrollable box shows all of
 * it. */
report.longText = (text, name) => {
  const whole = String(text);
  // Stop counting early, because the text may have a million lines.
  let lines = 0;
  for (let at = whole.indexOf("\n"); at >= 0 && lines <= SHORT_LINES; at = whole.indexOf("\n", at + 1)) lines += 1;
  if (whole.length <= SHORT_CHARS && lines <= SHORT_LINES) return report.said(whole, "div", "prose");
  const head = whole.slice(0, HEAD_CHARS).split("\n").slice(0, SHORT_LINES / 2).join("\n");
  const body = report.said(`${head} …`, "div", "prose");
  const button = report.el("button", { type: "button", class: "more", "aria-expanded": "false" });
  const count = whole.length.toLocaleString("en");
  const label = () => {
    button.textContent =
      button.getAttribute("aria-expanded") === "true" ? "Show the beginning" : `Show all ${count} characters`;
  };
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(open));
    if (open) body.replaceChildren(...inPieces(report.visible(whole)));
    else body.textContent = report.visible(`${head} …`);
    body.classList.toggle("boxed", open);
    if (open) {
      // A box that scrolls must be reachable by keyboard, so it needs a name.
      body.tabIndex = 0;
      body.setAttribute("role", "region");
      body.setAttribute("aria-label", name);
    } else {
      for (const attribute of ["tabindex", "role", "aria-label"]) body.removeAttribute(attribute);
    }
    label();
  });
  label();
  return report.el("div", { class: "long" }, body, button);
};

/** Content that is folded away under a heading. */
report.fold = (summary, make, kind = "") => {
  const details = report.el("details", { class: `fold ${kind}`.trim() }, report.el("summary", { text: summary }));
  // Built when first opened, because most are never opened.
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(make());
  });
  return details;
};

/** A dialog over the page, with a heading; closing it removes it. */
report.dialog = (kind, title, ...children) => {
  const dialog = report.el("dialog", { class: kind, "aria-labelledby": "dialog-title" },
    report.el("form", { method: "dialog" }, report.el("button", { class: "close", text: "Close" })),
    report.el("h2", { id: "dialog-title", text: title }), children);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);
  dialog.showModal();
};

report.count = (number, one, many) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
report.plural = (number, word) => report.count(number, word, `${word}s`);

report.seconds = (value) => (value < 60 ? `${value.toFixed(value < 10 ? 2 : 1)} s` : `${(value / 60).toFixed(1)} min`);

/** Copies a text to the clipboard, if the browser allows this for pages from disk; the button shows whether it worked.
 * */
report.copyButton = (text) => {
  const button = report.el("button", { type: "button", class: "copy", text: "Copy" });
  const tell = (word) => {
    button.textContent = word;
    button.addEventListener("blur", () => { button.textContent = "Copy"; }, { once: true });
  };
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      tell("Copied");
    } catch {
      const code = button.parentElement.querySelector("code");
      getSelection().selectAllChildren(code);
      tell(document.execCommand("copy") ? "Copied" : "Selected");
    }
  });
  return button;
};

/** A shell command, with a button that copies it. */
report.command = (text) =>
  report.el("div", { class: "command" }, report.el("code", { text, dir: "ltr" }), report.copyButton(text));

/** The browser's storage for this report; a browser may refuse it, especially for pages from disk. */
report.kept = {
  get(name) {
    try {
      return localStorage.getItem(name);
    } catch {
      return null;
    }
  },
  /** Stores a value; returns whether that worked. */
  set(name, value) {
    try {
      localStorage.setItem(name, value);
      return true;
    } catch {
      return false;
    }
  },
};
