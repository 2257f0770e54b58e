// Connects the parts of the page, and passes them the daemon's status and events.
import { get } from "./api.js";
import { Arrivals } from "./arrivals.js";
import { Growth, Latency } from "./charts.js";
import { Failures } from "./failures.js";
import { Graph } from "./graph/graph.js";
import { TimeSlider } from "./time-slider.js";
import { Search } from "./search.js";
import { byId, number, percent, timeLeft } from "./text.js";

const STATUS_MS = 400;
const CALM_MS = 15000;
const EVENTS = ["pending", "indexed", "failed", "skipped", "removed", "commit", "lost"];

const arrivals = new Arrivals();
const failures = new Failures();
const growth = new Growth();
const latency = new Latency();
const timeSlider = new TimeSlider(() => search.again());
const graph = new Graph({ ask: (text) => search.ask(text) });
const search = new Search(timeSlider, graph, (answer) => latency.asked(answer));

let timer = 0;
let asked = 0;

// Updates the counts after a delay, so that a burst of events makes one request.
function statusSoon() {
  if (!timer) timer = setTimeout(status, Math.max(0, asked + STATUS_MS - Date.now()));
}

async function status() {
  timer = 0;
  asked = Date.now();
  try {
    show(await get("/v1/status"));
  } catch (error) {
    showDisconnected(error.message);
  }
}

function show(now) {
  for (const kind of ["documents", "passages", "phrases", "triples", "pending", "failed"]) {
    byId(`count-${kind}`).textContent = number.format(now[kind]);
  }
  const sources = now.sources.length;
  const index = now.progress?.find((each) => each.task === "index");
  const far = index?.left_s == null ? "" : ` (${percent(index.share)}, ${timeLeft(index.left_s)} left)`;
  const waits = now.pending ? `, ${number.format(now.pending)} waiting${far}` : "";
  showState(
    now.state === "ready" && now.pending ? "busy" : now.state,
    now.state === "ready" ? `commit ${number.format(now.commit)}, following ${sources} ${sources === 1 ? "source" : "sources"}${waits}` : now.state,
  );
  showTrouble(now.trouble ? `Problem: ${now.trouble}` : "");
  const advice = now.encoder_advice ? [`${now.encoder} does not know these documents well: ${now.encoder_advice}`] : [];
  showAdvice(advice.concat(now.extractor_advice ?? []).join(". "));
  if (growth.add(now)) timeSlider.set(growth.points);
}

function showState(state, text) {
  byId("standing").firstElementChild.dataset.state = state;
  if (byId("standing-text").textContent !== text) byId("standing-text").textContent = text;
}

function showDisconnected(text) {
  showState("away", "not connected");
  showTrouble(text);
}

function showTrouble(text) {
  byId("trouble").textContent = text;
  byId("trouble").hidden = !text;
}

function showAdvice(text) {
  byId("encoder-advice").textContent = text;
  byId("encoder-advice").hidden = !text;
}

// Reload everything that may have changed while the connection was lost.
async function catchUp() {
  try {
    const [overview, pending] = await Promise.all([get("/page/overview"), get("/v1/documents?state=pending&limit=50")]);
    arrivals.begin(overview.recent, pending.documents);
    growth.set(overview.growth);
    timeSlider.set(growth.points);
    failures.loadSoon();
    await Promise.all([status(), latency.look()]);
  } catch (error) {
    showDisconnected(error.message);
  }
}

function follow() {
  const events = new EventSource("/v1/events");
  events.addEventListener("open", catchUp);
  events.addEventListener("error", () => {
    showDisconnected("hippod does not answer; trying again.");
    // A browser stops reconnecting if the response was not an event stream. One request then finds the reason.
    if (events.readyState === EventSource.CLOSED) setTimeout(() => catchUp().then(follow), 5000);
  });
  for (const name of EVENTS) {
    events.addEventListener(name, (message) => {
      const event = JSON.parse(message.data);
      arrivals.onEvent(event);
      if (name === "failed" || name === "indexed" || name === "removed") failures.loadSoon();
      if (name === "lost") catchUp();
      statusSoon();
    });
  }
}

follow();
setInterval(() => document.visibilityState === "visible" && status(), CALM_MS);
setInterval(() => document.visibilityState === "visible" && latency.look().catch(() => {}), CALM_MS);
get("/page/session")
  .then((session) => {
    byId("logout").hidden = !session.logout;
    latency.mayMeasure = session.rights.includes("admin");
    failures.mayRetry = session.rights.includes("write");
    failures.loadSoon();
    return latency.look();
  })
  .catch(() => {});
