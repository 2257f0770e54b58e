// Puts the page together: what the daemon says, and who on the page is told.
import { get } from "./api.js";
import { Arrivals } from "./arrivals.js";
import { Growth, Latency } from "./charts.js";
import { Failures } from "./failures.js";
import { Graph } from "./graph.js";
import { Moments } from "./moments.js";
import { Search } from "./search.js";
import { by, number } from "./text.js";

const STATUS_MS = 400;
const CALM_MS = 15000;
const EVENTS = ["pending", "indexed", "failed", "skipped", "removed", "commit", "lost"];

const arrivals = new Arrivals();
const failures = new Failures();
const growth = new Growth();
const latency = new Latency();
const moments = new Moments(() => search.again());
const graph = new Graph({ ask: (text) => search.ask(text) });
const search = new Search(moments, graph, (answer) => latency.asked(answer));

let timer = 0;
let asked = 0;

// The counts above, soon: a burst of events makes one request.
function statusSoon() {
  if (!timer) timer = setTimeout(status, Math.max(0, asked + STATUS_MS - Date.now()));
}

async function status() {
  timer = 0;
  asked = Date.now();
  try {
    show(await get("/v1/status"));
  } catch (error) {
    away(error.message);
  }
}

function show(now) {
  for (const kind of ["documents", "passages", "phrases", "triples", "pending", "failed"]) {
    by(`count-${kind}`).textContent = number.format(now[kind]);
  }
  const sources = now.sources.length;
  const waits = now.pending ? `, ${number.format(now.pending)} on the way` : "";
  standing(
    now.state === "ready" && now.pending ? "busy" : now.state,
    now.state === "ready" ? `commit ${number.format(now.commit)}, following ${sources} ${sources === 1 ? "source" : "sources"}${waits}` : now.state,
  );
  trouble(now.trouble ? `Nothing can be committed now: ${now.trouble}` : "");
  if (growth.add(now)) moments.set(growth.points);
}

function standing(state, text) {
  by("standing").firstElementChild.dataset.state = state;
  if (by("standing-text").textContent !== text) by("standing-text").textContent = text;
}

function away(text) {
  standing("away", "not connected");
  trouble(text);
}

function trouble(text) {
  by("trouble").textContent = text;
  by("trouble").hidden = !text;
}

// All that may have been missed.
async function catchUp() {
  try {
    const [overview, pending] = await Promise.all([get("/page/overview"), get("/v1/documents?state=pending&limit=50")]);
    arrivals.begin(overview.recent, pending.documents);
    growth.set(overview.growth);
    moments.set(growth.points);
    failures.later();
    await Promise.all([status(), latency.look()]);
  } catch (error) {
    away(error.message);
  }
}

function follow() {
  const events = new EventSource("/v1/events");
  events.addEventListener("open", catchUp);
  events.addEventListener("error", () => {
    away("hippod does not answer; trying again.");
    // A browser gives up where the answer was not a stream: it is told why by asking once.
    if (events.readyState === EventSource.CLOSED) setTimeout(() => catchUp().then(follow), 5000);
  });
  for (const name of EVENTS) {
    events.addEventListener(name, (message) => {
      const event = JSON.parse(message.data);
      arrivals.heard(event);
      if (name === "failed" || name === "indexed" || name === "removed") failures.later();
      if (name === "lost") catchUp();
      statusSoon();
    });
  }
}

follow();
setInterval(() => document.visibilityState === "visible" && status(), CALM_MS);
setInterval(() => document.visibilityState === "visible" && latency.look().catch(() => {}), CALM_MS);
get("/page/door")
  .then((door) => (by("logout").hidden = !door.logout))
  .catch(() => {});
