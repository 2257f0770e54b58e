// The graph around a question: nodes sized and coloured by PageRank, edges by kind, more of it on demand, a path lit up.
import { post } from "./api.js";
import { between, colour, dress, Plot, Range, Source, whenPaletteChanges } from "./drawing.js";
import { by, el, line, ms, named, number, percent, place, said } from "./text.js";

const MOST_NODES = 2000;
const MOST_EDGES = 8000;
const MORE = 40;
const LISTED = 60;
const LABELS = 40;
const RIMS = 800;
const KINDS = ["context", "synonym", "relation"];
// Edges drawn while the picture is being dragged, those of most PageRank; the others are back when it rests.
const MOVING = 2000;
const FAINT = KINDS.map((kind) => `${kind}-faint`);

export class Graph {
  constructor(search) {
    this.search = search;
    this.canvas = by("canvas");
    this.nodes = new Map();
    this.edges = new Map();
    this.lit = [];
    this.picked = null;
    this.about = {};
    this.under = null;
    this.turn = 0;
    this.worker = layoutWorker();
    this.waiting = new Map();
    this.worker.onmessage = ({ data }) => {
      this.waiting.get(data.id)?.(data);
      this.waiting.delete(data.id);
    };
    by("nodes").addEventListener("change", () => this.about.query && this.ask(this.about).catch((error) => this.say(error.message)));
    by("nearer").addEventListener("click", () => this.zoom(0.75));
    by("farther").addEventListener("click", () => this.zoom(1 / 0.75));
    by("whole").addEventListener("click", () => this.fit());
  }

  // The neighbourhood of a question, in place of what is shown.
  async ask(about) {
    this.under?.abort();
    const under = (this.under = new AbortController());
    this.about = about;
    const most = Number(by("nodes").value);
    const answer = await post("/v1/graph", { ...about, nodes: most }, under.signal);
    if (under !== this.under) return;
    this.nodes.clear();
    this.edges.clear();
    this.lit = [];
    this.picked = null;
    this.take(answer);
    this.told = `${count(this.nodes.size, "node")} around the question and ${count(this.edges.size, "edge")} of the ` +
      `${number.format(answer.edges_between)} between them · ${ms(answer.took_ms)}${answer.note ? ` · ${line(answer.note, 300)}` : ""}`;
    by("graph-empty").hidden = this.nodes.size > 0;
    by("graph").hidden = by("graph-tools").hidden = this.nodes.size === 0;
    if (!this.nodes.size) {
      by("graph-empty").textContent = "No node of the graph belongs to this question.";
      return;
    }
    await this.draw(true);
  }

  // The neighbours of one node, beside what is shown.
  async expand(node) {
    const room = Math.min(MORE, MOST_NODES - this.nodes.size);
    if (room < 1) return this.say(`${number.format(MOST_NODES)} nodes are shown, as many as there may be; search to begin anew.`);
    const { query, mode, as_of } = this.about;
    const which = node.kind === "phrase" ? { phrase: node.text } : { passage: node.id.slice("passage:".length) };
    try {
      const answer = await post("/v1/graph", { query, mode, as_of, ...which, nodes: room + 1 });
      const before = this.nodes.size;
      const at = { x: node.x, y: node.y };
      this.take(answer, at);
      await this.draw(false);
      this.pick(node.id);
      const more = this.nodes.size - before;
      const all = answer.neighbours ?? 0;
      this.say(more ? `${count(more, "node")} more, of ${number.format(all)} neighbours.` : `All of its neighbours that fit are shown (${number.format(all)} in all).`);
    } catch (error) {
      this.say(error.message);
    }
  }

  take(answer, at) {
    for (const node of answer.nodes) {
      const known = this.nodes.get(node.id);
      if (known) {
        Object.assign(known, node);
      } else if (this.nodes.size < MOST_NODES) {
        const angle = this.nodes.size * 2.399963; // the golden angle: a spiral, the heaviest in the middle
        const far = at ? 0.8 : 0.6 * Math.sqrt(this.nodes.size + 1);
        this.nodes.set(node.id, {
          ...node,
          fixed: false,
          x: (at?.x ?? 0) + far * Math.cos(angle),
          y: (at?.y ?? 0) + far * Math.sin(angle),
        });
      }
    }
    for (const edge of answer.edges) {
      const key = JSON.stringify([edge.source, edge.target, edge.type]);
      if (!this.nodes.has(edge.source) || !this.nodes.has(edge.target)) continue;
      if (this.edges.size < MOST_EDGES || this.edges.has(key)) this.edges.set(key, edge);
    }
  }

  async draw(anew) {
    const nodes = [...this.nodes.values()];
    const edges = [...this.edges.values()];
    const place = new Map(nodes.map((node, i) => [node.id, i]));
    const most = Math.max(...nodes.map((node) => node.mass ?? 0), 1e-12);
    this.canvas.setAttribute("aria-busy", "true");
    const found = await this.layout({
      n: nodes.length,
      xs: nodes.map((node) => node.x),
      ys: nodes.map((node) => node.y),
      charges: Float64Array.from(nodes, (node) => 1 + 4 * Math.sqrt((node.mass ?? 0) / most)),
      placed: nodes.map((node) => (node.fixed ? 1 : 0)),
      sources: Int32Array.from(edges, (edge) => place.get(edge.source)),
      targets: Int32Array.from(edges, (edge) => place.get(edge.target)),
      weights: Float32Array.from(edges, (edge) => (edge.type === "context" ? 0.6 : Math.min(2, 0.8 * Math.sqrt(edge.weight)))),
    });
    if (!found) return;
    nodes.forEach((node, i) => Object.assign(node, { x: found.x[i], y: found.y[i], fixed: true }));
    await this.make();
    this.fill();
    if (anew) this.fit();
    else this.labels();
    this.list();
    by("picked").replaceChildren();
    by("graph-summary").textContent = this.told;
    this.canvas.dataset.about = this.about.query;
    this.canvas.setAttribute("aria-busy", "false");
  }

  // Null where a later drawing has overtaken this one.
  layout(problem) {
    const id = ++this.turn;
    return new Promise((done) => {
      this.waiting.set(id, (data) => done(id === this.turn ? data : null));
      this.worker.postMessage({ id, ...problem });
    });
  }

  async make() {
    if (this.figure) return;
    const figure = (this.figure = new (Plot().Figure)({
      sizing_mode: "stretch_both",
      toolbar_location: null,
      tools: "pan,wheel_zoom,tap",
      active_scroll: "wheel_zoom",
      x_range: Range(-1, 1),
      y_range: Range(-1, 1),
      min_border: 0,
    }));
    for (const part of [figure.xaxis, figure.yaxis, figure.xgrid, figure.ygrid]) part.visible = false;
    const xy = [{ field: "x" }, { field: "y" }];
    const ends = ["x0", "y0", "x1", "y1"].map((field) => ({ field }));
    this.lines = {};
    for (const kind of [...FAINT, ...KINDS, "path"]) {
      const source = Source({ x0: [], y0: [], x1: [], y1: [], width: [] });
      this.lines[kind] = figure.segment(...ends, { source, line_width: { field: "width" }, line_cap: "round" });
    }
    this.halo = figure.scatter(...xy, { source: Source({ x: [], y: [], size: [] }), size: { field: "size" }, fill_color: null, line_width: 3 });
    this.dots = Source({ x: [], y: [], size: [], fill: [], marker: [] });
    const shape = { size: { field: "size" }, marker: { field: "marker" } };
    this.marks = figure.scatter(...xy, { source: this.dots, ...shape, fill_color: { field: "fill" }, line_color: colour("card") });
    this.rings = figure.scatter(...xy, { source: Source({ x: [], y: [], size: [], marker: [] }), ...shape, fill_color: null, line_width: 3 });
    this.marks.selection_glyph = this.marks.nonselection_glyph = null;
    this.names = figure.text(...xy, { field: "text" }, {
      source: Source({ x: [], y: [], text: [], dy: [] }),
      y_offset: { field: "dy" },
      text_align: "center",
      text_baseline: "bottom",
      text_font_size: "12px",
      background_fill_alpha: 0.6,
      text_font: 'system-ui, "Segoe UI", Roboto, sans-serif',
    });
    const tap = figure.toolbar.tools.find((tool) => tool.type === "TapTool");
    tap.renderers = [this.marks];
    this.dots.selected.properties.indices.change.connect(() => {
      const [at] = this.dots.selected.indices;
      if (at !== undefined) this.pick([...this.nodes.keys()][at]);
    });
    let timer = 0;
    for (const range of [figure.x_range, figure.y_range]) {
      range.change.connect(() => {
        clearTimeout(timer);
        timer = setTimeout(() => this.labels(), 150);
      });
    }
    this.keys();
    whenPaletteChanges(() => this.fill());
    dress(figure);
    await Plot().show(figure, this.canvas);
    new ResizeObserver(() => this.fit()).observe(this.canvas);
  }

  fill() {
    if (!this.figure) return;
    dress(this.figure);
    const nodes = [...this.nodes.values()];
    const most = Math.max(...nodes.map((node) => node.mass ?? 0), 1e-12);
    const [little, much] = [colour("mass-0"), colour("mass-1")];
    const lit = new Set(this.lit);
    for (const node of nodes) {
      const share = (node.mass ?? 0) / most;
      node.size = (node.kind === "passage" ? 8 : 7) + 24 * Math.sqrt(share);
      node.fill = between(little, much, share ** 0.35);
    }
    const shapes = (some) => ({
      x: some.map((node) => node.x),
      y: some.map((node) => node.y),
      size: some.map((node) => node.size),
      marker: some.map((node) => (node.kind === "phrase" ? "circle" : "square")),
    });
    this.dots.data = { ...shapes(nodes), fill: nodes.map((node) => node.fill) };
    // A rim tells nodes apart where they lie on one another; on very many it would cost as much as the nodes.
    this.marks.glyph.line_color = nodes.length > RIMS ? null : colour("card");
    this.rings.data_source.data = shapes(nodes.filter((node) => lit.has(node.id) || (node.reset && node.kind === "phrase")));
    this.rings.glyph.line_color = colour("lit");
    const on = new Set(this.lit.slice(1).map((id, i) => pair(id, this.lit[i])));
    const parts = Object.fromEntries([...FAINT, ...KINDS, "path"].map((kind) => [kind, { x0: [], y0: [], x1: [], y1: [], width: [] }]));
    const massOf = (edge) => edge.weight * ((this.nodes.get(edge.source).mass ?? 0) + (this.nodes.get(edge.target).mass ?? 0));
    const edges = [...this.edges.values()].map((edge) => [massOf(edge), edge]).sort(([a], [b]) => a - b);
    const faint = edges.length - MOVING;
    for (const [i, [, edge]] of edges.entries()) {
      const [a, b] = [this.nodes.get(edge.source), this.nodes.get(edge.target)];
      const kind = i < faint ? `${edge.type}-faint` : edge.type;
      const part = on.has(pair(edge.source, edge.target)) ? parts.path : parts[kind];
      part.x0.push(a.x);
      part.y0.push(a.y);
      part.x1.push(b.x);
      part.y1.push(b.y);
      part.width.push(part === parts.path ? 5 : Math.min(4, 1 + 0.5 * (edge.weight - 1)));
    }
    const crowd = this.edges.size > 1500 ? 0.35 : 0.8;
    for (const [kind, renderer] of Object.entries(this.lines)) {
      renderer.data_source.data = parts[kind];
      renderer.glyph.line_color = colour(kind === "path" ? "lit" : kind.replace("-faint", ""));
      renderer.glyph.line_alpha = kind === "path" ? 1 : lit.size ? crowd * 0.6 : crowd;
    }
    this.ring();
    Object.assign(this.canvas.dataset, { nodes: nodes.length, edges: this.edges.size, lit: parts.path.x0.length });
  }

  ring() {
    const node = this.nodes.get(this.picked);
    this.halo.glyph.line_color = colour("ink");
    this.halo.data_source.data = node ? { x: [node.x], y: [node.y], size: [node.size + 9] } : { x: [], y: [], size: [] };
  }

  // Names of the nodes that matter most, as far as they do not lie on one another.
  labels() {
    if (!this.figure) return;
    const { width, height } = this.canvas.getBoundingClientRect();
    const { x_range, y_range } = this.figure;
    const across = (x_range.end - x_range.start) / width || 1;
    const up = (y_range.end - y_range.start) / height || 1;
    const first = new Set([this.picked, ...this.lit]);
    const order = [...this.nodes.values()].sort((a, b) => first.has(b.id) - first.has(a.id) || (b.mass ?? 0) - (a.mass ?? 0));
    const taken = [];
    const data = { x: [], y: [], text: [], dy: [] };
    for (const node of order) {
      if (data.x.length >= LABELS) break;
      const px = (node.x - x_range.start) / across;
      const py = (y_range.end - node.y) / up - node.size / 2;
      if (px < 0 || px > width || py < 0 || py > height) continue;
      const text = line(node.text, 30);
      const half = 3.4 * text.length + 4;
      const box = [px - half, py - 19, px + half, py];
      if (taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])) continue;
      taken.push(box);
      data.x.push(node.x);
      data.y.push(node.y);
      data.text.push(text);
      data.dy.push(-node.size / 2 - 3);
    }
    this.names.glyph.text_color = colour("ink");
    this.names.glyph.background_fill_color = colour("sunk");
    this.names.data_source.data = data;
  }

  // All of it in view, with one measure for both directions.
  fit() {
    if (!this.figure || !this.nodes.size) return;
    const nodes = [...this.nodes.values()];
    const { width, height } = this.canvas.getBoundingClientRect();
    if (!width || !height) return;
    const xs = nodes.map((node) => node.x);
    const ys = nodes.map((node) => node.y);
    const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const unit = Math.max((x1 - x0) / Math.max(width - 120, 50), (y1 - y0) / Math.max(height - 90, 50), 1e-3);
    this.look((x0 + x1) / 2, (y0 + y1) / 2, unit * width, unit * height);
  }

  look(x, y, width, height) {
    this.figure.x_range.setv({ start: x - width / 2, end: x + width / 2 });
    this.figure.y_range.setv({ start: y - height / 2, end: y + height / 2 });
    this.labels();
  }

  zoom(factor, right = 0, up = 0) {
    if (!this.figure) return;
    const { x_range, y_range } = this.figure;
    const [width, height] = [x_range.end - x_range.start, y_range.end - y_range.start];
    const [x, y] = [(x_range.start + x_range.end) / 2 + right * width, (y_range.start + y_range.end) / 2 + up * height];
    this.look(x, y, width * factor, height * factor);
  }

  keys() {
    const step = 0.1;
    const moves = {
      ArrowLeft: [1, -step, 0],
      ArrowRight: [1, step, 0],
      ArrowUp: [1, 0, step],
      ArrowDown: [1, 0, -step],
      "+": [0.75],
      "=": [0.75],
      "-": [1 / 0.75],
    };
    this.canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "0") this.fit();
      else if (moves[event.key]) this.zoom(...moves[event.key]);
      else return;
      event.preventDefault();
    });
    // A wheel scrolls the page, until somebody has clicked into the graph.
    this.canvas.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && document.activeElement !== this.canvas) event.stopImmediatePropagation();
      },
      { capture: true },
    );
    // Not before the library has taken it for a drag: while it redraws, a pointer that moves slowly is a long press to it.
    let from = null;
    this.canvas.addEventListener(
      "pointerdown",
      (event) => {
        this.canvas.focus({ preventScroll: true });
        from = event;
      },
      { capture: true },
    );
    this.canvas.addEventListener(
      "pointermove",
      (event) => {
        if (from && Math.hypot(event.clientX - from.clientX, event.clientY - from.clientY) > 20) this.rest(false);
      },
      { capture: true },
    );
    for (const end of ["pointerup", "pointercancel"]) {
      window.addEventListener(end, () => {
        from = null;
        this.rest(true);
      });
    }
  }

  // Whether the picture lies still, with all of its edges.
  rest(still) {
    for (const kind of FAINT) if (this.lines[kind].visible !== still) this.lines[kind].visible = still;
  }

  pick(id) {
    const node = this.nodes.get(id);
    if (!node) return;
    this.picked = id;
    this.ring();
    this.labels();
    for (const button of by("node-list").querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.node === id));
    const facts = [node.kind];
    if (node.mass !== undefined) facts.push(`PageRank ${percent(node.mass)}`);
    if (node.reset && node.kind === "phrase") facts.push("a seed");
    facts.push(count(node.links, "edge"));
    if (node.rank) facts.push(`found as number ${node.rank}`);
    const expand = el("button", { type: "button" }, "Expand");
    expand.addEventListener("click", () => this.expand(node));
    const acts = el("div", { class: "acts" }, expand);
    if (node.kind === "phrase") {
      const ask = el("button", { type: "button" }, "Search for it");
      ask.addEventListener("click", () => this.search.ask(node.text));
      acts.append(ask);
    }
    const parts = [named(node.text, { tag: "h3" }), el("p", { class: "note" }, facts.join(" · "))];
    if (node.document) parts.push(named(place(node.document), { tag: "p", cls: "note" }));
    if (node.excerpt) parts.push(said(node.excerpt, { tag: "p", most: 400 }));
    const stated = this.statements(id);
    if (stated.length) parts.push(el("ul", {}, ...stated.map((text) => el("li", {}, said(text, { most: 200 })))));
    by("picked").replaceChildren(...parts, acts);
  }

  // A few of the triples that the node's edges stand for.
  statements(id) {
    const found = [];
    for (const edge of this.edges.values()) {
      if (edge.source !== id && edge.target !== id) continue;
      for (const triple of edge.triples ?? []) {
        const text = [triple.subject, triple.predicate, triple.object].map((part) => line(part, 60)).join(" · ");
        if (found.length < 5 && !found.includes(text)) found.push(text);
      }
    }
    return found;
  }

  list() {
    const heaviest = [...this.nodes.values()].sort((a, b) => (b.mass ?? 0) - (a.mass ?? 0)).slice(0, LISTED);
    by("node-list").replaceChildren(
      ...heaviest.map((node) => {
        const value = node.mass === undefined ? node.kind : percent(node.mass);
        const button = el("button", { type: "button", "aria-pressed": "false" }, named(node.text, { cls: "one", most: 60 }), el("span", { class: "value" }, value));
        button.dataset.node = node.id;
        button.addEventListener("click", () => this.pick(node.id));
        return el("li", {}, button);
      }),
    );
    this.canvas.setAttribute(
      "aria-label",
      `Graph of ${count(this.nodes.size, "node")}. Arrow keys move it, plus and minus zoom, 0 shows all of it; the list below has its nodes.`,
    );
  }

  // Lights the way along these nodes; none puts it out.
  light(ids) {
    this.lit = ids.every((id) => this.nodes.has(id)) ? ids : [];
    if (!this.figure) return;
    this.fill();
    this.labels();
    if (ids.length && !this.lit.length) this.say("That way leads through nodes that are not shown; show more of them.");
    else if (ids.length) this.say(`The way is lit up: ${ids.map((id) => line(this.nodes.get(id).text, 50)).join(" → ")}`);
    else this.say(this.told);
  }

  say(text) {
    by("graph-summary").textContent = text;
  }
}

function layoutWorker() {
  const url = "/page/layout.js";
  // Browsers that know trusted types let only this policy name a script, and it knows one.
  const policy = window.trustedTypes?.createPolicy("hippod", { createScriptURL: () => url });
  return new Worker(policy ? policy.createScriptURL("") : url);
}

function pair(a, b) {
  return a < b ? JSON.stringify([a, b]) : JSON.stringify([b, a]);
}

function count(many, what) {
  return `${number.format(many)} ${what}${many === 1 ? "" : "s"}`;
}
