// The list of failed documents, with the reasons and a button to try them again.
import { get, post } from "./api.js";
import { baseName, byId, documentName, documentText, element, number, place } from "./text.js";

const MOST = 50;

export class Failures {
  constructor() {
    this.card = byId("failures");
    this.list = byId("failure-list");
    this.note = byId("failures-note");
    this.timer = 0;
    this.mayRetry = false;
    byId("retry-all").addEventListener("click", () => this.retry(undefined, byId("retry-all")));
  }

  // Delayed, because many events come at the same time.
  loadSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load().catch((error) => (this.note.textContent = error.message)), 250);
  }

  async load() {
    const answer = await get(`/v1/documents?state=failed&limit=${MOST}`);
    const focused = document.activeElement?.closest?.(".failure")?.dataset.uri;
    this.list.replaceChildren(...answer.documents.map((entry) => this.row(entry)));
    this.card.hidden = answer.documents.length === 0;
    byId("retry-all").hidden = !this.mayRetry || !answer.documents.some((entry) => entry.retryable);
    if (answer.next) this.note.textContent = `The first ${MOST}; \`hippoctl ls --state failed\` lists all.`;
    if (focused) [...this.list.children].find((row) => row.dataset.uri === focused)?.querySelector("button")?.focus();
  }

  row(entry) {
    const name = entry.title || baseName(entry.uri);
    const retry = !entry.retryable || !this.mayRetry ? null : element("button", { type: "button" }, "Retry", element("span", { class: "hidden" }, ` ${name.slice(0, 80)}`));
    retry?.addEventListener("click", () => this.retry(entry.uri, retry));
    const tries = `tried ${number.format(entry.attempts)} ${entry.attempts === 1 ? "time" : "times"}`;
    return element(
      "li",
      { class: "failure", "data-uri": entry.uri.slice(0, 2000) },
      documentName(name, { cls: "name one", most: 90 }),
      retry ?? element("span", {}),
      documentText(entry.error ?? "no reason was given", { tag: "p", cls: "reason", most: 600 }),
      element("span", { class: "place" }, documentName(place(entry.uri), { cls: "one", most: 140 }), retry || entry.retryable ? tries : `${tries}; hippod tries again when the document changes`),
    );
  }

  async retry(uri, button) {
    button.disabled = true;
    try {
      const { requeued } = await post("/v1/retry", uri === undefined ? {} : { uris: [uri] });
      this.note.textContent = requeued ? `${number.format(requeued)} will be tried again.` : "hippod is already trying again.";
    } catch (error) {
      this.note.textContent = error.message;
    }
    button.disabled = false;
    this.loadSoon();
  }
}
