"use strict";
/* The list of questions. Only visible rows have elements, so that a list of any length scrolls smoothly. */

const OVERSCAN = 12;
// The last state of each list: its active row and its scroll position.
const left = new Map();

report.listState = (key) => {
  if (!left.has(key)) left.set(key, { active: 0, scroll: 0 });
  return left.get(key);
};

/** A solver's cell: its visible columns, as a sign and as words. */
function solverCell(rows, solver, row) {
  const state = rows.state(solver, row);
  const shown = rows.list.solver_columns.filter((one) => one.width);
  const words = shown.filter((one) => one.width === "words").map((one) => rows.ofSolver(one.name, solver, row)).filter(Boolean).join(" ");
  return report.el(
    "span",
    { class: `cell answer is-${state}`, role: "cell" },
    report.swatch(rows.solvers[solver]),
    shown.filter((one) => one.width === "sign").map((one) => report.verdict(rows.ofSolver(one.name, solver, row))),
    words ? report.said(words.slice(0, 60), "bdi", "words") : report.el("span", { class: "words quiet", text: state === "none" ? rows.ofSolver("outcome", solver, row) : "" }),
  );
}

report.pages.list = async ({ bench, query }) => {
  let { rows, overview, counted, matching } = await report.found(bench, query);
  let shown = report.onlyFilters(query);
  const wide = rows.solvers.length > 4;

  const count = report.el("p", { class: "count", role: "status", "aria-live": "polite" });
  const chips = report.el("div", { class: "chips" });
  const body = report.el("div", { class: "rows", role: "rowgroup" });
  const columns = rows.list.columns.filter((one) => one.width);
  const heading = (kind, ...name) => report.el("span", { class: `cell ${kind}`, role: "columnheader" }, name);
  // A click sorts by a solver's verdict; a second one restores the order.
  const sorting = (name) => {
    const order = `worst/${name}`;
    const press = () => {
      const next = new URLSearchParams(shown);
      if (next.get("sort") === order) next.delete("sort");
      else next.set("sort", order);
      go(report.onlyFilters(next), false);
    };
    const made = heading("answer", report.el("button", { type: "button", class: "sort", title: "worst first", on: { click: press } }, report.solverName(name)));
    made.dataset.order = order;
    return made;
  };
  const head = report.el("div", { class: "row head", role: "row" }, heading("id", "Question"), columns.map((one) => heading(one.name, one.title)), rows.solvers.map(sorting));
  const table = report.el("div", { class: `list ${wide ? "many" : ""}`, role: "table", "aria-label": "Questions" }, report.el("div", { role: "rowgroup", class: "headgroup" }, head), body);
  table.style.setProperty("--solvers", String(rows.solvers.length));
  table.style.setProperty("--columns", columns.map((one) => one.width).join(" "));

  const go = (next, replace) => {
    const hash = report.links.list(bench, next);
    if (hash === location.hash) return;
    if (replace) {
      history.replaceState(null, "", hash);
      update(next);
    } else {
      location.hash = hash;
    }
  };
  const form = report.filterForm({ rows, overview, query: shown, go });
  const state = () => report.listState(`${bench}?${shown}`);

  // In narrow windows, and in wider ones with many solvers, rows have several lines (style.css).
  const rowHeight = () => (matchMedia(wide ? "(max-width: 1100px)" : "(max-width: 720px)").matches ? 96 : 44);
  const drawnRows = new Map();

  function makeRow(place) {
    const row = matching[place];
    const href = report.links.question(bench, rows.id(row), shown);
    const link = report.el("a", { class: "link", href, "data-place": String(place) }, report.said(rows.id(row), "bdi"));
    link.addEventListener("focus", () => { state().active = place; markActive(); });
    const made = report.el(
      "div",
      { class: rows.of("picture", row) ? "row pictured" : "row", role: "row", "aria-rowindex": String(place + 2) },
      report.el("span", { class: "cell id", role: "cell" }, link, rows.of("sampled", row) ? report.el("span", { class: "sampled", title: "on the error sheet" }, report.el("span", { "aria-hidden": "true", text: " ✎" }), report.el("span", { class: "unseen", text: " on the error sheet" })) : null),
      columns.map((one) => report.el("span", { class: `cell ${one.name}`, role: "cell" }, one.name === "words" && rows.of("picture", row) ? report.el("img", { class: "thumbnail", src: rows.of("picture", row), alt: "", loading: "lazy", decoding: "async" }) : null, report.said(String(rows.shown(one.name, row)).slice(0, 240), "bdi"))),
      rows.solvers.map((_, solver) => solverCell(rows, solver, row)),
    );
    made.style.transform = `translateY(${place * rowHeight()}px)`;
    return made;
  }

  function markActive() {
    for (const [place, made] of drawnRows) made.classList.toggle("active", place === state().active);
  }

  function draw() {
    if (!table.isConnected) return;
    const height = rowHeight();
    const top = body.getBoundingClientRect().top;
    const from = Math.max(0, Math.floor(-top / height) - OVERSCAN);
    const to = Math.min(matching.length, Math.ceil((innerHeight - top) / height) + OVERSCAN);
    for (const [place, made] of drawnRows) {
      // Keep the row that has the focus; otherwise the focus would be lost.
      if ((place < from || place >= to) && !made.contains(document.activeElement)) {
        made.remove();
        drawnRows.delete(place);
      }
    }
    for (let place = from; place < to; place += 1) {
      if (drawnRows.has(place)) continue;
      const made = makeRow(place);
      drawnRows.set(place, made);
      // Insert rows in order, so that Tab moves down the list.
      let next = null;
      for (const other of body.children) if (Number(other.getAttribute("aria-rowindex")) > place + 2) { next = other; break; }
      body.insertBefore(made, next);
    }
    markActive();
  }

  function redraw() {
    for (const made of drawnRows.values()) made.remove();
    drawnRows.clear();
    body.style.height = `${matching.length * rowHeight()}px`;
    table.setAttribute("aria-rowcount", String(matching.length + 1));
    const all = rows.n.toLocaleString("en");
    count.textContent = matching.length === rows.n ? report.plural(rows.n, "question") : `${matching.length.toLocaleString("en")} of ${report.plural(rows.n, "question")}`;
    count.dataset.count = String(matching.length);
    count.dataset.all = all;
    for (const made of head.querySelectorAll("[data-order]")) made.setAttribute("aria-sort", made.dataset.order === shown.get("sort") ? "descending" : "none");
    const name = report.countName(counted);
    const clear = (label, next) => report.el("button", { type: "button", class: "chip", on: { click: () => { go(next, false); } } }, label, report.el("span", { "aria-hidden": "true", text: " ✕" }));
    const without = new URLSearchParams(shown);
    without.delete("cell");
    const order = new URLSearchParams([...shown].filter(([key]) => key === "sort"));
    chips.replaceChildren(...[
      name ? clear(report.said(name, "bdi"), without) : null,
      shown.toString() !== order.toString() ? clear("Clear all filters", order) : null,
    ].filter(Boolean));
    draw();
  }

  /** Applies other filters within the same page, so that the form keeps its focus. */
  async function update(next) {
    const asked = report.onlyFilters(next);
    const found = await report.found(bench, asked);
    shown = asked;
    ({ rows, overview, counted, matching } = found);
    state().active = Math.min(state().active, Math.max(0, matching.length - 1));
    redraw();
  }

  let waiting = false;
  const onScroll = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      if (table.isConnected) state().scroll = scrollY;
      draw();
    });
  };
  addEventListener("scroll", onScroll, { passive: true });
  let narrow = rowHeight();
  const onResize = () => {
    if (narrow !== rowHeight()) { narrow = rowHeight(); redraw(); } else onScroll();
  };
  addEventListener("resize", onResize);

  function moveTo(place) {
    const to = Math.min(Math.max(0, place), matching.length - 1);
    if (to < 0) return;
    state().active = to;
    const height = rowHeight();
    const top = body.getBoundingClientRect().top + to * height;
    const under = head.getBoundingClientRect().height;
    if (top < under) scrollBy({ top: top - under, behavior: "instant" });
    else if (top + height > innerHeight) scrollBy({ top: top + height - innerHeight + 8, behavior: "instant" });
    draw();
    const link = body.querySelector(`a[data-place="${to}"]`);
    if (link) link.focus({ preventScroll: true });
  }

  return {
    title: "Questions",
    node: report.el(
      "div",
      { class: "page wide-page" },
      report.el("h1", { tabindex: "-1", class: "unseen", text: "Questions" }),
      report.el("details", { class: "filter-box", open: !matchMedia("(max-width: 720px)").matches || Boolean(shown.toString()) }, report.el("summary", { text: "Filters" }), form),
      report.el("div", { class: "above" }, count, chips),
      table,
    ),
    shown: () => {
      redraw();
      const { scroll } = state();
      if (scroll) scrollTo({ top: scroll, behavior: "instant" });
      draw();
    },
    /** Whether a new address can be shown without rebuilding the page. */
    follow: async (route) => {
      if (route.view !== "list" || route.bench !== bench) return false;
      // Update the form if something else changed the address.
      const next = report.onlyFilters(route.query);
      const fresh = report.filterForm({ rows, overview, query: next, go });
      const focused = form.isConnected && form.contains(document.activeElement);
      for (const [place, control] of [...form.elements].entries()) {
        const other = fresh.elements[place];
        if (control.type === "checkbox") control.checked = other.checked;
        else {
          if (control.tagName === "SELECT" && ![...control.options].some((one) => one.value === other.value)) control.replaceChildren(...other.options);
          control.value = other.value;
        }
      }
      await update(next);
      if (!focused) scrollTo({ top: state().scroll, behavior: "instant" });
      return true;
    },
    leave: () => {
      removeEventListener("scroll", onScroll);
      removeEventListener("resize", onResize);
    },
    keys: {
      down: () => moveTo(document.activeElement && document.activeElement.dataset.place !== undefined ? state().active + 1 : state().active),
      up: () => moveTo(state().active - 1),
      open: () => { if (matching.length) location.hash = report.links.question(bench, rows.id(matching[state().active]), shown); },
      back: () => { location.hash = report.links.overview(bench); },
    },
  };
};
