// Snapshots, what changed between two, and how schema and partitioning became so.

import { exact, failed, fill, get, h, number, panel, say, size, wait, when } from "/dom.js";
import { table as rowTable } from "/rows.js";

export function snapshotsView(at, about, state) {
  if (!about.snapshots) return [h("p", { cls: "panel empty" }, "A table of this layout keeps no snapshots.")];
  const body = h("tbody", {}), more = h("div", {}), out = h("div", {});
  const chosen = { from: null, to: null };
  const compare = h("button", { cls: "act main", type: "button", disabled: true, onclick: () => showDiff(at, chosen, out) }, "Compare");

  const pick = (side, version) => {
    chosen[side] = version;
    compare.disabled = chosen.from === null || chosen.to === null || chosen.from === chosen.to;
  };
  const radio = (side, row, checked) => h("td", { cls: "tight" }, h("input", { type: "radio", name: side, value: row.version, checked, "aria-label": `${side} snapshot ${row.version}`, onchange: () => pick(side, row.version) }));

  async function load(before) {
    more.replaceChildren(wait("Reading the history"));
    try {
      const data = await get("snapshots", { table: at.table, before, limit: 50 });
      data.snapshots.forEach((row, index) => {
        const first = before === undefined && index === 0, second = before === undefined && index === 1;
        if (first) pick("to", row.version);
        if (second) pick("from", row.version);
        body.append(h("tr", {}, radio("from", row, second), radio("to", row, first),
          h("td", { cls: "num" }, h("a", { href: `#/t/${encodeURIComponent(at.table)}/partitions/${row.version}` }, row.version)),
          h("td", { cls: "tight", title: exact(row.timestamp) }, when(row.timestamp)),
          h("td", {}, h("span", { cls: `tag ${kind(row.operation)}` }, row.operation || "other"), " ", row.tags.map((name) => h("span", { cls: "tag accent" }, name))),
          h("td", { cls: "num plus" }, row.rows_added ? `+${number(row.rows_added)}` : ""),
          h("td", { cls: "num minus" }, row.rows_deleted ? `−${number(row.rows_deleted)}` : ""),
          h("td", { cls: "num" }, row.partitions ? number(row.partitions) : ""),
          h("td", { cls: "muted" }, row.by || "")));
      });
      more.replaceChildren(data.next ? h("button", { cls: "act small", type: "button", onclick: () => load(data.next) }, "Older snapshots") : "");
      if (before === undefined && data.snapshots.length > 1) showDiff(at, chosen, out);
    } catch (error) {
      more.replaceChildren(failed(error));
    }
  }
  load();
  const heads = ["from", "to", "snapshot", "when", "what", "added", "deleted", "partitions", "by"];
  return [
    h("section", { cls: "panel" },
      h("header", {}, h("h2", {}, "Snapshots"), h("span", { cls: "muted" }, "A number grows with each commit and may leave some out. Open one to see the table as it was."), h("span", { cls: "end" }, compare)),
      h("div", { cls: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, heads.map((name) => h("th", { scope: "col", cls: ["snapshot", "added", "deleted", "partitions"].includes(name) ? "num" : null }, name)))), body)), more),
    out,
  ];
}

const kind = (operation) => ({ append: "good", delete: "bad", overwrite: "lit", update: "lit", upsert: "lit", merge: "lit", define: "accent" })[operation] || "";

async function showDiff(at, chosen, out) {
  await fill(out, "Comparing", async () => {
    const data = await get("diff", { table: at.table, from: chosen.from, to: chosen.to });
    const delta = (pair, show) => `${show(pair[0])} → ${show(pair[1])}`;
    say(`Compared snapshots ${data.from} and ${data.to}`);
    const rows = h("div", {});
    const sameSpec = JSON.stringify(data.partition_by[0]) === JSON.stringify(data.partition_by[1]);
    return h("section", { cls: "panel", id: "diff" },
      h("header", {}, h("h2", {}, `From ${data.from} to ${data.to}`),
        h("span", { cls: "end" }, h("button", { cls: "act small", type: "button", onclick: () => showRows(at, data, rows) }, "Show changed rows"))),
      h("div", { cls: "tiles" },
        tile("rows", delta(data.rows, number)), tile("size", delta(data.bytes, size)), tile("partitions", delta(data.partitions, number)),
        tile("partitions touched", `${number(data.counts.added)} new, ${number(data.counts.changed)} changed, ${number(data.counts.removed)} gone`)),
      data.columns.length ? h("ul", {}, data.columns.map((each) => h("li", {}, h("b", {}, each.name), ` ${each.kind} (${each.detail})`))) : null,
      sameSpec ? null : h("p", {}, "Partitioning: ", h("code", {}, data.partition_by[0].join(", ") || "none"), " → ", h("code", {}, data.partition_by[1].join(", ") || "none")),
      data.leaves.length
        ? h("div", { cls: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["partition", "", "rows before", "rows after", "difference"].map((name, index) => h("th", { scope: "col", cls: index > 1 ? "num" : null }, name)))),
          h("tbody", {}, data.leaves.map((leaf) => h("tr", {}, h("td", { cls: "mono" }, leaf.name), h("td", {}, h("span", { cls: `tag ${{ added: "good", removed: "bad" }[leaf.kind] || "lit"}` }, leaf.kind)),
            h("td", { cls: "num" }, leaf.rows[0] === null ? "" : number(leaf.rows[0])), h("td", { cls: "num" }, leaf.rows[1] === null ? "" : number(leaf.rows[1])),
            h("td", { cls: `num ${leaf.delta < 0 ? "minus" : leaf.delta > 0 ? "plus" : "muted"}` }, leaf.delta > 0 ? `+${number(leaf.delta)}` : number(leaf.delta)))))))
        : h("p", { cls: "empty" }, "No partition is different."),
      rows);
  });
}

const tile = (name, value) => h("div", { cls: "tile" }, h("b", {}, value), h("span", {}, name));

async function showRows(at, data, out) {
  await fill(out, "Reading the rows that changed", async () => {
    const found = await get("changes", { table: at.table, from: data.from, to: data.to, limit: 20 });
    if (!found.rows.length) return h("p", { cls: "empty" }, "No row is different.");
    const columns = found.columns.map((name) => ({ name, type: "", kind: "value" }));
    const item = (each) => (typeof each === "number" ? (Number.isInteger(each) ? each : +each.toPrecision(3)) : typeof each === "object" ? JSON.stringify(each) : each);
    const list = (all) => `[${all.slice(0, 3).map(item).join(", ")}${all.length > 3 ? `, … ${all.length}` : ""}]`;
    const short = found.rows.map((row) => Object.fromEntries(Object.entries(row).map(([key, value]) => [key, Array.isArray(value) ? list(value) : value])));
    return rowTable({ columns, rows: short }, null, at);
  });
}

export function schemaView(at) {
  const out = h("div", {});
  fill(out, "Reading the definition", async () => {
    const data = await get("schema", at);
    const specs = [...new Set(data.specs.map((row) => row.spec_id))].reverse();
    return [
      h("div", { cls: "split" },
        panel("Columns", h("div", { cls: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["column", "type", "NULL", "field id"].map((name) => h("th", { scope: "col" }, name)))),
          h("tbody", {}, data.columns.map((column) => h("tr", {}, h("td", {}, h("b", {}, column.name)), h("td", { cls: "mono" }, column.type), h("td", { cls: "muted" }, column.nullable ? "allowed" : "refused"), h("td", { cls: "muted" }, column.id))))))),
        panel("Partitioning", specs.map((spec) => h("div", { cls: "line" },
          h("div", {}, h("b", {}, `v${spec}`), " ", spec === data.current_spec ? h("span", { cls: "tag good" }, "new rows") : h("span", { cls: "tag" }, "older")),
          h("div", {}, data.specs.filter((row) => row.spec_id === spec).map((row) => h("p", {}, h("code", {}, row.field_id), h("span", { cls: "muted" }, ` ${row.transform} of ${row.source}, ${row.result_type}`)))))))),
      panel("History of the definition", data.history.length ? data.history.map((entry) => h("div", { cls: "line" },
        h("div", {}, h("b", {}, `snapshot ${entry.version}`), h("p", { cls: "muted", title: exact(entry.timestamp) }, when(entry.timestamp))),
        h("div", {}, entry.partition_by ? h("p", {}, "partitioned by ", h("code", {}, entry.partition_by.join(", ") || "nothing")) : null,
          h("ul", {}, entry.columns.map((change) => h("li", {}, h("b", {}, change.name), ` ${change.kind} (${change.detail})`)))))) : h("p", { cls: "empty" }, "Only the definition of now is known.")),
    ];
  });
  return [out];
}
