
"use strict";
// The table is complete without this script: it only lets its columns be sorted.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const key = (row, column) => {
    const text = (row.cells[column] || { textContent: "" }).textContent.trim();
    const number = text.match(/-?\d+(\.\d+)?/);
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
