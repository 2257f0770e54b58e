// The choice of documents for a search: a folder, a source or a label of the memory.
import { get } from "./api.js";
import { byId, element, line } from "./text.js";

const KINDS = [["label", "labels", (name) => ({ labels: [name] })], ["source", "sources", (name) => ({ source: name })], ["in", "folders", (name) => ({ in: [`${name}/`] })]];
const SUGGESTED = 200;

export class Scope {
  constructor(changed) {
    this.input = byId("scope");
    this.known = new Map();
    this.input.addEventListener("focus", () => this.suggest());
    this.input.addEventListener("change", changed);
  }

  // Loads the choices when the field gets the focus.
  async suggest() {
    const found = await get("/v1/scopes");
    this.known.clear();
    for (const [kind, list, scope] of KINDS) {
      const most = [...found[list]].sort((a, b) => b.documents - a.documents).slice(0, SUGGESTED);
      for (const { name, documents } of most) this.known.set(`${kind}: ${line(name, 400)}`, { scope: scope(name), documents });
    }
    const options = [...this.known].map(([value, { documents }]) => element("option", { value, label: `${documents} documents` }));
    byId("scopes").replaceChildren(...options);
  }

  // Returns the scope for the API, undefined for all documents. Text that is no suggestion is a prefix of URIs.
  chosen() {
    const text = this.input.value.trim();
    if (!text) return undefined;
    const known = this.known.get(text);
    if (known) return known.scope;
    const [, kind, name] = /^(label|source|in):\s*(.+)$/.exec(text) ?? [null, "in", text];
    return kind === "label" ? { labels: [name] } : kind === "source" ? { source: name } : { in: [name] };
  }
}
