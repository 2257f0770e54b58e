// How text that came from documents gets onto the page: as text, in elements of its own, never as markup.

// Controls, and the marks that change the direction of what follows: in a name they serve to deceive alone.
const UNSEEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;
const SPACE = /[\s\u2028\u2029]+/g;

// The text without what cannot be seen, cut at `most` characters.
export function shown(text, most = 300) {
  const head = String(text ?? "").slice(0, most + 1).replace(UNSEEN, "");
  const whole = String(text ?? "").length <= most;
  return whole ? head : head.slice(0, most).replace(/[\ud800-\udbff]$/, "") + "…";
}

// Lines that were broken for their width alone are joined; lists, tables and paragraphs stay as they are.
export function unwrapped(text) {
  // Anchored, because a search that begins at every character of a long line takes time in proportion to its square.
  return text.replace(/^([^\r\n]{55,})\r?\n(?=[^\s\-*#|>\d])/gm, "$1 ");
}

// The same as one line, for names.
export function line(text, most = 120) {
  return shown(String(text ?? "").slice(0, most * 4).replace(SPACE, " ").trim(), most);
}

// An element with properties, attributes and children; strings among the children become text.
export function element(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") made.className = value;
    else if (name === "on") for (const [event, heard] of Object.entries(value)) made.addEventListener(event, heard);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// A name or a text of a document's: isolated, so that its direction ends with it.
export function documentText(text, { tag = "span", most = 300, cls = "" } = {}) {
  return element(tag, { class: `said ${cls}`.trim(), dir: "auto" }, shown(text, most));
}

export function documentName(text, { tag = "span", most = 120, cls = "" } = {}) {
  return element(tag, { class: `said ${cls}`.trim(), dir: "auto" }, line(text, most) || "(no title)");
}

// "people/odile-brandt.md" of a file's URI: its last two parts; the whole of any other.
export function place(uri) {
  if (!uri.startsWith("file://")) return uri;
  const path = uri.slice(7).split("/").slice(-2).join("/");
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

export function baseName(uri) {
  return place(uri).split("/").pop() || uri;
}

export const number = new Intl.NumberFormat("en");

// "1 edge", "2,000 edges".
export function count(many, what) {
  return `${number.format(many)} ${what}${many === 1 ? "" : "s"}`;
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

// "09:14:05", with the day where it is not today's.
export function clock(time) {
  const at = new Date(time);
  const today = DAY.format(at) === DAY.format(new Date());
  return today ? CLOCK.format(at) : `${DAY.format(at)}, ${CLOCK.format(at)}`;
}

export function milliseconds(value) {
  return value >= 1000 ? `${(value / 1000).toFixed(2)} s` : `${value.toFixed(value < 10 ? 1 : 0)} ms`;
}

// "40 s", "12 min", "3.5 h".
export function timeLeft(seconds) {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

export function percent(share) {
  if (share > 0 && share < 0.0005) return "< 0.1 %";
  return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
}

export const byId = (id) => document.getElementById(id);
