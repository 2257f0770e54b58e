// Highlights the parts of a passage that match the question: its words, and the phrases of kept triples.
import { element, shown } from "./text.js";

const TOKEN = /[\p{L}\p{N}]+/gu;
const COMMON = new Set(
  ("a an and are as at be been but by did do does for from had has have he her his how i in is it its me my not of on or " +
    "our she so that the their them there they this to up us was we were what when where which who whom whose why will " +
    "with you your").split(" "),
);

// Returns the form of a word that is compared: without case, accents, and an English plural or possessive ending.
function bare(word) {
  const plain = word.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  return plain.length > 3 ? plain.replace(/(?:ies|es|s)$/, "") : plain;
}

export function contentWords(text) {
  return [...new Set((text.match(TOKEN) ?? []).map(bare).filter((word) => word.length > 1 && !COMMON.has(word)))];
}

// Returns the words and phrases to highlight in every passage of an answer.
export function marker(question, answer) {
  const words = new Set(contentWords(question));
  const phrases = new Map();
  const add = (phrase) => {
    const parts = (phrase.match(TOKEN) ?? []).map(bare);
    if (!parts.length || parts.length > 8) return;
    const same = phrases.get(parts[0]) ?? [];
    same.push(parts);
    same.sort((a, b) => b.length - a.length);
    phrases.set(parts[0], same);
  };
  for (const triple of answer.triples) if (triple.kept) [triple.subject, triple.object].forEach(add);
  for (const seed of answer.seeds) add(seed.phrase);
  return { words, phrases };
}

// Returns where the excerpt of `most` characters with the most matches begins: at the beginning of a sentence or line.
export function best(text, found, most) {
  if (text.length <= most) return 0;
  const head = text.slice(0, 20000);
  const starts = [0, ...[...head.matchAll(/[.!?:]\s+|\n+/g)].map((match) => match.index + match[0].length)];
  const hits = [...head.matchAll(TOKEN)].filter((match) => found.words.has(bare(match[0])) || found.phrases.has(bare(match[0])));
  let chosen = 0;
  let most_hits = -1;
  for (const start of starts.slice(0, 400)) {
    const inside = hits.filter((match) => match.index >= start && match.index < start + most);
    const kinds = new Set(inside.map((match) => bare(match[0]))).size;
    if (kinds > most_hits && start + most / 3 < text.length) [chosen, most_hits] = [start, kinds];
  }
  return chosen;
}

// Returns the first `most` characters of `text` as nodes, with matches in <mark>.
export function marked(text, found, most) {
  const whole = shown(text, most);
  const tokens = [...whole.matchAll(TOKEN)].map((match) => ({ at: match.index, end: match.index + match[0].length, bare: bare(match[0]) }));
  const nodes = [];
  let done = 0;
  const put = (from, to, cls) => {
    if (from > done) nodes.push(whole.slice(done, from));
    nodes.push(element("mark", { class: cls }, whole.slice(from, to)));
    done = to;
  };
  for (let i = 0; i < tokens.length; i++) {
    const phrase = (found.phrases.get(tokens[i].bare) ?? []).find((parts) => parts.every((part, j) => tokens[i + j]?.bare === part));
    if (phrase && !(phrase.length === 1 && COMMON.has(phrase[0]))) {
      put(tokens[i].at, tokens[i + phrase.length - 1].end, found.words.has(tokens[i].bare) && phrase.length === 1 ? "word" : "phrase");
      i += phrase.length - 1;
    } else if (found.words.has(tokens[i].bare)) {
      put(tokens[i].at, tokens[i].end, "word");
    }
  }
  if (done < whole.length) nodes.push(whole.slice(done));
  return nodes;
}
