// The page: which table, which view; the address says both.

import { failed, get, h, number, size, wait } from "/dom.js";
import { healthView, indicesView } from "/about.js";
import { schemaView, snapshotsView } from "/history.js";
import { partitionsView } from "/partitions.js";
import { rowsView } from "/rows.js";

const VIEWS = {
  partitions: ["Partitions", partitionsView],
  rows: ["Rows and search", rowsView],
  snapshots: ["Snapshots", snapshotsView],
  schema: ["Schema", schemaView],
  indices: ["Indices", indicesView],
  health: ["Health", healthView],
};
const head = document.getElementById("head"), view = document.getElementById("view"), tables = document.getElementById("tables");
const find = document.getElementById("find");
const states = new Map();
let known = null, turn = 0;

function route() {
  const [, kind, table, name, version] = location.hash.split("/");
  return kind === "t" && decoded(table) ? { table: decoded(table), name: Object.hasOwn(VIEWS, name) ? name : "partitions", version: version || "" } : null;
}

function decoded(text) {
  try {
    return decodeURIComponent(text || "");
  } catch {
    return "";
  }
}

const address = (table, name, version) => `#/t/${encodeURIComponent(table)}/${name}${version ? `/${version}` : ""}`;

async function listTables() {
  try {
    const data = await get("tables", { contains: find.value.trim(), limit: 500 });
    document.getElementById("root").textContent = data.root;
    document.getElementById("find-box").hidden = !data.warehouse;
    const groups = new Map();
    for (const name of data.tables) {
      const at = name.endsWith("`") ? name.lastIndexOf(".`") : name.lastIndexOf(".");
      const space = at > 0 ? name.slice(0, at) : "";
      groups.set(space, [...(groups.get(space) || []), name]);
    }
    tables.replaceChildren(...[...groups].flatMap(([space, names]) => [
      space ? h("p", { cls: "group" }, space) : "",
      h("ul", {}, names.map((name) => h("li", {}, h("a", { href: address(name, "partitions"), "data-table": name }, name === "." ? data.root.split("/").filter(Boolean).at(-1) || data.root : name.slice(space ? space.length + 1 : 0))))),
    ]), data.total > data.tables.length ? h("p", { cls: "group" }, `${number(data.total - data.tables.length)} more: type a part of the name`) : "",
    data.total ? "" : h("p", { cls: "group" }, find.value ? "No table has that name." : "There are no tables yet."));
    mark();
    if (!route() && data.tables.length) location.replace(address(data.tables[0], "partitions"));
    else if (!data.total && !find.value) head.replaceChildren(h("h1", {}, "No tables yet"), h("p", { cls: "sub" }, "lancepart load makes one: see lancepart load --help."));
  } catch (error) {
    tables.replaceChildren(failed(error));
  }
}

function mark() {
  const now = route();
  for (const link of tables.querySelectorAll("a")) {
    if (now && link.dataset.table === now.table) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

async function show() {
  const now = route();
  if (!now) return;
  mark();
  const mine = ++turn;
  const at = { table: now.table, version: now.version };
  const key = JSON.stringify(at);
  if (known?.key !== key) {
    head.replaceChildren(h("h1", {}, now.table === "." ? "" : now.table), wait("Reading the manifest"));
    view.replaceChildren();
    try {
      const about = await get("table", at);
      if (mine !== turn) return;
      known = { key, about };
    } catch (error) {
      if (mine === turn) head.replaceChildren(h("h1", {}, now.table), failed(error));
      known = null;
      return;
    }
  }
  const { about } = known;
  const state = states.get(now.table) || { where: "", measure: "bytes", sort: "name" };
  states.set(now.table, state);
  const title = now.table === "." ? about.root.split("/").filter(Boolean).at(-1) : now.table;
  document.title = `${title} · lancepart`;
  head.replaceChildren(...header(title, about, now).filter(Boolean));
  const [, make] = VIEWS[now.name];
  view.setAttribute("role", "tabpanel");
  view.setAttribute("aria-labelledby", `tab-${now.name}`);
  view.replaceChildren(...make(at, about, state, (count) => badge("health", count)));
}

function header(title, about, now) {
  const tile = (name, value) => h("div", { cls: "tile" }, h("b", {}, value), h("span", {}, name));
  return [
    h("h1", {}, title),
    h("p", { cls: "sub" }, "partitioned by ", about.partition_by.length ? about.partition_by.map((each) => h("span", { cls: "chip" }, each)) : "nothing",
      h("span", { cls: "tag" }, about.layout === "manifest" ? `${about.transactions} transactions` : `${about.layout} layout`)),
    h("div", { cls: "tiles" }, tile("rows", number(about.rows)), tile("size", size(about.bytes)), tile("partitions", number(about.partitions)),
      tile("fragments", number(about.fragments)), tile("columns", number(about.columns.length)), about.snapshots ? tile("snapshot", about.version) : null),
    now.version ? h("p", { cls: "past" }, `You see the table as it was at snapshot ${about.version}.`, h("a", { href: address(now.table, now.name) }, "Back to now")) : null,
    tabs(now),
  ];
}

function tabs(now) {
  const names = Object.keys(VIEWS);
  const list = h("div", { cls: "tabs", role: "tablist", "aria-label": "Views" }, names.map((name) => h("button", {
    role: "tab", id: `tab-${name}`, type: "button", "aria-selected": String(name === now.name), "aria-controls": "view", tabindex: name === now.name ? "0" : "-1",
    onclick: () => { location.hash = address(now.table, name, now.version); },
  }, VIEWS[name][0])));
  list.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    event.preventDefault();
    const next = names[(names.indexOf(now.name) + move + names.length) % names.length];
    location.hash = address(now.table, next, now.version);
    addEventListener("shown", () => document.getElementById(`tab-${next}`)?.focus(), { once: true });
  });
  return list;
}

function badge(name, count) {
  const tab = document.getElementById(`tab-${name}`);
  tab?.querySelector(".count")?.remove();
  if (tab && count) tab.append(h("span", { cls: "count" }, count));
}

let typing;
find.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(listTables, 150); });
addEventListener("hashchange", async () => { await show(); dispatchEvent(new Event("shown")); });
listTables();
show();
