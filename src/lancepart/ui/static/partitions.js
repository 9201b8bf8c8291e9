// Partitions: the filter, the map, the tree, the skew.

import { chooser, failed, fill, get, h, measured, number, panel, percent, say, size } from "/dom.js";
import { leafMap, skewChart } from "/charts.js";

const MEASURES = [["bytes", "by size"], ["rows", "by rows"], ["fragments", "by fragments"]];
const PAGE = 50;

export function partitionsView(at, about, state) {
  const where = () => state.where || "";
  const verdict = h("div", {}), map = h("div", {}), tree = h("div", {}), skew = h("div", {});
  const input = h("input", { id: "where", name: "where", value: where(), placeholder: hint(about), autocomplete: "off", spellcheck: "false", "aria-describedby": "where-help" });

  async function apply(event) {
    event?.preventDefault();
    state.where = input.value.trim();
    await Promise.all([showPlan(), showMap(), showTree()]);
  }

  async function showPlan() {
    if (!where()) {
      verdict.replaceChildren(h("p", { cls: "muted", id: "where-help" }, "Type a filter in SQL to see which partitions a query would read. No partition is opened for it."));
      return;
    }
    await fill(verdict, "Planning", async () => {
      const plan = await get("plan", { ...at, where: where() });
      const share = plan.of ? plan.kept / plan.of : 0;
      const reasons = plan.specs.flatMap((spec) => spec.reasons.map((reason) => h("li", {}, plan.specs.length > 1 ? `spec v${spec.spec_id}: ${reason}` : reason)));
      say(`${plan.kept} of ${plan.of} partitions are kept`);
      return [
        h("p", { cls: "verdict", id: "where-help" }, h("b", { id: "kept" }, `${number(plan.kept)} of ${number(plan.of)} partitions are read`),
          h("span", { cls: "muted" }, `at most ${number(plan.rows)} of ${number(plan.of_rows)} rows, ${size(plan.bytes)} of ${size(plan.of_bytes)}`)),
        h("div", { cls: "meter", "aria-hidden": "true" }, h("i", { "width%": 100 * share })),
        h("details", { cls: "why" }, h("summary", {}, "Why"), h("ul", {}, reasons)),
      ];
    });
  }

  async function showMap() {
    const one = h("span", { cls: "one", "aria-live": "polite" });
    await fill(map, "Reading the manifest", async () => {
      const data = await get("map", { ...at, measure: state.measure, where: where() });
      if (!data.cells.length) return h("p", { cls: "empty" }, "There are no partitions yet.");
      const several = data.cells.length < data.leaves;
      const legend = where()
        ? [h("span", {}, h("i", { cls: "k-lit" }), "kept"), h("span", {}, h("i", { cls: "k-dim" }), "dropped")]
        : [h("span", {}, h("i", { cls: "k-cell" }), several ? `a cell stands for about ${number(Math.round(data.leaves / data.cells.length))} partitions` : "a partition; the larger, the stronger its colour")];
      return [leafMap(data, (text) => { one.textContent = text; }), h("p", { cls: "legend" }, legend, one)];
    });
  }

  async function showTree() {
    await fill(tree, "Reading the tree", async () => makeTree(at, where, state));
  }

  async function showSkew() {
    await fill(skew, "Measuring", async () => {
      const data = await get("skew", { ...at, measure: state.measure });
      if (!data.leaves) return h("p", { cls: "empty" }, "There are no partitions yet.");
      const times = data.median ? `${(data.largest / data.median).toFixed(1)} times the median` : "the median is empty";
      return [
        skewChart(data),
        h("dl", { cls: "facts" },
          h("dt", {}, "Largest"), h("dd", {}, `${measured(data.largest, data.measure)}, ${times}`),
          h("dt", {}, "Largest tenth"), h("dd", {}, `holds ${percent(data.top_share)}`),
          h("dt", {}, "Without rows"), h("dd", {}, number(data.empty))),
        h("ol", { cls: "toplist", "aria-label": "The largest partitions" }, data.top.map((leaf) => h("li", {}, h("span", { cls: "mono", title: leaf.name }, leaf.name || "all rows"), h("span", { cls: "num" }, measured(leaf.size, data.measure))))),
      ];
    });
  }

  const choose = chooser("Measure", MEASURES, state.measure, (value) => { state.measure = value; showMap(); showSkew(); });
  const sort = chooser("Order of the tree", [["name", "by value"], ...MEASURES], state.sort, (value) => { state.sort = value; showTree(); });
  apply();
  showSkew();
  return [
    h("section", { cls: "panel", "aria-label": "Filter" },
      h("form", { cls: "bar", onsubmit: apply },
        h("label", { cls: "grow" }, "Filter", input),
        h("button", { cls: "act main", type: "submit" }, "Show what is read"),
        h("button", { cls: "act", type: "button", onclick: () => { input.value = ""; apply(); input.focus(); } }, "Clear")),
      h("div", { cls: "verdict-box" }, verdict)),
    h("section", { cls: "panel" }, h("header", {}, h("h2", {}, "Map"), h("span", { cls: "end" }, choose)), map),
    h("div", { cls: "split" },
      h("section", { cls: "panel" }, h("header", {}, h("h2", {}, "Tree"), h("span", { cls: "end" }, sort)), tree),
      panel("Skew", skew)),
  ];
}

function hint(about) {
  const first = about.columns.find((column) => new RegExp(`\\b${column.name.replace(/\W/g, ".")}\\b`).test(about.partition_by[0] || ""));
  if (!first) return "column = value";
  if (/^(timestamp|date)/.test(first.type)) return `${first.name} >= DATE '2026-01-01'`;
  return /string|utf8/.test(first.type) ? `${first.name} = 'some value'` : `${first.name} = 1`;
}

async function makeTree(at, where, state) {
  const box = h("div", { role: "tree", "aria-label": "Partitions" });
  const page = async (spec, path, offset) => get("tree", { ...at, where: where(), sort: state.sort, spec, path: JSON.stringify(path), offset, limit: PAGE });

  function item(node, level) {
    const filtered = node.kept !== null && node.kept !== undefined;
    const cls = !filtered ? "" : node.kept ? "kept" : "dropped";
    const open = node.leaf === null && node.leaves > 0;
    const badge = filtered && node.kept > 0 && node.leaves > 1 ? h("span", { cls: "tag lit" }, `${number(node.kept)} of ${number(node.leaves)}`)
      : node.leaf === null ? h("span", { cls: "muted num" }, number(node.leaves)) : null;
    const row = h("div", { cls: `row ${cls}`, role: "treeitem", tabindex: "-1", "aria-level": level, "aria-expanded": open ? "false" : null,
      "aria-label": `${node.field} ${node.name}, ${number(node.rows)} rows, ${size(node.bytes)}${filtered ? (node.kept ? ", kept" : ", dropped") : ""}` },
      h("span", { cls: "name", indent: (level - 1) * 20 }, h("span", { cls: "caret", "aria-hidden": "true" }, open ? "›" : ""),
        h("span", { cls: "text", title: String(node.name) }, level === 1 ? node.name : [h("em", {}, `${node.field} = `), node.name]), badge),
      h("span", { cls: "share", "aria-hidden": "true" }, h("i", { "width%": 100 * node.share })),
      h("span", { cls: "num" }, number(node.rows)), h("span", { cls: "num" }, size(node.bytes)));
    if (!open) return [row];
    const group = h("div", { role: "group", hidden: true });
    const toggle = async () => {
      const opening = row.getAttribute("aria-expanded") === "false";
      row.setAttribute("aria-expanded", String(opening));
      group.hidden = !opening;
      if (opening && !group.childElementCount) await load(group, node.spec, node.path, level + 1, 0);
    };
    row.addEventListener("click", toggle);
    row.toggle = toggle;
    return [row, group];
  }

  async function load(group, spec, path, level, offset) {
    try {
      const data = await page(spec, path, offset);
      for (const node of data.nodes) group.append(...item(node, level));
      const seen = offset + data.nodes.length;
      if (seen < data.total) {
        const more = h("div", { cls: "more" }, h("button", { cls: "act small", type: "button", onclick: async () => { more.remove(); await load(group, spec, path, level, seen); } },
          `${number(Math.min(PAGE, data.total - seen))} more of ${number(data.total)}`));
        group.append(more);
      }
    } catch (error) {
      group.append(failed(error));
    }
  }

  const top = await get("tree", { ...at, where: where() });
  for (const node of top.nodes) box.append(...item(node, 1));
  const items = () => [...box.querySelectorAll('[role="treeitem"]')].filter((each) => each.offsetParent !== null);
  const first = box.querySelector('[role="treeitem"]');
  if (first) {
    first.tabIndex = 0;
    if (top.nodes.length <= 3) {
      for (const each of [...box.querySelectorAll('[role="treeitem"]')]) await each.toggle?.();
    }
  }
  box.addEventListener("keydown", (event) => {
    const row = event.target.closest('[role="treeitem"]');
    if (!row) return;
    const all = items(), index = all.indexOf(row);
    const expanded = row.getAttribute("aria-expanded");
    let next = null;
    if (event.key === "ArrowDown") next = all[index + 1];
    else if (event.key === "ArrowUp") next = all[index - 1];
    else if (event.key === "Home") next = all[0];
    else if (event.key === "End") next = all.at(-1);
    else if (event.key === "ArrowRight") { if (expanded === "false") row.toggle(); else next = all[index + 1]; }
    else if (event.key === "ArrowLeft") { if (expanded === "true") row.toggle(); else next = all.slice(0, index).reverse().find((each) => Number(each.ariaLevel) < Number(row.ariaLevel)); }
    else if (event.key === "Enter" || event.key === " ") { row.toggle?.(); }
    else return;
    event.preventDefault();
    if (next) { row.tabIndex = -1; next.tabIndex = 0; next.focus(); }
  });
  const head = h("div", { cls: "row top", "aria-hidden": "true" }, h("span", {}, "partition"), h("span", {}, "share"), h("span", { cls: "num" }, "rows"), h("span", { cls: "num" }, "size"));
  return h("div", { cls: "tree" }, head, box);
}
