"use strict";
/* Keyboard shortcuts. A page defines `keys` (down, up, open, back); all other keys work everywhere. */

const KEYS = [
  ["j, ↓ or →", "next question"],
  ["k, ↑ or ←", "previous question"],
  ["Enter", "open the question"],
  ["/", "search"],
  ["[ and ]", "previous and next benchmark"],
  ["Esc", "back: from a question to its list, from a list to the overview"],
  ["?", "this list of keys"],
];

report.showKeys = () =>
  report.dialog("keys", "Keys", report.el("dl", {}, KEYS.map(([key, what]) => report.el("div", {}, report.el("dt", {}, report.el("kbd", { text: key })), report.el("dd", { text: what })))));

const takesLetters = (node) => node && (node.matches("select, textarea, [contenteditable]") || (node.matches("input") && !["checkbox", "button", "file"].includes(node.type)));
const scrollsItself = (node) => node && node.closest('[role="region"], details.fold[open]');

report.listenToKeys = (page) => {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (document.querySelector("dialog[open]")) return;
    const { activeElement } = document;
    if (takesLetters(activeElement)) {
      if (event.key === "Escape") activeElement.blur();
      return;
    }
    const keys = page().keys || {};
    const route = report.route(location.hash);
    const run = {
      j: keys.down, k: keys.up, Escape: keys.back, "?": report.showKeys,
      "/": () => report.search(route), "[": () => report.otherTab(route, -1), "]": () => report.otherTab(route, 1),
      // Down and up move in a list; left and right move between questions, where up and down scroll.
      ...(route.view === "question" ? { ArrowRight: keys.down, ArrowLeft: keys.up } : { ArrowDown: keys.down, ArrowUp: keys.up }),
      ...(activeElement && activeElement.matches("a, button, summary") ? {} : { Enter: keys.open }),
    }[event.key];
    if (!run || (event.key.startsWith("Arrow") && scrollsItself(activeElement))) return;
    event.preventDefault();
    run();
  });
};

report.search = (route) => {
  const focus = () => {
    const field = document.getElementById("search");
    if (!field) return;
    const box = field.closest("details");
    if (box) box.open = true;
    field.focus();
    field.select();
  };
  if (route.view === "list") focus();
  else {
    report.afterRender = focus;
    location.hash = report.links.list(route.bench, report.onlyFilters(route.query));
  }
};

report.otherTab = (route, by) => {
  const keys = report.site.benchmarks.map((one) => one.key);
  const other = keys[(keys.indexOf(route.bench) + by + keys.length) % keys.length];
  if (other !== undefined) location.hash = { list: report.links.list(other), errors: report.links.errors(other) }[route.view] || report.links.overview(other);
};
