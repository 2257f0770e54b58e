// The question, the passages found, and their explanations.
import { post } from "./api.js";
import { byId, documentName, documentText, element, line, milliseconds, percent, place, unwrapped } from "./text.js";
import { Scope } from "./scope.js";
import { best, marked, marker } from "./highlight.js";

const K = 5;
const BRIEF = 340;
const LONG = 60000;

export class Search {
  constructor(timeSlider, graph, asked) {
    this.timeSlider = timeSlider;
    this.graph = graph;
    this.asked = asked;
    this.form = byId("search");
    this.outcome = byId("outcome");
    this.scope = new Scope(() => this.again());
    this.under = null;
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.go();
    });
    for (const id of ["mode", "beside"]) byId(id).addEventListener("change", () => this.again());
  }

  question() {
    return byId("question").value.trim();
  }

  ask(question) {
    byId("question").value = question;
    this.go();
  }

  // Repeats the last query, if there was one.
  again() {
    if (!byId("answers").hidden && this.question()) this.go();
  }

  async go() {
    const question = this.question();
    if (!question) return;
    this.under?.abort();
    const under = (this.under = new AbortController());
    const mode = byId("mode").value || undefined;
    const as_of = this.timeSlider.asOf();
    const scope = this.scope.chosen();
    const wanted = { query: question, k: K, mode, as_of, scope };
    const beside = byId("beside").checked;
    this.say("Searching …");
    try {
      const answers = await Promise.all([
        post("/v1/query", wanted, under.signal),
        beside ? post("/v1/query", { query: question, k: K, mode: "dense", as_of, scope }, under.signal) : null,
      ]);
      if (under !== this.under) return;
      answers[0].reasons = reasons(wanted, under.signal);
      this.show(question, ...answers);
      for (const answer of answers) if (answer) this.asked(answer);
      await this.graph.ask({ query: question, mode, as_of, scope, k: K });
    } catch (error) {
      if (error.name !== "AbortError" && under === this.under) this.say(error.message, true);
    }
  }

  say(text, bad = false) {
    this.outcome.textContent = text;
    this.outcome.classList.toggle("bad", bad);
  }

  show(question, answer, dense) {
    const count = answer.passages.length;
    const at = this.timeSlider.chosen();
    const when = at ? `as of commit ${answer.commit}` : `commit ${answer.commit}`;
    const weak = answer.weak ? "Nothing in the memory answers this well. " : "";
    const note = answer.note ? ` · ${line(answer.note, 300)}` : "";
    this.say(`${weak}${count} ${count === 1 ? "passage" : "passages"} · mode ${answer.mode} · ${when} · ${milliseconds(answer.took_ms)}${note}`);
    const answers = byId("answers");
    answers.classList.toggle("two", Boolean(dense));
    answers.replaceChildren(this.column(question, answer, dense), ...(dense ? [this.column(question, dense, answer)] : []));
    answers.hidden = false;
    this.evidence(answer);
  }

  column(question, answer, other) {
    const found = marker(question, answer);
    const list = element("ol", { class: "found" }, ...answer.passages.map((passage) => this.hit(passage, answer, found, other)));
    if (!answer.passages.length) list.append(element("li", { class: "empty" }, "Nothing was found."));
    const title = other ? element("h3", {}, `${answer.mode} · ${milliseconds(answer.took_ms)}`) : null;
    return element("div", { "data-mode": answer.mode }, title, list);
  }

  hit(passage, answer, found, other) {
    const whole = unwrapped(passage.text.slice(0, LONG));
    const from = best(whole, found, BRIEF);
    const part = whole.slice(from).replace(/\s+/g, " ");
    const text = element("div", { class: "said text", dir: "auto" }, from ? "… " : "", ...marked(part, found, BRIEF));
    const foot = element("div", { class: "foot" });
    const item = element(
      "li",
      { class: "hit", "data-passage": passage.id },
      element("span", { class: "rank" }, String(passage.rank)),
      element(
        "div",
        {},
        documentName(passage.title, { tag: "h4" }),
        element("div", { class: "place" }, documentName(`${place(passage.document)}${where(passage.location)}`, { cls: "one", most: 160 })),
        text,
        foot,
      ),
    );
    const near = passage.cosine === undefined ? "" : ` · cosine ${passage.cosine.toFixed(2)}`;
    foot.append(element("span", {}, `score ${passage.score.toFixed(4)}${near}`));
    if (other) foot.append(element("span", { class: "badge" }, rankIn(passage, other)));
    if (answer.reasons) {
      const why = element("button", { type: "button", class: "quiet", "aria-expanded": "false" }, "Why");
      let panel = null;
      let reason = null;
      why.addEventListener("click", async () => {
        if (!panel) {
          why.disabled = true;
          try {
            reason = (await answer.reasons()).find((each) => each.id === passage.id);
            panel = reason ? this.why(reason) : element("p", { class: "why" }, "The memory has changed since. Search again.");
          } catch (error) {
            if (error.name !== "AbortError") this.say(error.message, true);
            return;
          } finally {
            why.disabled = false;
          }
          foot.after(panel);
          panel.hidden = true;
        }
        panel.hidden = !panel.hidden;
        why.setAttribute("aria-expanded", String(!panel.hidden));
        this.graph.showPath(panel.hidden || !reason ? [] : pathNodes(reason));
      });
      foot.append(why);
    }
    if (whole.length > BRIEF) {
      const more = element("button", { type: "button", class: "quiet", "aria-expanded": "false" }, "Show all");
      const brief = [...text.childNodes];
      more.addEventListener("click", () => {
        const open = more.getAttribute("aria-expanded") === "false";
        text.replaceChildren(...(open ? marked(whole, found, LONG) : brief));
        more.setAttribute("aria-expanded", String(open));
        more.textContent = open ? "Show less" : "Show all";
      });
      foot.append(more);
    }
    return item;
  }

  why(reason) {
    const panel = element("div", { class: "why" });
    const seeds = (reason.seeds ?? []).filter((seed) => seed.share >= 0.005).slice(0, 4);
    panel.append(element("p", {}, `Its similarity to the question is ${reason.similarity.toFixed(3)} (cosine).`));
    if (reason.path) {
      panel.append(
        element("p", {}, `${percent(Math.min(reason.path.share, 1))} of its score came along this path (shown in the graph):`),
        element("div", { class: "steps" }, ...reason.path.steps.flatMap(step)),
      );
    }
    if (seeds.length) {
      const parts = seeds.map((seed) => `${line(seed.phrase, 60)} ${percent(seed.share)}`);
      const own = reason.own_share >= 0.005 ? [`the passage itself ${percent(reason.own_share)}`] : [];
      panel.append(documentText(`By origin: ${[...parts, ...own].join(" · ")}`, { tag: "p", cls: "note" }));
    }
    if (reason.near_duplicate_of) {
      panel.append(element("p", { class: "note" }, `One of ${reason.group_size} near-duplicates, which share one score.`));
    }
    if (reason.link) {
      const shown = reason.link.text ? ` “${line(reason.link.text, 80)}”` : "";
      const source = line(reason.link.source.title || reason.link.source.document, 100);
      panel.append(documentText(`A link${shown} led here from: ${source}`, { tag: "p", cls: "note" }));
    }
    if (reason.hub_factor != null) {
      const kept = `It has unusually many triples, so it keeps only ${percent(reason.hub_factor)} of the weight from other passages and phrases.`;
      panel.append(element("p", { class: "note" }, kept));
    }
    return panel;
  }

  evidence(answer) {
    const triples = element("ul", { class: "triples" });
    for (const triple of answer.triples.slice(0, 12)) {
      const text = [triple.subject, triple.predicate, triple.object].map((part) => line(part, 80)).join(" · ");
      triples.append(
        element(
          "li",
          { class: triple.kept ? "kept" : "dropped" },
          element("span", { class: "score" }, triple.score.toFixed(3)),
          element("span", { class: "said", dir: "auto" }, triple.kept ? null : element("span", { class: "hidden" }, "not kept: "), text),
        ),
      );
    }
    const stages = Object.entries(answer.stages_ms ?? {});
    const longest = Math.max(...stages.map(([, took]) => took), 0.001);
    const bars = element("ul", { class: "bars" });
    for (const [name, took] of stages) {
      bars.append(
        element(
          "li",
          {},
          element("span", {}, name),
          element("meter", { min: "0", max: String(longest), value: String(took), "aria-label": name }),
          element("span", { class: "value" }, milliseconds(took)),
        ),
      );
    }
    const evidence = byId("evidence");
    evidence.replaceChildren();
    if (answer.triples.length) evidence.append(element("div", {}, element("h3", {}, "Triples that matched"), triples));
    if (stages.length) evidence.append(element("div", {}, element("h3", {}, "Time per step"), bars));
    evidence.hidden = !evidence.children.length;
  }
}

// The explanations of the passages, requested once and only on demand, because they take longer than the query.
function reasons(wanted, signal) {
  let asked = null;
  return () => {
    asked ??= post("/v1/query", { ...wanted, explain: true }, signal).then((answer) => answer.explain.passages);
    asked.catch(() => (asked = null));
    return asked;
  };
}

function where(location) {
  for (const key of ["line", "page", "slide", "sheet", "row", "chapter", "time"]) {
    if (location?.[key] !== undefined) return ` · ${key} ${location[key]}`;
  }
  return "";
}

function rankIn(passage, other) {
  const there = other.passages.find((each) => each.id === passage.id);
  return there ? `${other.mode}: ${there.rank}` : `${other.mode}: not among its ${other.passages.length}`;
}

export function nodeId(step) {
  return step.kind === "phrase" ? `phrase:${step.text}` : `passage:${step.id}`;
}

function pathNodes(reason) {
  return reason.path ? reason.path.steps.map(nodeId) : [];
}

// Returns a step of the path: the edge to the node, in words, and the node.
function step(each) {
  const node = documentName(each.text, { cls: `node ${each.kind}`, most: 80 });
  if (!each.edge) return [node];
  const stated = each.triples?.[0];
  const words = { context: each.kind === "passage" ? "is in" : "which names", mention: "mentioned with", synonym: "is like" };
  const told = each.edge === "relation" && stated ? stated.predicate : (words[each.edge] ?? each.edge);
  return [element("span", { class: "by" }, "— ", documentName(told, { cls: "told", most: 60 }), " →"), node];
}
