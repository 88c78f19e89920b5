"use strict";
/* A person's notes about errors: a tag and a text for each error of a solver. The browser stores them if it can;
   `hybrid report --tags` reads the file that the person saves. */

const FORMAT = 1;

report.tags = {
  found: new Map(),
  edits: new Map(),
  keptByBrowser: true,
  listeners: new Set(),

  key: (benchmark, question, solver) => JSON.stringify([benchmark, question, solver]),

  /** The tags in the report, then those that were added in this browser, on this page or earlier. */
  start() {
    const here = [...this.edits.values()];
    this.found.clear();
    for (const one of report.site.tags) this.found.set(this.key(one.benchmark, one.question, one.solver), one);
    this.edits.clear();
    try {
      for (const one of JSON.parse(report.kept.get(this.place()) || "[]")) this.put(one, false);
    } catch {
      // Tags stored by another version are not readable; new ones replace them.
    }
    // A browser without storage must not lose the tags when the report is rewritten.
    for (const one of here) this.put(one, false);
    this.keptByBrowser = report.kept.set(`${this.place()}:probe`, "1");
  },

  place: () => `hybrid-report:${report.site.id}:tags`,

  get(benchmark, question, solver) {
    return this.found.get(this.key(benchmark, question, solver)) || { benchmark, question, solver, tag: "", note: "" };
  },

  put(one, keep = true) {
    const key = this.key(one.benchmark, one.question, one.solver);
    const { benchmark, question, solver, tag, note } = one;
    const value = { benchmark, question, solver, tag, note };
    if (tag || note) this.found.set(key, value);
    else this.found.delete(key);
    this.edits.set(key, value);
    if (keep) this.keep();
  },

  keep() {
    this.keptByBrowser = report.kept.set(this.place(), JSON.stringify([...this.edits.values()]));
    for (const listener of this.listeners) listener();
  },

  all() {
    return [...this.found.values()];
  },

  /** Tags in use, the most used first. */
  words() {
    const counts = new Map();
    for (const one of this.all()) if (one.tag) counts.set(one.tag, (counts.get(one.tag) || 0) + 1);
    return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  },

  /** The text of the file that is saved. */
  text() {
    return `${JSON.stringify({ format: FORMAT, tags: this.all() }, null, 1)}\n`;
  },

  /** Reads a saved file and returns its number of tags. Throws an Error for an invalid file, and then reads nothing. */
  read(text) {
    let values;
    try {
      values = JSON.parse(text);
    } catch {
      throw new Error("this is not JSON");
    }
    if (values === null || values.format !== FORMAT || !Array.isArray(values.tags)) throw new Error(`expected {"format": ${FORMAT}, "tags": [...]}`);
    values.tags.forEach((one, place) => {
      for (const name of ["benchmark", "question", "solver", "tag"]) {
        if (one === null || typeof one[name] !== "string") throw new Error(`tag ${place + 1} has no ${name}`);
      }
      if (one.note !== undefined && typeof one.note !== "string") throw new Error(`the note of tag ${place + 1} is not text`);
    });
    for (const one of values.tags) this.put({ ...one, note: one.note || "" }, false);
    this.keep();
    return values.tags.length;
  },
};

/** The one list of suggestions that all tag fields share. */
report.tagWords = () => {
  let list = document.getElementById("tag-words");
  if (!list) {
    list = report.el("datalist", { id: "tag-words" });
    document.body.append(list);
  }
  list.replaceChildren(...report.tags.words().map(([word]) => report.el("option", { value: report.visible(word) })));
};

/** Fields for the tag and the note of a solver's error. */
report.tagFields = (benchmark, question, solver) => {
  const now = report.tags.get(benchmark, question, solver);
  const of = report.visible(`${solver}, ${question}`);
  const tag = report.el("input", { type: "text", class: "tag", list: "tag-words", value: now.tag, placeholder: "tag", "aria-label": `Tag: ${of}`, autocomplete: "off", dir: "auto" });
  const note = report.el("input", { type: "text", class: "note-field", value: now.note, placeholder: "note", "aria-label": `Note: ${of}`, autocomplete: "off", dir: "auto" });
  const put = () => {
    report.tags.put({ benchmark, question, solver, tag: tag.value.trim(), note: note.value.trim() });
    report.tagWords();
  };
  tag.addEventListener("change", put);
  note.addEventListener("change", put);
  report.tagWords();
  return report.el("div", { class: "tagging" }, tag, note);
};
