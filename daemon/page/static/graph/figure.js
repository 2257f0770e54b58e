// The graph as a figure: nodes sized and coloured by PageRank, edges by type, names, and one path in another colour.
import { byPageRank, edgeKey } from "./data.js";
import { addGraphControls } from "./controls.js";
import { between, colour, dress, Plot, Range, Source, whenPaletteChanges } from "../plotting.js";
import { line } from "../text.js";

const LABELS_MAX = 40;
const OUTLINED_NODES_MAX = 800;
const TYPES = ["context", "mention", "synonym", "relation"];
// Number of edges drawn during a drag: those with the highest PageRank. The others return after the drag.
const MOVING_EDGES = 2000;
const FAINT_TYPES = TYPES.map((type) => `${type}-faint`);

export class GraphFigure {
  // `data`: the GraphData to draw. `pick` is called with the id of a clicked node.
  constructor(canvas, data, pick) {
    this.canvas = canvas;
    this.data = data;
    this.pick = pick;
    this.figure = null;
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
    for (const kind of [...FAINT_TYPES, ...TYPES, "path"]) {
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
      if (at !== undefined) this.pick([...this.data.nodes.keys()][at]);
    });
    let timer = 0;
    for (const range of [figure.x_range, figure.y_range]) {
      range.change.connect(() => {
        clearTimeout(timer);
        timer = setTimeout(() => this.drawLabels(), 150);
      });
    }
    addGraphControls(this.canvas, this);
    whenPaletteChanges(() => this.draw());
    dress(figure);
    await Plot().show(figure, this.canvas);
    new ResizeObserver(() => this.fit()).observe(this.canvas);
  }

  draw() {
    if (!this.figure) return;
    dress(this.figure);
    const nodes = [...this.data.nodes.values()];
    const most = Math.max(...nodes.map((node) => node.mass ?? 0), 1e-12);
    const [little, much] = [colour("mass-0"), colour("mass-1")];
    const lit = new Set(this.data.path);
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
    // Rims separate overlapping nodes. With very many nodes, they would take as long to draw as the nodes.
    this.marks.glyph.line_color = nodes.length > OUTLINED_NODES_MAX ? null : colour("card");
    this.rings.data_source.data = shapes(nodes.filter((node) => lit.has(node.id) || (node.reset && node.kind === "phrase")));
    this.rings.glyph.line_color = colour("lit");
    const on = new Set(this.data.path.slice(1).map((id, i) => edgeKey(id, this.data.path[i])));
    const parts = Object.fromEntries([...FAINT_TYPES, ...TYPES, "path"].map((kind) => [kind, { x0: [], y0: [], x1: [], y1: [], width: [] }]));
    const massOf = (edge) => edge.weight * ((this.data.nodes.get(edge.source).mass ?? 0) + (this.data.nodes.get(edge.target).mass ?? 0));
    const edges = [...this.data.edges.values()].map((edge) => [massOf(edge), edge]).sort(([a], [b]) => a - b);
    const faint = edges.length - MOVING_EDGES;
    for (const [i, [, edge]] of edges.entries()) {
      const [a, b] = [this.data.nodes.get(edge.source), this.data.nodes.get(edge.target)];
      const kind = i < faint ? `${edge.type}-faint` : edge.type;
      const part = on.has(edgeKey(edge.source, edge.target)) ? parts.path : parts[kind];
      part.x0.push(a.x);
      part.y0.push(a.y);
      part.x1.push(b.x);
      part.y1.push(b.y);
      part.width.push(part === parts.path ? 5 : Math.min(4, 1 + 0.5 * (edge.weight - 1)));
    }
    const crowd = this.data.edges.size > 1500 ? 0.35 : 0.8;
    for (const [kind, renderer] of Object.entries(this.lines)) {
      renderer.data_source.data = parts[kind];
      renderer.glyph.line_color = colour(kind === "path" ? "lit" : kind.replace("-faint", ""));
      renderer.glyph.line_alpha = kind === "path" ? 1 : lit.size ? crowd * 0.6 : crowd;
    }
    this.markPicked();
    Object.assign(this.canvas.dataset, { nodes: nodes.length, edges: this.data.edges.size, lit: parts.path.x0.length });
  }

  markPicked() {
    const node = this.data.nodes.get(this.data.picked);
    this.halo.glyph.line_color = colour("ink");
    this.halo.data_source.data = node ? { x: [node.x], y: [node.y], size: [node.size + 9] } : { x: [], y: [], size: [] };
  }

  // Draws the names of the heaviest nodes that do not overlap.
  drawLabels() {
    if (!this.figure) return;
    const { width, height } = this.canvas.getBoundingClientRect();
    const { x_range, y_range } = this.figure;
    const across = (x_range.end - x_range.start) / width || 1;
    const up = (y_range.end - y_range.start) / height || 1;
    const first = new Set([this.data.picked, ...this.data.path]);
    const order = [...this.data.nodes.values()].sort((a, b) => first.has(b.id) - first.has(a.id) || byPageRank(a, b));
    const taken = [];
    const data = { x: [], y: [], text: [], dy: [] };
    for (const node of order) {
      if (data.x.length >= LABELS_MAX) break;
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

  // Shows the whole graph, with the same scale in both directions.
  fit() {
    if (!this.figure || !this.data.nodes.size) return;
    const nodes = [...this.data.nodes.values()];
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
    this.drawLabels();
  }

  zoom(factor, right = 0, up = 0) {
    if (!this.figure) return;
    const { x_range, y_range } = this.figure;
    const [width, height] = [x_range.end - x_range.start, y_range.end - y_range.start];
    const [x, y] = [(x_range.start + x_range.end) / 2 + right * width, (y_range.start + y_range.end) / 2 + up * height];
    this.look(x, y, width * factor, height * factor);
  }

  // Sets whether all edges are drawn: false during a drag.
  rest(still) {
    if (!this.figure) return;
    for (const kind of FAINT_TYPES) if (this.lines[kind].visible !== still) this.lines[kind].visible = still;
  }
}
