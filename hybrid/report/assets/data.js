"use strict";
/* Reads data/*.js, each once. A page from disk may not fetch, so every file is a script that calls `report.take`. */

const taken = new Map();
const loads = new Map();

// Only this report's data files may become scripts; the content policy refuses all others.
const addresses = window.trustedTypes
  ? trustedTypes.createPolicy("report-data", { createScriptURL: (url) => checkedAddress(url) })
  : { createScriptURL: (url) => checkedAddress(url) };

function checkedAddress(url) {
  if (!/^data\/[A-Za-z0-9_.-]+(\/[A-Za-z0-9_.-]+)*\.js\?v=[0-9a-f]+$/.test(url) || url.includes("..")) {
    throw new TypeError(`not a data file: ${url}`);
  }
  return url;
}

report.take = (name, version, text) => {
  taken.set(name, { version, text });
  if (name === "site") {
    report.site = JSON.parse(text);
    report.version = version;
  }
};

/** Handles a report that was rewritten while its pages are open. */
report.Rewritten = class extends Error {};

function readScript(name, version) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = addresses.createScriptURL(`data/${name}.js?v=${version}`);
    const done = () => {
      script.remove();
      const found = taken.get(name);
      taken.delete(name);
      if (!found) reject(new Error(`data/${name}.js cannot be read`));
      else if (found.version !== version) reject(new report.Rewritten(`data/${name}.js is newer than the pages`));
      else resolve(found.text);
    };
    script.onload = done;
    script.onerror = done;
    document.head.append(script);
  });
}

/** The values of a data file. To find the file of a question, use `report.question`. */
report.load = (name) => {
  if (!loads.has(name)) {
    const read = readScript(name, report.version).then((text) => JSON.parse(text));
    // A file that failed to load may exist at the next try.
    read.catch(() => loads.delete(name));
    loads.set(name, read);
  }
  return loads.get(name);
};

/** Reads everything again, at a version of the report. */
report.reload = async (version) => {
  report.site = JSON.parse(await readScript("site", version));
  report.version = version;
  loads.clear();
};

/** The page of the question in row `place`. */
report.question = async (key, list, place) => {
  let number = list.starts.length - 1;
  while (list.starts[number] > place) number -= 1;
  const found = await report.load(`${key}/questions/${number}`);
  return found[place - list.starts[number]];
};
