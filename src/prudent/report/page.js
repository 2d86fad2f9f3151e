
"use strict";
// The page is complete without this script: it lets tables be sorted and shortened, the
// promise be moved, the command be copied and the figures be saved.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const key = (row, column) => {
    const text = (row.cells[column] || { textContent: "" }).textContent.trim();
    // 1 234 is one figure, with a blank that no line ends at.
    const number = text.replace(/(\d)\s(?=\d{3}\b)/g, "$1").match(/-?\d+(\.\d+)?/);
    const scale = text.includes("µs") ? 1e-6 : text.includes("ms") ? 1e-3 : 1;
    return { text, number: number ? Number(number[0]) * scale : Infinity };
  };
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.textContent = heading.textContent;
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const compare = (a, b) => {
        const x = key(a, column), y = key(b, column);
        return x.number - y.number || x.text.localeCompare(y.text);
      };
      const rows = [...body.rows].sort(compare);
      body.append(...(down ? rows.reverse() : rows));
    });
  });
}

const OPEN_ROWS = 3;
for (const table of document.querySelectorAll("table.shortened")) {
  if (table.tBodies[0].rows.length <= OPEN_ROWS) continue;
  const button = document.createElement("button");
  button.className = "more";
  const note = table.caption.appendChild(document.createElement("span"));
  note.className = "paper";  // on paper there is no button that says how many there are
  const fold = (is_folded) => {
    table.classList.toggle("folded", is_folded);
    button.setAttribute("aria-expanded", String(!is_folded));
    const all = table.tBodies[0].rows.length;
    note.textContent = is_folded ? ` (the first three of ${all})` : "";
    button.textContent = is_folded ? `Show all ${all}` : "Show the first three";
  };
  button.addEventListener("click", () => fold(!table.classList.contains("folded")));
  table.closest(".scroll").after(button);
  fold(true);
}
// A slider moves the promise; paper has the one asked for.
for (const controls of document.querySelectorAll(".controls")) {
  const { rows, frontier } = JSON.parse(document.getElementById("prudent-data").textContent);
  const { levels, promises, asked, decided } = frontier;
  const methods = rows.map((row) => row.method).filter((name) => Object.hasOwn(decided, name));
  const tables = controls.parentElement.querySelectorAll("table");
  const lines = [...tables].map((table) => [...table.tBodies[0].rows]);
  const asAsked = lines.map((table) => table.map((line) => [...line.cells].map((cell) => cell.textContent)));
  const [slider, ...ticks] = controls.querySelectorAll("input");
  const place = levels.indexOf(asked), caption = tables[0].caption.textContent;
  const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(1)}\u00a0%`);
  const figures = [
    (name, at) => [decided[name][at], 1 - decided[name][at], frontier.wrong[name][at]],
    (name, at) => frontier.by_class[name].map((shares) => shares[at]),
  ];
  const show = (at) => {
    slider.setAttribute("aria-valuetext", promises[at]);
    tables[0].caption.textContent = at === place ? caption
      : `${promises[at]}: seen in this comparison, not promised. A rate changed after `
        + "a look at the curve needs fresh rows.";
    lines.forEach((table, part) => table.forEach((line, i) => {
      const name = methods[i], first = asAsked[part][i];
      const texts = at === place ? first : [first[0], ...figures[part](name, at).map(percent)];
      [...line.cells].forEach((cell, k) => { cell.textContent = texts[k]; });
      line.style.setProperty("--share", `${100 * decided[name][at]}%`);
      line.hidden = !ticks[i].checked;
    }));
  };
  Object.assign(slider, { max: levels.length - 1, value: place });
  controls.hidden = false;
  controls.addEventListener("input", () => show(Number(slider.value)));
  addEventListener("beforeprint", () => show(place));
  addEventListener("afterprint", () => show(Number(slider.value)));
  show(place);
}
for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const text = document.getElementById("command").textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(document.getElementById("command"));
      button.textContent = "Selected: press Ctrl+C";
    }
  });
}
for (const link of document.querySelectorAll("a.save")) {
  const stored = document.getElementById(link.dataset.from);
  const text = stored.textContent.replaceAll("\\u003c", "<");
  if (!text) continue;
  link.href = URL.createObjectURL(new Blob([text], { type: link.dataset.type }));
  link.hidden = false;
}
// A link to a part that is folded opens it.
const unfold = () => {
  const part = document.getElementById(location.hash.slice(1));
  const details = part && part.querySelector("details");
  if (details) details.open = true;
};
addEventListener("hashchange", unfold);
unfold();
