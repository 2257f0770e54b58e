// Charts of the memory's growth and of the queries' latency.
import { getText } from "./api.js";
import { colour, dress, Plot, Range, Source, whenPaletteChanges } from "./plotting.js";
import { byId, clock, milliseconds, number } from "./text.js";

const MOST = 400;
const LEAST_MS = 60000;
const KINDS = ["triples", "phrases", "passages"];
const COLOURS = ["series-3", "series-2", "series-1"];

function figure(where) {
  const now = local(Date.now());
  const made = new (Plot().Figure)({
    sizing_mode: "stretch_both",
    toolbar_location: null,
    tools: "",
    x_axis_type: "datetime",
    min_border: 4,
    x_range: Range(now - LEAST_MS, now),
    y_range: Range(0, 10),
  });
  made.xgrid.visible = false;
  for (const axis of made.below) {
    axis.ticker.desired_num_ticks = 4;
    const [fine, rough] = ["%H:%M:%S", "%H:%M"];
    axis.formatter.setv({ milliseconds: fine, seconds: fine, minsec: fine, minutes: rough, hourmin: rough, hours: rough, days: "%e %b" });
  }
  for (const axis of made.left) {
    axis.ticker.desired_num_ticks = 4;
    axis.formatter.use_scientific = false;
  }
  made.where = where;
  return made;
}

// The axis has no time zones, so local times are passed as if they were UTC.
function local(time) {
  return time - new Date(time).getTimezoneOffset() * 60000;
}

function span(made, times) {
  const [start, end] = [Math.min(...times), Math.max(...times)];
  const room = Math.max(end - start, LEAST_MS) * 0.03;
  if (times.length) made.x_range.setv({ start: Math.min(start, end - LEAST_MS) - room, end: end + room });
}

async function place(made) {
  await Plot().show(made, made.where);
  whenPaletteChanges(() => dress(made));
}

export class Growth {
  constructor() {
    this.points = [];
    this.figure = figure(byId("growth"));
    this.source = Source({ time: [], triples: [], phrases: [], passages: [] });
    this.lines = KINDS.map((kind) =>
      this.figure.step({ field: "time" }, { field: kind }, "after", { source: this.source, line_width: 2, legend_label: kind }),
    );
    this.figure.legend.location = "top_left";
    Object.assign(this.figure.legend, { orientation: "horizontal", spacing: 8, glyph_width: 14, padding: 2, margin: 0 });
    this.paint();
    place(this.figure);
    whenPaletteChanges(() => this.paint());
  }

  paint() {
    this.lines.forEach((line, i) => (line.glyph.line_color = colour(COLOURS[i])));
    dress(this.figure);
  }

  set(points) {
    this.points = points.slice(-MOST);
    this.draw();
  }

  // Adds a point from a status that is newer than the last point.
  add(status) {
    const last = this.points.at(-1);
    if (!status.commit || (last && last.commit >= status.commit)) return false;
    const { commit, passages, phrases, triples } = status;
    this.points.push({ commit, time: new Date().toISOString(), passages, phrases, triples });
    if (this.points.length > MOST) this.points.splice(1, 1);
    this.draw();
    return true;
  }

  draw() {
    const points = this.points;
    const last = points.at(-1);
    // Extend the last step to the present.
    const time = points.map((each) => local(Date.parse(each.time)));
    const data = { time: last ? [...time, local(Date.now())] : [] };
    for (const kind of KINDS) data[kind] = last ? [...points.map((each) => each[kind]), last[kind]] : [];
    this.source.data = data;
    span(this.figure, data.time);
    this.figure.y_range.end = Math.max(10, ...data.triples, ...data.phrases, ...data.passages) * 1.25;
    const first = points[0];
    byId("growth-note").textContent = last
      ? `Now ${KINDS.map((kind) => `${number.format(last[kind])} ${kind}`).join(", ")}; ` +
        `at ${clock(first.time)} ${KINDS.map((kind) => number.format(first[kind])).join(", ")}.`
      : "Nothing has been committed yet.";
  }
}

// Latency from the daemon's histogram: the queries counted between two requests of it.
export class Latency {
  constructor() {
    this.before = null;
    this.mayMeasure = false;
    this.shown = { time: [], p50: [], p95: [] };
    this.mine = { time: [], took: [] };
    this.figure = figure(byId("latency"));
    this.source = Source(this.shown);
    this.dots = Source(this.mine);
    this.p95 = this.figure.line({ field: "time" }, { field: "p95" }, { source: this.source, line_width: 2, legend_label: "p95" });
    this.p50 = this.figure.line({ field: "time" }, { field: "p50" }, { source: this.source, line_width: 2, legend_label: "p50" });
    this.own = this.figure.scatter({ field: "time" }, { field: "took" }, { source: this.dots, size: 7, legend_label: "asked here" });
    this.figure.legend.location = "top_left";
    Object.assign(this.figure.legend, { orientation: "horizontal", spacing: 8, glyph_width: 14, padding: 2, margin: 0 });
    this.paint();
    place(this.figure);
    whenPaletteChanges(() => this.paint());
  }

  paint() {
    this.p95.glyph.line_color = colour("series-2");
    this.p50.glyph.line_color = colour("series-1");
    this.own.glyph.fill_color = colour("series-3");
    this.own.glyph.line_color = null;
    dress(this.figure);
  }

  asked(answer) {
    this.mine = { time: [...this.mine.time, local(Date.now())].slice(-MOST), took: [...this.mine.took, answer.took_ms].slice(-MOST) };
    this.dots.data = this.mine;
    this.scale();
    this.look();
  }

  // Latency of all clients' queries. Only clients that may read /metrics see it.
  async look() {
    if (!this.mayMeasure) return;
    const now = read(await getText("/metrics"));
    const before = this.before ?? { buckets: new Map() };
    this.before = now;
    if (!now.count) return;
    const since = new Map([...now.buckets].map(([edge, count]) => [edge, count - (before.buckets.get(edge) ?? 0)]));
    if (Math.max(...since.values()) > 0) {
      const add = (list, value) => [...list, value].slice(-MOST);
      this.shown = {
        time: add(this.shown.time, local(Date.now())),
        p50: add(this.shown.p50, quantile(since, 0.5)),
        p95: add(this.shown.p95, quantile(since, 0.95)),
      };
      this.source.data = this.shown;
      this.scale();
    }
    byId("latency-note").textContent =
      `${number.format(now.count)} ${now.count === 1 ? "query" : "queries"} since the daemon started: half took at most ` +
      `${milliseconds(quantile(now.buckets, 0.5))}, 95 of 100 at most ${milliseconds(quantile(now.buckets, 0.95))}. The chart is in milliseconds.`;
  }

  scale() {
    span(this.figure, [...this.shown.time, ...this.mine.time]);
    this.figure.y_range.end = Math.max(10, ...this.shown.p95, ...this.mine.took) * 1.3;
  }
}

// Returns the query histogram of /metrics over all modes: cumulative counts by upper bound in seconds.
function read(text) {
  const buckets = new Map();
  let count = 0;
  for (const each of text.split("\n")) {
    const bucket = each.match(/^hippod_query_seconds_bucket\{(.*)\} (\S+)$/);
    if (bucket) {
      const le = bucket[1].match(/le="([^"]+)"/)[1];
      const edge = le === "+Inf" ? Infinity : Number(le);
      buckets.set(edge, (buckets.get(edge) ?? 0) + Number(bucket[2]));
    } else if (each.startsWith("hippod_query_seconds_count")) {
      count += Number(each.split(" ").at(-1));
    }
  }
  return { buckets: new Map([...buckets].sort(([a], [b]) => a - b)), count };
}

// Returns a quantile in milliseconds, interpolated linearly within its bucket.
function quantile(buckets, share) {
  const total = Math.max(...buckets.values());
  const wanted = share * total;
  let lower = 0;
  let below = 0;
  for (const [edge, count] of buckets) {
    if (count >= wanted) {
      if (edge === Infinity) return lower * 1000;
      return 1000 * (lower + ((edge - lower) * (wanted - below)) / Math.max(count - below, 1e-9));
    }
    lower = edge;
    below = count;
  }
  return lower * 1000;
}
