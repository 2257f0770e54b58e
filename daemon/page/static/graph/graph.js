// The graph around a question: loads it, extends it on demand, and shows a node's details and the path to a passage.
import { post } from "../api.js";
import { byPageRank, GraphData, NODES_MAX } from "./data.js";
import { GraphFigure } from "./figure.js";
import { byId, count, documentName, documentText, element, line, milliseconds, number, percent, place } from "../text.js";

const NEIGHBOURS_ADDED = 40;
const LISTED_NODES = 60;

export class Graph {
  constructor(search) {
    this.search = search;
    this.canvas = byId("canvas");
    this.data = new GraphData();
    this.figure = new GraphFigure(this.canvas, this.data, (id) => this.pick(id));
    this.about = {};
    this.summary = "";
    this.under = null;
    this.layouts = 0;
    this.worker = layoutWorker();
    this.waiting = new Map();
    this.worker.onmessage = ({ data }) => {
      this.waiting.get(data.id)?.(data);
      this.waiting.delete(data.id);
    };
    byId("nodes").addEventListener("change", () => this.about.query && this.ask(this.about).catch((error) => this.say(error.message)));
    byId("nearer").addEventListener("click", () => this.figure.zoom(0.75));
    byId("farther").addEventListener("click", () => this.figure.zoom(1 / 0.75));
    byId("whole").addEventListener("click", () => this.figure.fit());
  }

  // Replaces the graph by the neighbourhood of a question.
  async ask(about) {
    this.under?.abort();
    const under = (this.under = new AbortController());
    this.about = about;
    const most = Number(byId("nodes").value);
    const answer = await post("/v1/graph", { ...about, nodes: most }, under.signal);
    if (under !== this.under) return;
    this.data.clear();
    this.data.add(answer);
    this.summary = `${count(this.data.nodes.size, "node")} around the question and ${count(this.data.edges.size, "edge")} of the ` +
      `${number.format(answer.edges_between)} between them · ${milliseconds(answer.took_ms)}${answer.note ? ` · ${line(answer.note, 300)}` : ""}`;
    byId("graph-empty").hidden = this.data.nodes.size > 0;
    byId("graph").hidden = byId("graph-tools").hidden = this.data.nodes.size === 0;
    if (!this.data.nodes.size) {
      byId("graph-empty").textContent = "No node of the graph belongs to this question.";
      return;
    }
    await this.draw(true);
  }

  // Adds the neighbours of a node to the graph.
  async expand(node) {
    const room = Math.min(NEIGHBOURS_ADDED, NODES_MAX - this.data.nodes.size);
    if (room < 1) return this.say(`${number.format(NODES_MAX)} nodes are shown, the maximum; search again to start over.`);
    const { query, mode, as_of, scope } = this.about;
    const which = node.kind === "phrase" ? { phrase: node.text } : { passage: node.id.slice("passage:".length) };
    try {
      const answer = await post("/v1/graph", { query, mode, as_of, scope, ...which, nodes: room + 1 });
      const before = this.data.nodes.size;
      const at = { x: node.x, y: node.y };
      this.data.add(answer, at);
      await this.draw(false);
      this.pick(node.id);
      const more = this.data.nodes.size - before;
      const all = answer.neighbours ?? 0;
      this.say(more ? `${count(more, "node")} more, of ${number.format(all)} neighbours.` : `All of its neighbours that fit are shown (${number.format(all)} in all).`);
    } catch (error) {
      this.say(error.message);
    }
  }

  // `anew`: the graph was replaced, so it is fitted into the view.
  async draw(anew) {
    this.canvas.setAttribute("aria-busy", "true");
    const found = await this.layout(this.data.layoutProblem());
    if (!found) return;
    this.data.place(found);
    await this.figure.make();
    this.figure.draw();
    if (anew) this.figure.fit();
    else this.figure.drawLabels();
    this.listNodes();
    byId("picked").replaceChildren();
    byId("graph-summary").textContent = this.summary;
    this.canvas.dataset.about = this.about.query;
    this.canvas.setAttribute("aria-busy", "false");
  }

  // Returns positions; null if a later call has replaced this one.
  layout(problem) {
    const id = ++this.layouts;
    return new Promise((done) => {
      this.waiting.set(id, (data) => done(id === this.layouts ? data : null));
      this.worker.postMessage({ id, ...problem });
    });
  }

  pick(id) {
    const node = this.data.nodes.get(id);
    if (!node) return;
    this.data.picked = id;
    this.figure.markPicked();
    this.figure.drawLabels();
    for (const button of byId("node-list").querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.node === id));
    const facts = [node.kind];
    if (node.mass !== undefined) facts.push(`PageRank ${percent(node.mass)}`);
    if (node.reset && node.kind === "phrase") facts.push("a seed");
    facts.push(count(node.links, "edge"));
    if (node.rank) facts.push(`found as number ${node.rank}`);
    const expand = element("button", { type: "button" }, "Expand");
    expand.addEventListener("click", () => this.expand(node));
    const acts = element("div", { class: "acts" }, expand);
    if (node.kind === "phrase") {
      const ask = element("button", { type: "button" }, "Search for it");
      ask.addEventListener("click", () => this.search.ask(node.text));
      acts.append(ask);
    }
    const parts = [documentName(node.text, { tag: "h3" }), element("p", { class: "note" }, facts.join(" · "))];
    if (node.document) parts.push(documentName(place(node.document), { tag: "p", cls: "note" }));
    if (node.excerpt) parts.push(documentText(node.excerpt, { tag: "p", most: 400 }));
    const stated = this.data.statements(id);
    if (stated.length) parts.push(element("ul", {}, ...stated.map((text) => element("li", {}, documentText(text, { most: 200 })))));
    byId("picked").replaceChildren(...parts, acts);
  }

  listNodes() {
    const heaviest = [...this.data.nodes.values()].sort(byPageRank).slice(0, LISTED_NODES);
    byId("node-list").replaceChildren(
      ...heaviest.map((node) => {
        const value = node.mass === undefined ? node.kind : percent(node.mass);
        const button = element("button", { type: "button", "aria-pressed": "false" }, documentName(node.text, { cls: "one", most: 60 }), element("span", { class: "value" }, value));
        button.dataset.node = node.id;
        button.addEventListener("click", () => this.pick(node.id));
        return element("li", {}, button);
      }),
    );
    this.canvas.setAttribute(
      "aria-label",
      `Graph of ${count(this.data.nodes.size, "node")}. Arrow keys move it, plus and minus zoom, 0 shows all of it; the list below has its nodes.`,
    );
  }

  // Shows the path along these nodes; hides the path if there are none.
  showPath(ids) {
    this.data.path = ids.every((id) => this.data.nodes.has(id)) ? ids : [];
    this.figure.draw();
    this.figure.drawLabels();
    if (ids.length && !this.data.path.length) this.say("That path leads through nodes that are not shown; show more of them.");
    else if (ids.length) this.say(`The path is shown: ${ids.map((id) => line(this.data.nodes.get(id).text, 50)).join(" → ")}`);
    else this.say(this.summary);
  }

  say(text) {
    byId("graph-summary").textContent = text;
  }
}

function layoutWorker() {
  const url = "/page/graph/layout.js";
  // With trusted types, a browser accepts a script's URL only from this policy, which allows a single URL.
  const policy = window.trustedTypes?.createPolicy("hippod", { createScriptURL: () => url });
  return new Worker(policy ? policy.createScriptURL("") : url);
}
