// Rows: some of a table, neighbours of vectors, matches of texts.

import { decimal, fill, get, h, imageUrl, number, panel, say, size } from "/dom.js";
import { sparkline } from "/charts.js";

export function rowsView(at, about, state) {
  const searchable = about.columns.filter((column) => column.kind === "vector" || column.kind === "text");
  const vectors = about.columns.filter((column) => column.kind === "vector");
  const out = h("div", {});
  const query = h("input", { id: "query", name: "q", placeholder: vectors.length ? "words, or a vector such as [0.1, 0.2, …]" : "words", autocomplete: "off", spellcheck: "false" });
  const column = h("select", { name: "column" }, h("option", { value: "" }, "by the query"),
    searchable.map((each) => h("option", { value: each.name }, `${each.name} (${each.kind})`)));
  const where = h("input", { name: "where", value: state.where || "", placeholder: "all rows", autocomplete: "off", spellcheck: "false" });
  const k = h("input", { name: "k", type: "number", min: 1, max: 100, value: 10, "aria-label": "How many" });

  async function show(name, params, title) {
    await fill(out, "Searching", async () => {
      const data = await get(name, { ...at, where: where.value.trim(), ...params });
      say(`${data.rows.length} rows`);
      return panel(title, data.rows.length ? table(data, neighbours, at) : h("p", { cls: "empty" }, "No rows match."));
    });
  }
  const neighbours = (row, name) => show("search", { like: row, column: name, k: k.value, version: state.version || at.version }, `Neighbours by ${name}`);
  const search = (event) => {
    event.preventDefault();
    if (!query.value.trim()) return browse();
    return show("search", { q: query.value.trim(), column: column.value, k: k.value }, "Best matches");
  };
  const browse = () => show("rows", { limit: 20 }, "Some rows");
  browse();
  return [
    h("section", { cls: "panel", "aria-label": "Search" },
      h("form", { cls: "bar", onsubmit: search },
        h("label", { cls: "grow" }, "Search for", query),
        h("label", {}, "in", column),
        h("label", { cls: "grow" }, "where", where),
        h("label", {}, "rows", k),
        h("button", { cls: "act main", type: "submit" }, "Search"))),
    out,
  ];
}

export function table(data, neighbours, at) {
  const columns = [...data.columns.filter((column) => FIRST.has(column.name)), ...data.columns.filter((column) => !FIRST.has(column.name))];
  return h("div", { cls: "scroll", tabindex: "0", role: "region", "aria-label": "Rows" }, h("table", {},
    h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col", cls: data.rows.some((row) => isNumber(row[column.name])) ? "num" : null }, label(column.name), h("small", {}, column.type))))),
    h("tbody", {}, data.rows.map((row) => h("tr", {}, columns.map((column) => cell(row, column, neighbours, { ...at, version: data.version })))))));
}

const LABELS = new Map([["_distance", "distance"], ["_score", "score"], ["_relevance_score", "relevance"], ["_change", "change"]]);
const FIRST = new Set([...LABELS.keys(), "_version"]);
const label = (name) => LABELS.get(name) || name;
// Integers above 2^53 come as texts, since a number of JavaScript would round them.
const isNumber = (value) => typeof value === "number" || (typeof value === "string" && /^-?\d{16,20}$/.test(value));

function cell(row, column, neighbours, at) {
  const value = row[column.name];
  if (value === null || value === undefined) return h("td", {}, h("span", { cls: "null" }, "NULL"));
  if (column.kind === "vector") {
    const line = sparkline(value.points, `vector of ${value.length} numbers`);
    const near = neighbours && h("button", { cls: "act small near", type: "button", onclick: () => neighbours(row._rowid, column.name) }, "Neighbours");
    return h("td", {}, h("span", { cls: "vec" }, line, h("small", {}, number(value.length)), near));
  }
  if (column.kind === "bytes") {
    if (!value.image) return h("td", { cls: "tight muted" }, size(value.bytes));
    const source = imageUrl({ ...at, row: row._rowid, column: column.name });
    return h("td", {}, h("img", { cls: "thumb", src: source, loading: "lazy", alt: `${column.name}, ${value.image}, ${size(value.bytes)}` }));
  }
  if (isNumber(value)) return h("td", { cls: "num" }, typeof value === "number" ? decimal(value) : value);
  return h("td", {}, typeof value === "object" ? JSON.stringify(value) : String(value));
}
