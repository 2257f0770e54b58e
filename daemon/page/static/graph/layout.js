// Computes the positions of nodes, in a worker: edges attract, and nodes repel one another, large ones more (Fruchterman and
// Reingold). Distant nodes are combined by cells of a grid. Equal graphs get equal positions.
"use strict";

onmessage = ({ data }) => {
  const { id, n, xs, ys, placed, charges, sources, targets, weights } = data;
  const x = Float64Array.from(xs);
  const y = Float64Array.from(ys);
  spread(n, x, y, placed, charges, sources, targets, weights);
  postMessage({ id, x, y }, [x.buffer, y.buffer]);
};

function spread(n, x, y, placed, charges, sources, targets, weights) {
  const steps = n > 800 ? 160 : 320;
  const dx = new Float64Array(n);
  const dy = new Float64Array(n);
  const degree = new Float64Array(n).fill(1);
  for (let e = 0; e < sources.length; e++) {
    degree[sources[e]] += 1;
    degree[targets[e]] += 1;
  }
  const size = Math.sqrt(n);
  for (let turn = 0; turn < steps; turn++) {
    const heat = 0.15 * size * (1 - turn / steps) ** 1.5 + 0.002;
    dx.fill(0);
    dy.fill(0);
    repelAll(n, x, y, dx, dy, charges);
    for (let e = 0; e < sources.length; e++) {
      const a = sources[e];
      const b = targets[e];
      const ex = x[b] - x[a];
      const ey = y[b] - y[a];
      const pull = weights[e] * Math.hypot(ex, ey);
      dx[a] += ex * pull;
      dy[a] += ey * pull;
      dx[b] -= ex * pull;
      dy[b] -= ey * pull;
    }
    for (let i = 0; i < n; i++) {
      // Nodes without edges would drift away.
      const home = 0.08 + 1.2 / degree[i] ** 2;
      dx[i] -= x[i] * home;
      dy[i] -= y[i] * home;
      const far = Math.hypot(dx[i], dy[i]) || 1e-9;
      const move = (Math.min(far, heat) / far) * (placed[i] ? 0.08 : 1);
      x[i] += dx[i] * move;
      y[i] += dy[i] * move;
    }
  }
}

// Repels each node from all others: from near nodes individually, from the nodes of a distant cell as one at its centre.
function repelAll(n, x, y, dx, dy, charges) {
  let x0 = Infinity, y0 = Infinity, x1 = -Infinity, y1 = -Infinity;
  for (let i = 0; i < n; i++) {
    x0 = Math.min(x0, x[i]);
    x1 = Math.max(x1, x[i]);
    y0 = Math.min(y0, y[i]);
    y1 = Math.max(y1, y[i]);
  }
  const side = Math.max(1, Math.min(24, Math.round(Math.sqrt(n / 6))));
  const cellX = (x1 - x0) / side || 1;
  const cellY = (y1 - y0) / side || 1;
  const cells = side * side;
  const at = new Int32Array(n);
  const count = new Int32Array(cells);
  const weight = new Float64Array(cells);
  const cx = new Float64Array(cells);
  const cy = new Float64Array(cells);
  for (let i = 0; i < n; i++) {
    const column = Math.min(side - 1, Math.floor((x[i] - x0) / cellX));
    const row = Math.min(side - 1, Math.floor((y[i] - y0) / cellY));
    const cell = (at[i] = row * side + column);
    count[cell] += 1;
    weight[cell] += charges[i];
    cx[cell] += charges[i] * x[i];
    cy[cell] += charges[i] * y[i];
  }
  const begins = new Int32Array(cells + 1);
  for (let cell = 0; cell < cells; cell++) begins[cell + 1] = begins[cell] + count[cell];
  const fill = begins.slice();
  const members = new Int32Array(n);
  for (let i = 0; i < n; i++) members[fill[at[i]]++] = i;
  for (let i = 0; i < n; i++) {
    const row = Math.floor(at[i] / side);
    const column = at[i] % side;
    for (let cell = 0; cell < cells; cell++) {
      if (!count[cell]) continue;
      const near = Math.abs(Math.floor(cell / side) - row) <= 1 && Math.abs((cell % side) - column) <= 1;
      if (near) {
        for (let m = begins[cell]; m < begins[cell + 1]; m++) {
          const j = members[m];
          if (j !== i) repel(i, x[i] - x[j], y[i] - y[j], charges[i] * charges[j], dx, dy, j);
        }
      } else {
        repel(i, x[i] - cx[cell] / weight[cell], y[i] - cy[cell] / weight[cell], charges[i] * weight[cell], dx, dy, i);
      }
    }
  }
}

function repel(i, ex, ey, many, dx, dy, j) {
  let square = ex * ex + ey * ey;
  if (square < 1e-6) {
    // Nodes at the same position repel one another in a direction that depends on the node.
    const angle = (i * 31 + j * 17) % 628 / 100;
    ex = Math.cos(angle) * 1e-3;
    ey = Math.sin(angle) * 1e-3;
    square = 1e-6;
  }
  const force = many / Math.max(square, 0.01);
  dx[i] += ex * force;
  dy[i] += ey * force;
}
