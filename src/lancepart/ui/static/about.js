// Indices and health.

import { fill, get, h, number, panel, percent, say } from "/dom.js";

export function indicesView(at) {
  const out = h("div", {});
  fill(out, "Looking into the largest partitions", async () => {
    const data = await get("indices", at);
    const note = data.looked_into < data.partitions ? `Looked into the ${number(data.looked_into)} largest of ${number(data.partitions)} partitions.` : `All ${number(data.partitions)} partitions.`;
    if (!data.indices.length) return panel("Indices", h("p", { cls: "empty" }, "There is no index. ", h("code", {}, "lancepart index TABLE COLUMN"), " builds one."));
    return panel("Indices", h("p", { cls: "muted" }, note), h("div", { cls: "scroll" }, h("table", {},
      h("thead", {}, h("tr", {}, ["index", "kind", "columns", "rows covered", "", "partitions covered"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, data.indices.map((index) => {
        const share = index.rows ? index.indexed_rows / index.rows : 1;
        return h("tr", {}, h("td", {}, h("b", {}, index.name)), h("td", {}, h("span", { cls: "tag accent" }, index.type), index.scope === "table" ? " over the table" : null), h("td", { cls: "mono" }, index.columns.join(", ")),
          h("td", { cls: "tight" }, h("div", { cls: "meter calm", "aria-hidden": "true" }, h("i", { "width%": 100 * share }))),
          h("td", { cls: "tight" }, `${percent(share)} (${number(index.indexed_rows)} of ${number(index.rows)})`),
          h("td", { cls: "tight" }, `${number(index.covered_leaves)} of ${number(index.leaves)}`));
      })))));
  });
  return [out];
}

export function healthView(at, about, state, seen) {
  const out = h("div", {});
  fill(out, "Looking for what could be better", async () => {
    const data = await get("health", { table: at.table });
    seen(data.findings.length);
    const list = data.findings.map((finding) => h("article", { cls: "finding" },
      h("h3", {}, h("span", { cls: "tag lit" }, finding.kind), " ", finding.detail), command(finding.run)));
    return [
      panel("Health", list.length ? list : h("p", { cls: "empty" }, "Nothing to do: partitions, files, indices and history are in order.")),
      panel("Look closer", h("p", { cls: "muted" }, "The page only reads. These commands say more:"), data.commands.map(command)),
    ];
  });
  return [out];
}

function command(text) {
  const button = h("button", { cls: "act small", type: "button", "aria-label": `Copy ${text}`, onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      say("Copied");
    } catch {
      button.textContent = "Select it";
    }
  } }, "Copy");
  return h("div", { cls: "command" }, h("code", { tabindex: "0" }, text), button);
}
