"use strict";
/* Images, each with the name that the model uses for it; a click enlarges them; a slider blends an overlay with its
   image. */

const sizeOf = (picture) => `${picture.width} × ${picture.height} px`;

function image(picture) {
  const made = report.el("img", {
    src: picture.file, alt: report.visible(picture.caption || picture.name), width: picture.width, height: picture.height, loading: "lazy", decoding: "async",
  });
  // Most browsers cannot show formats such as TIFF.
  made.addEventListener("error", () => {
    made.replaceWith(report.el("span", { class: "no-image", text: "This browser cannot show the file." }));
  }, { once: true });
  return made;
}

function enlarge(picture) {
  const dialog = report.el(
    "dialog",
    { class: "enlarged", "aria-label": report.visible(picture.caption || picture.name) },
    report.el("form", { method: "dialog" }, report.el("button", { class: "close", text: "Close" })),
    image(picture),
    report.el("p", { class: "caption" }, report.said(picture.name, "span", "mono"), " ", report.said(picture.caption), ` ${sizeOf(picture)}`),
  );
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => { if (event.target === dialog || event.target.tagName === "IMG") dialog.close(); });
  document.body.append(dialog);
  dialog.showModal();
}

/** Boxes and points over a picture, in its pixels. */
function drawnMarks(picture) {
  if (!picture.marks || !picture.marks.length) return null;
  const { width, height } = picture;
  const radius = Math.max(width, height) / 60;
  const shape = ({ place: [x0, y0, x1, y1] }) => (x1 === undefined
    ? report.svg("circle", { cx: x0, cy: y0, r: radius })
    : report.svg("rect", { x: x0, y: y0, width: x1 - x0, height: y1 - y0 }));
  const groups = picture.marks.map((mark) => report.svg("g", { class: `mark is-${mark.kind}` }, report.svg("title", {}, report.visible(mark.label)), shape(mark)));
  return report.svg("svg", { class: "marks", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, groups);
}

/** An image with its caption; `under` is the image that it is drawn over, if that is known. */
report.picture = (picture, under = null) => {
  const caption = report.el("figcaption", {}, report.said(picture.name, "span", "mono"), picture.caption && picture.caption !== picture.name ? [" ", report.said(picture.caption)] : null);
  if (picture.file === null) {
    return report.el("figure", { class: "picture" }, report.el("div", { class: "no-image", text: `The image store does not have this image (${sizeOf(picture)}).` }), caption);
  }
  const button = report.el(
    "button",
    { type: "button", class: "enlarge", "aria-label": report.visible(`Enlarge ${picture.name}`), on: { click: () => enlarge(picture) } },
    under ? image(under) : null,
    image(picture),
    drawnMarks(picture),
  );
  // A small image is not enlarged, and a large one is limited to its column.
  button.style.setProperty("--width", `${picture.width}px`);
  if (!under) return report.el("figure", { class: "picture" }, button, caption);
  button.classList.add("layered");
  const over = button.querySelector("img + img");
  const slider = report.el("input", { type: "range", min: "0", max: "100", value: "100", "aria-label": report.visible(`Share of ${picture.name} shown over ${under.name}`) });
  slider.addEventListener("input", () => { over.style.clipPath = `inset(0 ${100 - Number(slider.value)}% 0 0)`; });
  const row = report.el("div", { class: "slider" }, report.said(under.name, "span", "mono"), slider, report.said(picture.name, "span", "mono"));
  return report.el("figure", { class: "picture over" }, button, row, caption);
};

/** Pictures in a row; `known` maps names to images that may be under an overlay. */
report.pictures = (pictures, known) =>
  pictures.length
    ? report.el("div", { class: "pictures" }, pictures.map((one) => {
        const under = one.over ? known.get(one.over) : null;
        return report.picture(one, under && under.file !== null && one.file !== null ? under : null);
      }))
    : null;
