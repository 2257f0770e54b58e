// The nodes and edges of the displayed graph, and the positions of the nodes.
import { line } from "../text.js";

export const NODES_MAX = 2000;
const EDGES_MAX = 8000;
const STATEMENTS_MAX = 5;

export class GraphData {
  constructor() {
    this.nodes = new Map();
    this.edges = new Map();
    this.path = []; // ids of the nodes of the displayed path
    this.picked = null;
  }

  clear() {
    this.nodes.clear();
    this.edges.clear();
    this.path = [];
    this.picked = null;
  }

  // Adds the nodes and edges of a response. New nodes start near `at`, or on a spiral without `at`.
  add(answer, at) {
    for (const node of answer.nodes) {
      const known = this.nodes.get(node.id);
      if (known) {
        Object.assign(known, node);
      } else if (this.nodes.size < NODES_MAX) {
        const angle = this.nodes.size * 2.399963; // the golden angle: a spiral with the heaviest node in the middle
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
      if (this.edges.size < EDGES_MAX || this.edges.has(key)) this.edges.set(key, edge);
    }
  }

  // Returns a few triples of the node's edges.
  statements(id) {
    const found = [];
    for (const edge of this.edges.values()) {
      if (edge.source !== id && edge.target !== id) continue;
      for (const triple of edge.triples ?? []) {
        const text = [triple.subject, triple.predicate, triple.object].map((part) => line(part, 60)).join(" · ");
        if (found.length < STATEMENTS_MAX && !found.includes(text)) found.push(text);
      }
    }
    return found;
  }

  // Returns the input of the layout worker.
  layoutProblem() {
    const nodes = [...this.nodes.values()];
    const edges = [...this.edges.values()];
    const index = new Map(nodes.map((node, i) => [node.id, i]));
    const most = Math.max(...nodes.map((node) => node.mass ?? 0), 1e-12);
    return {
      n: nodes.length,
      xs: nodes.map((node) => node.x),
      ys: nodes.map((node) => node.y),
      charges: Float64Array.from(nodes, (node) => 1 + 4 * Math.sqrt((node.mass ?? 0) / most)),
      placed: nodes.map((node) => (node.fixed ? 1 : 0)),
      sources: Int32Array.from(edges, (edge) => index.get(edge.source)),
      targets: Int32Array.from(edges, (edge) => index.get(edge.target)),
      weights: Float32Array.from(edges, (edge) => (edge.type === "context" ? 0.6 : Math.min(2, 0.8 * Math.sqrt(edge.weight)))),
    };
  }

  place(found) {
    [...this.nodes.values()].forEach((node, i) => Object.assign(node, { x: found.x[i], y: found.y[i], fixed: true }));
  }
}

// Comparison for sort: the node with the highest PageRank first.
export function byPageRank(a, b) {
  return (b.mass ?? 0) - (a.mass ?? 0);
}

// Returns a key of an edge that is equal for both directions.
export function edgeKey(a, b) {
  return a < b ? JSON.stringify([a, b]) : JSON.stringify([b, a]);
}
