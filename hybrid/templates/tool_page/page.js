"use strict";
// The page of one tool: fields from its schema, pictures by number, and its output.

const POLL_MS = 1000;
const byId = (id) => document.getElementById(id);

const element = (name, props = {}, ...children) => {
  const node = Object.assign(document.createElement(name), props);
  node.append(...children);
  return node;
};

let tool = {};
// Numbers of the pictures, in the order in which the tool gets them.
let photos = [];
let described = "";
let last = 0;

async function post(path, type, body) {
  const response = await fetch(path, { method: "POST", headers: { "Content-Type": type }, body });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${response.statusText}`);
  return response.json();
}

/** The notation of a field: direct input if a form can take it, else JSON. */
function input(name, node) {
  if (node.enum) return element("select", { name }, element("option", { value: "", textContent: "(not set)" }), ...node.enum.map((value) => element("option", { value: JSON.stringify(value), textContent: String(value) })));
  if (node.type === "number" || node.type === "integer") return element("input", { name, type: "number", step: "any" });
  if (node.type === "string") return element("input", { name, type: "text" });
  if (node.type === "boolean") return element("select", { name }, ...["", "true", "false"].map((value) => element("option", { value, textContent: value || "(not set)" })));
  return element("textarea", { name, rows: 3, placeholder: "JSON" });
}

/** The arguments that are set. Throws where one is not JSON. */
function values() {
  const set = {};
  for (const [name, node] of Object.entries(tool.schema.properties)) {
    const text = document.forms[0].elements[name].value.trim();
    if (!text) continue;
    if (node.type === "string" && !node.enum) set[name] = text;
    else {
      try { set[name] = JSON.parse(text); } catch (error) { throw new Error(`${name}: not JSON (${error.message})`); }
    }
  }
  return set;
}

function drawFields() {
  const before = Object.fromEntries([...byId("fields").querySelectorAll("[name]")].map((field) => [field.name, field.value]));
  byId("fields").replaceChildren(...Object.entries(tool.schema.properties).map(([name, node]) => {
    const field = input(name, node);
    field.id = `field-${name}`;
    field.value = before[name] || "";
    const required = tool.schema.required && tool.schema.required.includes(name) ? " (required)" : "";
    return element("div", { className: "field" }, element("label", { htmlFor: field.id, textContent: name + required }), field, element("span", { className: "quiet", textContent: node.description || "" }));
  }));
}

function drawPhotos() {
  byId("photos").replaceChildren(...photos.map((number, place) => {
    const image = element("img", { src: `photos/${number}`, alt: `picture ${place + 1}` });
    // Arguments are in pixels of the picture, not of the page.
    image.addEventListener("click", (event) => {
      const x = Math.floor(event.offsetX * image.naturalWidth / image.clientWidth);
      const y = Math.floor(event.offsetY * image.naturalHeight / image.clientHeight);
      byId("place").textContent = `picture ${place + 1}: {"x": ${x}, "y": ${y}} of ${image.naturalWidth} x ${image.naturalHeight} pixels`;
    });
    const remove = element("button", { type: "button", textContent: "Remove" });
    remove.addEventListener("click", () => { photos.splice(place, 1); drawPhotos(); });
    return element("figure", {}, image, remove);
  }));
}

async function add(files) {
  try {
    for (const file of files) {
      photos.push((await post("photos", "application/octet-stream", file)).number);
      // Too many pictures for the tool: remove the oldest.
      if (tool.images) photos = photos.slice(-tool.images[1]);
    }
  } catch (error) { byId("state").textContent = error.message; }
  drawPhotos();
  if (tool.images && photos.length >= tool.images[0]) run();
}

function drawAnswer(answer) {
  if (answer.error) {
    byId("answer").replaceChildren(element("p", { className: "error", textContent: answer.error }));
  } else {
    byId("answer").replaceChildren(
      element("p", { className: "text", textContent: answer.text }),
      element("p", { className: "quiet", textContent: `confidence ${answer.confidence.toFixed(2)}, ${answer.backend} backend, version ${answer.version}, ${answer.seconds.toFixed(2)} s` }),
      ...answer.notes.map((note) => element("p", { className: "quiet", textContent: `note: ${note}` })),
      ...answer.pictures.map((png, place) => element("img", { src: `data:image/png;base64,${png}`, alt: `picture of the tool ${place + 1}` })),
      element("h2", { textContent: "Data" }), element("pre", { textContent: JSON.stringify(answer.data, null, 2) }));
  }
  if (answer.same) byId("answer").append(element("h2", { textContent: "The same call" }), ...Object.entries(answer.same).flatMap(([name, text]) => [element("h3", { textContent: name }), element("pre", { textContent: text })]));
}

async function run() {
  const mine = (last += 1);
  byId("state").textContent = "running ...";
  let answer;
  try { answer = await post("call", "application/json", JSON.stringify({ photos, args: values() })); }
  catch (error) { answer = { error: error.message }; }
  // A later call has started.
  if (mine !== last) return;
  byId("state").textContent = "";
  drawAnswer(answer);
}

/** Read the tool; if its files have changed, draw the form and run the tool again. */
async function look() {
  try {
    const text = await (await fetch("tool.json")).text();
    if (text !== described) {
      const first = !described;
      described = text;
      const now = JSON.parse(text);
      if (now.error) drawAnswer(now);
      else {
        tool = now;
        document.title = `Try ${tool.name}`;
        document.querySelector("h1").textContent = tool.name;
        byId("summary").textContent = tool.summary;
        byId("limits").textContent = `Limits: ${tool.limits}`;
        drawFields();
        if (first) { photos = tool.photos.map((_, number) => number).slice(0, tool.images[1]); drawPhotos(); }
        if (photos.length >= tool.images[0]) run();
      }
    }
  } catch (error) { byId("state").textContent = "the server of this page has ended"; }
  setTimeout(look, POLL_MS);
}

document.forms[0].addEventListener("submit", (event) => { event.preventDefault(); run(); });
document.querySelector("input[type=file]").addEventListener("change", (event) => { add([...event.target.files]); event.target.value = ""; });
for (const name of ["dragover", "dragleave", "drop"]) document.addEventListener(name, (event) => {
  event.preventDefault();
  byId("drop").classList.toggle("over", name === "dragover");
  if (name === "drop") add([...event.dataTransfer.files]);
});
look();
