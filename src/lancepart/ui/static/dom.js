// Elements, requests and numbers as text.

export function h(tag, attrs = {}, ...children) {
  const svg = ["svg", "rect", "path", "line", "text", "title", "g"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attrs)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "width%") node.style.width = `${value}%`;
    else if (key === "indent") node.style.paddingLeft = `${value}px`;
    else node.setAttribute(key === "cls" ? "class" : key, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

export async function get(name, params = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") query.set(key, value);
  }
  let answer;
  try {
    answer = await fetch(`/api/${name}?${query}`, { credentials: "same-origin" });
  } catch {
    throw new Error("The server does not answer. Is lancepart ui still running?");
  }
  const body = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (!answer.ok) throw new Error(body.error || `the server answered ${answer.status}`);
  return body;
}

export const imageUrl = (params) => `/api/image?${new URLSearchParams(params)}`;

const whole = new Intl.NumberFormat("en-US");
export const number = (value) => (value === null || value === undefined ? "?" : whole.format(value));

// A number with seven digits, or with two decimals where it is so large, as the command line writes it.
export function decimal(value) {
  if (Number.isInteger(value)) return String(value);
  return String(Number(Math.abs(value) >= 1e5 ? value.toFixed(2) : value.toPrecision(7)));
}

export function size(bytes) {
  if (bytes === null || bytes === undefined) return "?";
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (bytes >= 1000 && unit < units.length - 1) { bytes /= 1000; unit += 1; }
  return unit === 0 ? `${Math.round(bytes)} B` : `${bytes.toFixed(1)} ${units[unit]}`;
}

export const measured = (value, measure) => (measure === "bytes" ? size(value) : number(Math.round(value)));
export const percent = (part) => `${(100 * part).toFixed(part < 0.1 ? 1 : 0)} %`;

export function when(text) {
  const moment = new Date(text);
  const seconds = (Date.now() - moment) / 1000;
  const steps = [[60, "second", 1], [3600, "minute", 60], [86400, "hour", 3600], [86400 * 60, "day", 86400]];
  for (const [limit, name, unit] of steps) {
    if (seconds < limit) {
      const count = Math.max(0, Math.floor(seconds / unit));
      return `${count} ${name}${count === 1 ? "" : "s"} ago`;
    }
  }
  return moment.toISOString().slice(0, 10);
}

export const exact = (text) => new Date(text).toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC");

// What is waited for; after two seconds also how long it takes already.
export function wait(text) {
  const spent = h("span", { "aria-hidden": "true" }), node = h("p", { cls: "wait", role: "status" }, text, spent), start = Date.now();
  const clock = setInterval(() => {
    const seconds = Math.round((Date.now() - start) / 1000);
    if (!node.isConnected && seconds > 0) clearInterval(clock);
    else if (seconds >= 2) spent.textContent = `, ${seconds} s`;
  }, 500);
  return node;
}
export const failed = (error) => h("p", { cls: "error", role: "alert" }, error.message);
export const say = (text) => { document.getElementById("say").textContent = text; };

export function panel(title, ...rest) {
  return h("section", { cls: "panel" }, h("header", {}, h("h2", {}, title)), ...rest);
}

export async function fill(node, text, make) {
  node.replaceChildren(wait(text));
  try {
    node.replaceChildren(...[await make()].flat());
  } catch (error) {
    node.replaceChildren(failed(error));
  }
}

export function chooser(label, choices, value, change) {
  const select = h("select", { "aria-label": label, onchange: () => change(select.value) },
    choices.map(([key, text]) => h("option", { value: key, selected: key === value }, text)));
  return select;
}

const tip = document.getElementById("tip");
export function showTip(text, x, y) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(6, Math.min(x + 14, innerWidth - box.width - 10))}px`;
  tip.style.top = `${y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18}px`;
}
