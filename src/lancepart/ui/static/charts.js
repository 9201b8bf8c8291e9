// The map of leaves, the bars of their sizes, and vectors as lines.

import { h, measured, number, showTip } from "/dom.js";

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function leafMap(data, onpoint) {
  const { cells, names, measure } = data;
  const lit = cells.filter((cell) => cell[2] > 0).length;
  const filtered = cells.length > 0 && cells[0][2] !== null;
  const about = filtered ? `${lit} of ${cells.length} cells are kept` : `${cells.length} cells`;
  const canvas = h("canvas", { cls: "map", tabindex: "0", role: "img", "aria-label": `Map of the partitions: ${about}. Arrow keys go from cell to cell.` });
  const largest = Math.max(1, ...cells.map((cell) => cell[1]));
  let at = -1, columns = 1, step = 12;

  function draw() {
    const width = canvas.clientWidth || 800;
    const wanted = Math.sqrt((width * 190) / Math.max(cells.length, 1));
    step = Math.max(7, Math.min(34, Math.floor(wanted)));
    columns = Math.max(1, Math.floor(width / step));
    const rows = Math.ceil(cells.length / columns);
    const ratio = devicePixelRatio || 1;
    canvas.style.height = `${Math.max(rows * step, step)}px`;
    canvas.width = width * ratio;
    canvas.height = Math.max(rows * step, step) * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const [on, off, plain, ink] = ["--lit", "--dim", "--cell", "--ink"].map(color);
    const gap = step > 16 ? 3 : step > 9 ? 2 : 1;
    cells.forEach(([leaves, held, kept], index) => {
      const x = (index % columns) * step, y = Math.floor(index / columns) * step;
      const weight = 0.3 + 0.7 * Math.sqrt(held / largest);
      pen.globalAlpha = kept === null ? weight : kept === 0 ? 1 : Math.max(0.55, weight);
      pen.fillStyle = kept === null ? plain : kept === 0 ? off : on;
      pen.beginPath();
      pen.roundRect(x, y, step - gap, step - gap, Math.min(5, step / 5));
      pen.fill();
      if (kept !== null && kept > 0 && kept < leaves) {
        pen.globalAlpha = 1;
        pen.fillStyle = off;
        pen.fillRect(x, y, (step - gap) * (1 - kept / leaves), 3);
      }
      if (index === at) {
        pen.globalAlpha = 1;
        pen.strokeStyle = ink;
        pen.lineWidth = 2;
        pen.strokeRect(x - 0.5, y - 0.5, step - gap + 1, step - gap + 1);
      }
    });
  }

  function describe(index) {
    const [leaves, held, kept] = cells[index];
    const state = kept === null ? "" : kept === 0 ? " · dropped" : kept === leaves ? " · kept" : ` · ${kept} of ${leaves} kept`;
    return `${names[index]} · ${measured(held, measure)}${measure === "rows" ? " rows" : ""}${state}`;
  }

  function go(index) {
    if (!cells.length) return;
    at = Math.max(0, Math.min(cells.length - 1, index));
    onpoint(describe(at));
    draw();
  }

  canvas.addEventListener("mousemove", (event) => {
    const index = Math.floor(event.offsetY / step) * columns + Math.floor(event.offsetX / step);
    const inside = index >= 0 && index < cells.length && Math.floor(event.offsetX / step) < columns;
    showTip(inside ? describe(index) : "", event.clientX, event.clientY);
  });
  canvas.addEventListener("mouseleave", () => showTip(""));
  canvas.addEventListener("blur", () => { at = -1; onpoint(""); draw(); });
  canvas.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
    if (move === undefined) return;
    event.preventDefault();
    go(at < 0 ? 0 : at + move);
  });
  new ResizeObserver(draw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  return canvas;
}

export function skewChart(data) {
  const { bars, measure, median, leaves } = data;
  const [width, height, left] = [460, 180, 66];
  const most = Math.max(1, ...bars);
  const y = (value) => height - 8 - (value / most) * (height - 20);
  const step = (width - left) / Math.max(bars.length, 1);
  const svg = h("svg", { cls: "chart", viewBox: `0 0 ${width} ${height + 18}`, role: "img",
    "aria-label": `Sizes of ${number(leaves)} partitions, the largest first: ${measured(most, measure)} down to ${measured(bars.at(-1) ?? 0, measure)}; the median is ${measured(median, measure)}` });
  for (const share of [0, 0.5, 1]) {
    svg.append(h("line", { cls: "axis", x1: left, x2: width, y1: y(most * share), y2: y(most * share) }),
      h("text", { x: left - 8, y: y(most * share) + 4, "text-anchor": "end" }, measured(most * share, measure)));
  }
  bars.forEach((value, index) => svg.append(h("rect", { x: left + index * step, y: y(value), width: Math.max(step - (step > 5 ? 2 : 0.3), 0.6),
    height: Math.max(height - 8 - y(value), 0.8), rx: step > 6 ? 2 : 0 }, h("title", {}, measured(value, measure)))));
  const middle = y(median);
  svg.append(h("line", { cls: "mid", x1: left, x2: width, y1: middle, y2: middle }),
    h("text", { x: width, y: middle - 5, "text-anchor": "end" }, `median ${measured(median, measure)}`),
    h("text", { x: left, y: height + 12 }, "largest"), h("text", { x: width, y: height + 12, "text-anchor": "end" }, "smallest"));
  return svg;
}

export function sparkline(points, label) {
  const found = points.map((value) => (typeof value === "number" ? value : 0));
  const low = Math.min(0, ...found), high = Math.max(0, ...found);
  const range = high - low || 1;
  const x = (index) => (found.length < 2 ? 60 : (index * 120) / (found.length - 1));
  const y = (value) => 26 - ((value - low) / range) * 24;
  const path = found.map((value, index) => `${index ? "L" : "M"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  return h("svg", { cls: "spark", viewBox: "0 0 120 28", preserveAspectRatio: "none", role: "img", "aria-label": label },
    h("line", { x1: 0, x2: 120, y1: y(0), y2: y(0) }), h("path", { d: path }));
}
