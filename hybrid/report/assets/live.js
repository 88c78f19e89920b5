"use strict";
/* Pages of a run in progress: they poll their server for new data and show it without losing their scroll position. */

const POLL_MS = 2000;

const notice = (...children) => document.getElementById("notice").replaceChildren(...children);

report.watch = (refresh) => {
  if (!report.site.live || location.protocol === "file:") return;
  const look = async () => {
    try {
      const found = await (await fetch("live.json", { cache: "no-store" })).json();
      if (found.version !== report.version) {
        const before = report.site.answers;
        await report.reload(found.version);
        const fresh = report.site.answers - before;
        const asked = await refresh();
        const words = fresh > 0 ? report.count(fresh, "new answer", "new answers") : "The report was rewritten";
        notice(report.el("div", { class: "toast" }, report.el("span", { id: "live-news", text: words }), asked ? report.el("button", { type: "button", text: "Show", on: { click: () => { notice(); asked(); } } }) : null));
      }
    } catch (error) {
      // Between two versions a file may be missing for a moment, and a server may have been stopped.
      console.debug("live.json:", error.message);
    }
    setTimeout(look, POLL_MS);
  };
  setTimeout(look, POLL_MS);
};
