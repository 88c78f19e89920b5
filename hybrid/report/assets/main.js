"use strict";
/* Draws the frame, and inside it the page that the address names. */

let current = { keys: {} };
let turn = 0;

const THEMES = { auto: "auto", light: "light", dark: "dark" };

function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function themeSwitch() {
  const select = report.el("select", { "aria-label": "Colours", class: "theme" }, Object.entries(THEMES).map(([value, text]) => report.el("option", { value, text })));
  const kept = report.kept.get("hybrid-report:theme");
  select.value = Object.hasOwn(THEMES, kept || "") ? kept : "auto";
  setTheme(select.value);
  select.addEventListener("change", () => {
    setTheme(select.value);
    report.kept.set("hybrid-report:theme", select.value);
  });
  return select;
}

function drawFrame() {
  document.getElementById("top").replaceChildren(
    report.el("p", { class: "brand" }, report.said(report.site.title, "bdi")),
    report.el("nav", { class: "views", "aria-label": "Views" }),
    report.el("div", { class: "tools" }, report.el("button", { type: "button", "aria-haspopup": "dialog", text: "What was run", on: { click: () => report.showRun(report.route(location.hash).bench) } }), report.el("button", { type: "button", class: "keys-button", "aria-label": "Keys", title: "Keys (?)", text: "?", on: { click: report.showKeys } }), themeSwitch()),
    ...(report.site.benchmarks.length > 1 ? [report.el("nav", { class: "tabs", "aria-label": "Benchmarks" })] : []),
  );
}

function markFrame(route) {
  const bench = report.site.benchmarks.find((one) => one.key === route.bench);
  const tab = (one) => report.el("a", { href: report.links.overview(one.key), "aria-current": one.key === route.bench ? "true" : null }, report.said(one.title, "bdi"));
  const tabs = document.querySelector(".tabs");
  if (tabs) tabs.replaceChildren(...report.site.benchmarks.map(tab));
  const view = (name, text, href, count) => report.el("a", { href, "aria-current": route.view === name ? "page" : null }, text, count === null ? null : report.el("span", { class: "n", text: ` ${count.toLocaleString("en")}` }));
  document.querySelector(".views").replaceChildren(...(bench ? [
    view("overview", "Overview", report.links.overview(bench.key), null),
    view("list", "Questions", report.links.list(bench.key), bench.questions),
    view("errors", "Error sheet", report.links.errors(bench.key), bench.sampled || null),
  ] : []));
  const chosen = document.querySelector('.tabs [aria-current="true"]');
  // With many tabs on a phone, scroll the chosen tab into view, but not the page.
  if (chosen) chosen.parentElement.scrollLeft = chosen.offsetLeft - 24;
}

const failure = (error) => ({
  title: "Cannot be shown",
  node: report.el("div", { class: "page" }, report.el("h1", { tabindex: "-1", text: "This page cannot be shown" }), report.el("p", { text: error.message }), report.el("p", { class: "quiet", text: "Check that all files of the report are still in their places." })),
});

async function page(route) {
  if (!route.bench) return { title: "Empty", node: report.el("div", { class: "page" }, report.el("h1", { tabindex: "-1", text: "Nothing to show" }), report.el("p", { text: "This report has no benchmark." })) };
  return report.pages[route.view](route);
}

async function show({ first = false, stay = false } = {}) {
  const mine = (turn += 1);
  const route = report.route(location.hash);
  if (!stay && current.follow && (await current.follow(route))) {
    document.getElementById("main").dataset.hash = location.hash;
    return;
  }
  let made;
  try {
    made = await page(route);
  } catch (error) {
    if (error instanceof report.Rewritten) {
      location.reload();
      return;
    }
    made = failure(error);
  }
  // The user opened another page while the data were read.
  if (mine !== turn) {
    if (made.leave) made.leave();
    return;
  }
  if (current.leave) current.leave();
  current = made;
  const place = scrollY;
  markFrame(route);
  document.title = made.title === report.site.title ? report.site.heading : `${made.title} · ${report.site.title}`;
  const main = document.getElementById("main");
  main.replaceChildren(made.node);
  main.dataset.view = route.view;
  main.dataset.hash = location.hash;
  if (stay) scrollTo({ top: place, behavior: "instant" });
  else settle(route, made, first);
  if (stay && made.shown) made.shown();
  // Two frames later the charts are drawn: profiles of browsers show the mark.
  if (first) requestAnimationFrame(() => requestAnimationFrame(() => performance.mark("drawn")));
}

/** Sets the scroll position and the keyboard focus of a new page. */
function settle(route, made, first) {
  scrollTo({ top: 0, behavior: "instant" });
  const heading = made.node.querySelector("h1");
  if (!first && heading) heading.focus({ preventScroll: true });
  if (made.shown) made.shown();
  const section = route.view === "overview" && route.id ? document.getElementById(`s-${route.id}`) : null;
  if (section) {
    section.open = true;
    const show = (frames) => {
      section.scrollIntoView({ behavior: "instant" });
      if (frames) requestAnimationFrame(() => show(frames - 1));
    };
    // The charts above have no height until they know their width, some frames later.
    show(3);
    if (!first) section.querySelector("summary").focus({ preventScroll: true });
  }
  if (report.afterRender) report.afterRender();
  report.afterRender = null;
}

/** Shows new data at once, unless a question is open; then the returned function shows them. */
async function refresh() {
  const route = report.route(location.hash);
  report.tags.start();
  markFrame(route);
  const reading = route.view === "question" || route.view === "errors" || document.querySelector("dialog[open]");
  if (reading) return () => show({ stay: true });
  const focused = document.activeElement && document.activeElement.id;
  const { selectionStart } = document.activeElement || {};
  // Remember which parts are folded or open.
  const folds = () => [...document.querySelectorAll(".filter-box, .section")];
  const open = folds().map((one) => one.open);
  await show({ stay: true });
  folds().forEach((one, place) => { one.open = open[place] ?? one.open; });
  if (focused && document.getElementById(focused)) {
    document.getElementById(focused).focus({ preventScroll: true });
    if (focused === "search") document.getElementById(focused).setSelectionRange(selectionStart, selectionStart);
  }
  return null;
}

// The browser cannot restore scroll positions itself, because pages are drawn later.
history.scrollRestoration = "manual";

if (report.site) {
  report.tags.start();
  drawFrame();
  report.listenToKeys(() => current);
  addEventListener("hashchange", () => show());
  show({ first: true });
  report.watch(refresh);
} else {
  document.getElementById("main").replaceChildren(report.el("p", { text: "data/site.js cannot be read: check that all files of the report are still in their places." }));
}
