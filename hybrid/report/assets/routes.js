"use strict";
/* Links within the report. All of a page's state is in the address, so that it can be shared and revisited.

   #/BENCH                    overview          #/BENCH/s/SECTION     a section of it
   #/BENCH/list?FILTERS       the list          #/BENCH/q/ID?FILTERS  a question among those that the same filters keep
   #/BENCH/errors             the error sheet */

// An address cannot contain half of a surrogate pair; the lookup of an id makes the same replacement.
report.sayable = (text) => (text.toWellFormed ? text.toWellFormed() : text.replace(/[\ud800-\udfff]/gu, "\ufffd"));
const escaped = (text) => encodeURIComponent(report.sayable(text));

const withQuery = (path, query) => {
  const words = query ? query.toString() : "";
  return words ? `${path}?${words}` : path;
};

report.links = {
  overview: (bench) => `#/${escaped(bench)}`,
  section: (bench, id) => `#/${escaped(bench)}/s/${escaped(id)}`,
  list: (bench, query) => withQuery(`#/${escaped(bench)}/list`, query),
  question: (bench, id, query) => withQuery(`#/${escaped(bench)}/q/${escaped(id)}`, query),
  errors: (bench) => `#/${escaped(bench)}/errors`,
};

const unescaped = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/** Parses an address to { bench, view, id, query }. An unknown address leads to the first overview. */
report.route = (hash) => {
  const at = hash.indexOf("?");
  const path = (at < 0 ? hash : hash.slice(0, at)).replace(/^#\/?/, "");
  const [bench = "", view = "", ...rest] = path.split("/").map(unescaped);
  const known = report.site.benchmarks.some((one) => one.key === bench);
  const first = report.site.benchmarks.length ? report.site.benchmarks[0].key : null;
  const views = { "": "overview", s: "overview", list: "list", q: "question", errors: "errors" };
  return {
    bench: known ? bench : first,
    unknown: !known && bench !== "" ? bench : null,
    view: (known && Object.hasOwn(views, view) && views[view]) || "overview",
    id: known ? rest.join("/") : "",
    query: new URLSearchParams(at < 0 ? "" : hash.slice(at + 1)),
  };
};
