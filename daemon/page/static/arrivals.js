// The list of arriving documents with their states: one row per document, the latest first.
import { baseName, byId, clock, documentName, documentText, element, number, place } from "./text.js";

const SIGNS = { pending: "○", indexed: "●", failed: "✕", skipped: "–", removed: "⌫", moved: "→" };
const MOST = 200;
const FEW = 12;

export class Arrivals {
  constructor() {
    this.list = byId("arrival-list");
    this.note = byId("arrivals-note");
    this.empty = byId("arrivals-empty");
    this.more = byId("arrivals-more");
    this.rows = new Map();
    this.all = false;
    this.since = 0;
    this.more.addEventListener("click", () => {
      this.all = true;
      this.trim();
    });
  }

  // Adds the present documents, newest first. Keeps rows that events have added.
  begin(recent, pending) {
    for (const entry of [...pending, ...recent]) {
      const there = this.rows.get(entry.uri);
      if (there?.dataset.state === entry.state) continue;
      const row = this.row(entry.uri, entry.state, entry.committed_at, entry.title, entry.left_out.map((each) => each.text));
      this.rows.set(entry.uri, row);
      if (there) there.replaceWith(row);
      else this.list.append(row);
    }
    this.trim();
  }

  onEvent(event) {
    const state = event.event;
    if (!(state in SIGNS) || !event.uri) return;
    const before = this.rows.get(event.uri);
    const row = this.row(event.uri, state, event.time, before?.dataset.title ?? "", event.left_out ?? []);
    before?.remove();
    row.classList.add("fresh");
    this.rows.delete(event.uri);
    this.rows.set(event.uri, row);
    this.list.prepend(row);
    if (state === "indexed") this.since += 1;
    this.note.textContent = this.since ? `${number.format(this.since)} indexed since you opened this page` : "";
    this.trim();
  }

  // `leftOut`: sentences about content of the document that no passage contains.
  row(uri, state, time, title, leftOut) {
    const name = title || baseName(uri);
    return element(
      "li",
      { class: "arrival", "data-state": state, "data-uri": uri.slice(0, 2000), "data-title": title.slice(0, 200) },
      element("span", { class: "state", "aria-hidden": "true" }, SIGNS[state] ?? "?"),
      documentName(name, { cls: "name one", most: 90 }),
      documentName(place(uri), { cls: "place one", most: 140 }),
      element("span", { class: "when" }, element("span", {}, state), time ? ` ${clock(time)}` : ""),
      leftOut.length ? documentText(`left out: ${leftOut.join(" · ")}`, { cls: "left-out", most: 600 }) : null,
    );
  }

  trim() {
    while (this.rows.size > MOST) {
      const last = this.list.lastElementChild;
      this.rows.delete([...this.rows].find(([, row]) => row === last)[0]);
      last.remove();
    }
    let place = 0;
    for (const row of this.list.children) row.hidden = !this.all && ++place > FEW;
    this.more.hidden = this.all || this.rows.size <= FEW;
    this.empty.hidden = this.rows.size > 0;
  }
}
