// Inserts text from documents into the page: always as text in separate elements, never as markup.

// Control characters, and marks that change the direction of the following text: in a name, they can only deceive.
const UNSEEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;
const SPACE = /[\s\u2028\u2029]+/g;

// Returns the text without invisible characters, cut at `most` characters.
export function shown(text, most = 300) {
  const head = String(text ?? "").slice(0, most + 1).replace(UNSEEN, "");
  const whole = String(text ?? "").length <= most;
  return whole ? head : head.slice(0, most).replace(/[\ud800-\udbff]$/, "") + "…";
}

// Joins wrapped lines; keeps lists, tables and paragraphs.
export function unwrapped(text) {
  // Anchored: a search from every character of a line would take quadratic time.
  return text.replace(/^([^\r\n]{55,})\r?\n(?=[^\s\-*#|>\d])/gm, "$1 ");
}

// Returns the text as one line, for names.
export function line(text, most = 120) {
  return shown(String(text ?? "").slice(0, most * 4).replace(SPACE, " ").trim(), most);
}

// Returns an element with attributes, event handlers and children; strings become text nodes.
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

// Return a document's text or name, isolated so that its direction does not affect the text after it.
export function documentText(text, { tag = "span", most = 300, cls = "" } = {}) {
  return element(tag, { class: `said ${cls}`.trim(), dir: "auto" }, shown(text, most));
}

export function documentName(text, { tag = "span", most = 120, cls = "" } = {}) {
  return element(tag, { class: `said ${cls}`.trim(), dir: "auto" }, line(text, most) || "(no title)");
}

// Returns the last two parts of a file's URI ("people/odile-brandt.md"), or the whole of another URI.
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

// "09:14:05", with the date if it is not today.
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
