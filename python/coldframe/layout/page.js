"use strict";
// Zooms into the layout. The page is whole without it: what it replaces is the picture of the first levels.
(() => {
  const { texts, details, colours, tree } = JSON.parse(document.getElementById("data").textContent);
  const [NAME, OFFSET, LENGTH, COLOUR, DETAIL, DAMAGE, PARTS, SAMPLE, CHILDREN] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
  const LEVELS = 5, LEVEL = 34, NARROW = 1.5;
  const SVG = "http://www.w3.org/2000/svg";
  const figure = document.getElementById("zoom");
  const crumbs = document.getElementById("crumbs");
  const panel = document.getElementById("detail");
  const hint = document.querySelector(".hint");
  hint.textContent = "Click to look inside, Escape to go back up. Each level shows the parts of the one above it.";

  const parents = new Map();
  const known = (node) => { for (const child of node[CHILDREN]) { parents.set(child, node); known(child); } };
  known(tree);
  let view = tree, chosen = tree;

  const size = (bytes) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let at = 0;
    while (bytes >= 1024 && at < units.length - 1) { bytes /= 1024; at += 1; }
    return `${at === 0 ? bytes : bytes.toFixed(1)} ${units[at]}`;
  };
  const element = (name, attributes = {}, text = null) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== null) made.textContent = text;
    return made;
  };
  const path = (node) => {
    const all = [];
    for (let at = node; at; at = parents.get(at)) all.unshift(at);
    return all;
  };

  function draw() {
    const width = Math.max(320, figure.clientWidth);
    const levels = [[view]];
    while (levels.length < LEVELS) {
      const below = levels[levels.length - 1].flatMap((node) => node[CHILDREN]);
      if (!below.length) break;
      levels.push(below);
    }
    const height = levels.length * LEVEL;
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "tree" });
    const pattern = element("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse",
      patternTransform: "rotate(45)" });
    pattern.append(element("line", { x1: 0, y1: 0, x2: 0, y2: 6 }));
    const defs = element("defs");
    defs.append(pattern);
    svg.append(defs);
    const scale = width / Math.max(1, view[LENGTH]);
    for (const [depth, level] of levels.entries()) {
      let drawn = -1;
      for (const node of level) {
        const x = (node[OFFSET] - view[OFFSET]) * scale, across = node[LENGTH] * scale;
        if (x + across < drawn + NARROW && node[DAMAGE] === -1) continue;
        drawn = x + Math.max(across, NARROW);
        svg.append(part(node, x, depth * LEVEL, across));
      }
    }
    figure.replaceChildren(svg);
    crumbs.replaceChildren(...path(view).map((node) => {
      const button = document.createElement("button");
      button.textContent = texts[node[NAME]];
      button.onclick = () => go(node);
      return button;
    }));
  }

  function part(node, x, y, across) {
    const group = element("g", { class: "part", tabindex: 0, role: "treeitem", "aria-label": texts[node[NAME]] });
    const width = Math.max(across - 0.75, 0.75);
    group.append(element("rect", { x, y, width, height: LEVEL - 3, fill: colours[node[COLOUR]],
      opacity: node[CHILDREN].length ? 0.55 : 1 }));
    if (node[DAMAGE] !== -1) group.append(element("rect", { class: node[DAMAGE] === -2 ? "hurt" : "broken", x, y, width: Math.max(width, 3), height: LEVEL - 3 }));
    if (across > 60) {
      const name = texts[node[NAME]], most = Math.floor(across / 7);
      // Paths begin alike and end apart.
      const cut = () => name.includes("/") ? `…${name.slice(1 - most)}` : `${name.slice(0, most - 1)}…`;
      group.append(element("text", { x: x + 6, y: y + 20 }, name.length <= most ? name : cut()));
    }
    group.onmouseenter = () => tell(node);
    group.onfocus = () => tell(node);
    group.onmouseleave = () => tell(chosen);
    group.onclick = () => go(node);
    group.onkeydown = (event) => { if (event.key === "Enter") go(node); };
    return group;
  }

  function go(node) {
    chosen = node;
    // A leaf fills no picture: its parent stays, and what is known of it is told.
    view = node[CHILDREN].length ? node : parents.get(node) || node;
    draw();
    tell(node);
  }

  function tell(node) {
    const facts = document.createElement("dl");
    const say = (name, value) => {
      const term = document.createElement("dt"), said = document.createElement("dd");
      term.textContent = name;
      said.textContent = value;
      facts.append(term, said);
      return said;
    };
    say("bytes", `${node[OFFSET].toLocaleString("en")} – ${(node[OFFSET] + node[LENGTH]).toLocaleString("en")}`);
    say("size", `${size(node[LENGTH])} (${(100 * node[LENGTH] / Math.max(1, tree[LENGTH])).toFixed(2)} %)`);
    for (const [key, value] of Object.entries(node[DETAIL] < 0 ? {} : details[node[DETAIL]])) say(key.replaceAll("_", " "), value);
    if (node[DAMAGE] >= 0) say("damaged", texts[node[DAMAGE]]).style.color = "var(--bad)";
    if (node[PARTS]) say("parts", `${node[PARTS].toLocaleString("en")}, too small for this page`);
    const title = document.createElement("h3");
    title.textContent = texts[node[NAME]];
    const left = document.createElement("div");
    left.append(title, facts);
    const right = document.createElement("pre");
    if (node[SAMPLE]) right.innerHTML = hex(node);
    panel.replaceChildren(left, right);
    panel.hidden = false;
  }

  function hex(node) {
    const raw = atob(node[SAMPLE]);
    const escaped = (text) => text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);
    const lines = [];
    for (let at = 0; at < raw.length; at += 16) {
      const bytes = Array.from(raw.slice(at, at + 16), (c) => c.charCodeAt(0));
      const words = bytes.map((b) => b.toString(16).padStart(2, "0")).join(" ").padEnd(47);
      const text = bytes.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : "·")).join("");
      lines.push(`<b>${(node[OFFSET] + at).toString(16).padStart(8, "0")}</b>  ${words}  <b>${escaped(text)}</b>`);
    }
    if (raw.length < node[LENGTH]) lines.push(`<b>… ${size(node[LENGTH] - raw.length)} more</b>`);
    return lines.join("\n");
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && parents.has(chosen)) go(parents.get(chosen));
  });
  let waiting = 0;
  addEventListener("resize", () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(draw); });
  // #offset opens the smallest structure at a byte.
  const wanted = Number(location.hash.slice(1));
  let start = tree;
  if (location.hash && Number.isFinite(wanted)) {
    for (let next = start; next;) {
      start = next;
      next = start[CHILDREN].find((child) => child[OFFSET] <= wanted && wanted < child[OFFSET] + child[LENGTH]);
    }
  }
  go(start);
})();
