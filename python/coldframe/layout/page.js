"use strict";
// Zooms into the layout. The page is complete without it; it replaces the picture of the first levels.
(() => {
  const { texts, details, tree } = JSON.parse(document.getElementById("data").textContent);
  const [NAME, OFFSET, LENGTH, COLOUR, DETAIL, DAMAGE, PARTS, SAMPLE, CHILDREN, FILE] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
  const LEVELS = 5, NARROW = 1.5, NAMED = 44;
  const figure = document.getElementById("zoom");
  const crumbs = document.getElementById("crumbs");
  const panel = document.getElementById("detail");
  const strip = document.querySelector("#strip svg");
  const hint = document.querySelector(".hint");
  hint.textContent = "Click or press Enter to look inside, Escape to go back up. Arrow keys go from part to part: "
    + "left and right on a level, down into a part, up to what it is in.";

  const parents = new Map();
  const known = (node) => { for (const child of node[CHILDREN]) { parents.set(child, node); known(child); } };
  known(tree);
  let view = tree, chosen = tree;
  let levels = [], tiles = new Map();

  const size = (bytes) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let at = 0;
    while (bytes >= 1024 && at < units.length - 1) { bytes /= 1024; at += 1; }
    return `${at === 0 ? bytes : bytes.toFixed(1)} ${units[at]}`;
  };
  const number = (value) => value.toLocaleString("en");
  const made = (name, properties = {}, text = null) => {
    const element = Object.assign(document.createElement(name), properties);
    if (text !== null) element.textContent = text;
    return element;
  };
  const path = (node) => {
    const all = [];
    for (let at = node; at; at = parents.get(at)) all.unshift(at);
    return all;
  };
  // The node of a node's file, if the page has several files.
  const fileOf = (node) => path(node).findLast((item) => item[FILE]);

  function draw() {
    const width = Math.max(320, figure.clientWidth);
    const picture = made("div", { className: "tiles", role: "tree" });
    picture.setAttribute("aria-label", "The structures of the file and their parts");
    picture.setAttribute("aria-orientation", "horizontal");
    const scale = width / Math.max(1, view[LENGTH]);
    levels = [];
    tiles = new Map();
    for (let level = [view]; level.length && levels.length < LEVELS; level = level.flatMap((node) => node[CHILDREN])) {
      let drawn = -1;
      const row = [];
      for (const node of level) {
        const end = (node[OFFSET] + node[LENGTH] - view[OFFSET]) * scale;
        if (end < drawn + NARROW && node[DAMAGE] === -1 && node !== chosen) continue;
        drawn = end;
        row.push(node);
        picture.append(tile(node, levels.length, scale));
      }
      levels.push(row);
    }
    picture.style.setProperty("--levels", levels.length);
    figure.replaceChildren(picture);
    crumbs.replaceChildren(...path(view).map((node) => {
      const button = made("button", { type: "button", onclick: () => go(node) }, texts[node[NAME]]);
      if (node === view) button.setAttribute("aria-current", "true");
      return button;
    }));
  }

  function tile(node, depth, scale) {
    const across = node[LENGTH] * scale, name = texts[node[NAME]];
    const classes = ["tile", `c${node[COLOUR]}`];
    if (node[CHILDREN].length) classes.push("group");
    if (node[DAMAGE] !== -1) classes.push(node[DAMAGE] === -2 ? "hurt" : "broken");
    const element = made("div", { className: classes.join(" "), role: "treeitem", tabIndex: -1, title: name });
    element.style.cssText = `--depth:${depth};left:${100 * (node[OFFSET] - view[OFFSET]) / Math.max(1, view[LENGTH])}%;`
      + `width:${100 * node[LENGTH] / Math.max(1, view[LENGTH])}%`;
    element.setAttribute("aria-level", depth + 1);
    element.setAttribute("aria-selected", "false");
    element.setAttribute("aria-label", `${name}, ${size(node[LENGTH])}${node[DAMAGE] === -1 ? "" : ", damaged"}`);
    if (node[CHILDREN].length) element.setAttribute("aria-expanded", depth + 1 < LEVELS);
    if (across > NAMED) {
      // Paths differ at their ends, so their beginning is cut.
      const label = made("span", { className: name.includes("/") ? "path" : "" });
      label.append(made("bdi", { dir: "ltr" }, name));
      element.append(label);
    }
    element.onmouseenter = () => showDetails(node);
    element.onmouseleave = () => showDetails(chosen);
    element.onclick = () => go(node, true);
    tiles.set(node, element);
    return element;
  }

  // Marks a node as chosen, in the picture and on the strip. Only its tile is in the tab order.
  function choose(node, focus) {
    for (const element of [tiles.get(chosen), tiles.get(node)]) {
      if (!element) continue;
      const is = element === tiles.get(node);
      element.classList.toggle("chosen", is);
      element.setAttribute("aria-selected", is);
      element.tabIndex = is ? 0 : -1;
    }
    chosen = node;
    if (focus) tiles.get(node)?.focus();
    showDetails(node);
    mark(node);
  }

  function go(node, focus = false) {
    chosen = node;
    // A leaf has no picture: its parent stays, and its details are shown.
    view = node[CHILDREN].length ? node : parents.get(node) || node;
    draw();
    choose(node, focus);
  }

  // Moves to a neighbour; the picture follows if it is not drawn.
  function move(node) {
    if (!node) return;
    if (tiles.has(node)) { choose(node, true); return; }
    view = parents.get(node) || node;
    chosen = node;
    draw();
    choose(node, true);
  }

  figure.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const row = levels.find((level) => level.includes(chosen)) || [];
    const at = row.indexOf(chosen);
    const below = () => chosen[CHILDREN].find((child) => tiles.has(child)) || chosen[CHILDREN][0];
    const steps = {
      ArrowRight: () => row[at + 1], ArrowLeft: () => row[at - 1], Home: () => row[0], End: () => row[row.length - 1],
      ArrowUp: () => parents.get(chosen), ArrowDown: below,
    };
    if (event.key in steps) {
      event.preventDefault();
      move(steps[event.key]());
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      go(chosen, true);
    }
  });

  // The strip shows the whole file on lines of equal length.
  function mark(node) {
    const position = document.getElementById("position");
    const [rows, height, gap] = ["rows", "row", "gap"].map((name) => Number(strip.dataset[name]));
    const width = strip.viewBox.baseVal.width, share = rows / Math.max(1, tree[LENGTH]);
    const first = (node[OFFSET] - tree[OFFSET]) * share, last = first + node[LENGTH] * share;
    position.replaceChildren();
    if (node === tree) return;
    for (let row = Math.floor(first); row < Math.min(rows, Math.max(last, first + 0.001)); row += 1) {
      const from = Math.max(first, row), to = Math.min(last, row + 1);
      const rect = document.createElementNS(strip.namespaceURI, "rect");
      const place = { x: (from - row) * width, y: row * (height + gap), width: Math.max(2, (to - from) * width), height };
      for (const [key, value] of Object.entries(place)) rect.setAttribute(key, value);
      position.append(rect);
    }
  }
  strip.onclick = (event) => {
    const box = strip.getBoundingClientRect();
    const [rows, height, gap] = ["rows", "row", "gap"].map((name) => Number(strip.dataset[name]));
    const line = Math.min(rows - 1, Math.floor((event.clientY - box.top) / (box.height / (rows * (height + gap) - gap)) / (height + gap)));
    go(smallest(tree[OFFSET] + (line + (event.clientX - box.left) / box.width) / rows * tree[LENGTH]));
  };

  function showDetails(node) {
    const list = made("dl");
    const add = (name, value) => {
      const entry = made("dd", {}, value);
      list.append(made("dt", {}, name), entry);
      return entry;
    };
    const file = fileOf(node), base = file ? file[OFFSET] : 0;
    if (file && file !== node) add("file", texts[file[NAME]]);
    add("bytes", `${number(node[OFFSET] - base)} – ${number(node[OFFSET] - base + node[LENGTH])}`);
    add("size", `${size(node[LENGTH])} (${(100 * node[LENGTH] / Math.max(1, tree[LENGTH])).toFixed(2)} %)`);
    for (const [key, value] of Object.entries(node[DETAIL] < 0 ? {} : details[node[DETAIL]])) add(key.replaceAll("_", " "), value);
    if (node[DAMAGE] >= 0) add("damaged", texts[node[DAMAGE]]).className = "broken";
    if (node[PARTS]) add("parts", `${number(node[PARTS])}, too small for this page`);
    const left = made("div");
    left.append(made("h3", {}, texts[node[NAME]]), list);
    panel.replaceChildren(left);
    if (node[SAMPLE]) {
      const right = made("pre", { innerHTML: hex(node, base), tabIndex: 0, role: "region" });
      right.setAttribute("aria-label", "Its first bytes");
      panel.append(right);
    }
    panel.hidden = false;
  }

  function hex(node, base) {
    const raw = atob(node[SAMPLE]);
    const escaped = (text) => text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);
    const lines = [];
    for (let at = 0; at < raw.length; at += 16) {
      const bytes = Array.from(raw.slice(at, at + 16), (c) => c.charCodeAt(0));
      const hex = bytes.map((b) => b.toString(16).padStart(2, "0")).join(" ").padEnd(47);
      const text = bytes.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : "·")).join("");
      lines.push(`<b>${(node[OFFSET] - base + at).toString(16).padStart(8, "0")}</b>  ${hex}  <b>${escaped(text)}</b>`);
    }
    if (raw.length < node[LENGTH]) lines.push(`<b>… ${size(node[LENGTH] - raw.length)} more</b>`);
    return lines.join("\n");
  }

  // The smallest drawn node that has all these bytes.
  function smallest(offset, length = 1) {
    let node = tree;
    for (let next = node; next;) {
      node = next;
      if (node[OFFSET] === offset && node[LENGTH] === length) break;
      next = node[CHILDREN].find((child) => child[OFFSET] <= offset && offset + length <= child[OFFSET] + child[LENGTH]);
    }
    return node;
  }

  // The node at #offset, #offset+length or, on a page with several files, #file:offset.
  function wanted(hash) {
    const match = /^#(?:(.*):)?(\d+)(?:\+(\d+))?$/.exec(hash);
    if (!match) return null;
    let base = 0;
    if (match[1] !== undefined) {
      const name = decodeURIComponent(match[1]);
      const file = [...parents.keys()].find((node) => node[FILE] && name.endsWith(texts[node[NAME]]));
      if (!file) return null;
      base = file[OFFSET];
    }
    return smallest(base + Number(match[2]), match[3] === undefined ? 1 : Number(match[3]));
  }
  function open(hash, focus) {
    const node = wanted(hash);
    if (!node) return;
    go(node, focus);
    if (focus) figure.closest("section").scrollIntoView();
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href^="#"]');
    if (!link) return;
    event.preventDefault();
    history.replaceState(null, "", link.hash);
    open(link.hash, true);
  });
  addEventListener("hashchange", () => open(location.hash, true));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && parents.has(chosen)) go(parents.get(chosen), figure.contains(document.activeElement));
  });
  let waiting = 0, width = figure.clientWidth;
  addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => {
      if (figure.clientWidth === width) return;
      width = figure.clientWidth;
      draw();
      choose(chosen, false);
    });
  });
  go(tree);
  open(location.hash, false);
})();
