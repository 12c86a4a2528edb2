"use strict";
// Sorts and filters tables. Without it, they are complete and in the report's order.
(() => {
  const UNITS = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3, TiB: 1024 ** 4 };
  const SHOWN = 500;
  const number = (text) => {
    const match = /^\u2265?\s*([\d.,]+)\s*(B|KiB|MiB|GiB|TiB)?$/.exec(text);
    return match ? Number(match[1].replaceAll(",", "")) * (UNITS[match[2]] || 1) : NaN;
  };
  for (const table of document.querySelectorAll("table.sorted")) {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => ({
      row, wrong: row.dataset.wrong !== undefined, cells: [...row.cells].map((cell) => cell.textContent),
    }));
    // Of very many rows, the page has only the first as HTML; the others are made when they are shown.
    const data = table.closest(".card").querySelector('script[type="application/json"]');
    for (const [wrong, ...parts] of data ? JSON.parse(data.textContent) : []) {
      rows.push({ row: null, wrong: wrong === 1, parts, cells: parts.map((part) => (typeof part === "string" ? part : part[0])) });
    }
    rows.forEach((line, at) => { line.at = at; });
    const made = (line) => {
      if (!line.row) {
        line.row = document.createElement("tr");
        line.parts.forEach((part, at) => {
          const cell = line.row.insertCell(), [text, link, colour] = typeof part === "string" ? [part, "", ""] : part;
          cell.className = table.tHead.rows[0].cells[at].className;
          const inner = link || colour ? cell.appendChild(document.createElement(link ? "a" : "span")) : cell;
          if (link) inner.href = link;
          if (colour) inner.className = colour;
          inner.textContent = text;
        });
      }
      return line.row;
    };
    const bar = document.createElement("div");
    const search = document.createElement("input"), only = document.createElement("input");
    const shown = document.createElement("span"), more = document.createElement("button");
    const labelled = (input, text) => {
      const label = document.createElement("label");
      label.append(...(input.type === "search" ? [`${text} `, input] : [input, ` ${text}`]));
      return label;
    };
    Object.assign(search, { type: "search" });
    Object.assign(only, { type: "checkbox" });
    Object.assign(more, { type: "button", textContent: "show all" });
    bar.className = "filter";
    shown.className = "soft";
    shown.setAttribute("role", "status");
    const some = rows.some(({ wrong }) => wrong);
    bar.append(labelled(search, table.dataset.filter || "filter"), ...(some ? [labelled(only, "with problems only")] : []), shown, more);
    table.closest(".wide").before(bar);
    let order = rows, all = false;

    const show = () => {
      const terms = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = order.filter(({ wrong, cells }) => (!only.checked || wrong)
        && (!terms.length || terms.every((term) => cells.join(" ").toLowerCase().includes(term))));
      const most = all ? fits.length : SHOWN;
      body.replaceChildren(...fits.slice(0, most).map(made));
      shown.textContent = fits.length > most ? `${most.toLocaleString("en")} of ${fits.length.toLocaleString("en")} shown`
        : `${fits.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")}`;
      more.hidden = fits.length <= most;
    };
    search.addEventListener("input", show);
    only.addEventListener("change", show);
    more.addEventListener("click", () => { all = true; show(); search.focus(); });
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const falling = head.getAttribute("aria-sort") === "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", falling ? "descending" : "ascending");
        const keyed = rows.map((line) => ({ line, value: number(line.cells[at]), text: line.cells[at] }));
        // Values that are not numbers, such as "unknown", sort after numbers.
        keyed.sort((a, b) => (Number.isNaN(a.value) && Number.isNaN(b.value) ? a.text.localeCompare(b.text, "en", { numeric: true })
          : Number.isNaN(a.value) ? 1 : Number.isNaN(b.value) ? -1 : a.value - b.value) || a.line.at - b.line.at);
        if (falling) keyed.reverse();
        order = keyed.map(({ line }) => line);
        show();
      });
    });
    show();
  }
})();
