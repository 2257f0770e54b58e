"""The ways of retrieval written as their papers' formulas, in loops, numpy and igraph. No code shared with the product.

HippoRAG: Gutiérrez et al., "HippoRAG" (2024), section 2. HippoRAG 2: Gutiérrez et al., "From RAG to Memory" (2025), section 3.
What the papers leave open is as in the authors' code: a triple is embedded as its quoted parts, an edge between phrases
counts in both directions where a context edge counts once.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass, field

import igraph
import numpy as np

from memory.phrase_normalisation import normalise_phrase
from store.index.synonyms.numbers import is_number
from store.index.synonyms.phrase_variants import can_be_synonyms
from store.text.terms import folded
from tests.store.oracle import rounded_vectors

Passage = tuple[str, str, str, tuple[tuple[str, str, str], ...]]
"""(id, title, text, triples)."""

SAME = 1e-6
"""Cosines that differ by less are one."""


@dataclass
class Settings:
    top_triples: int = 5
    seed_phrases: int = 5
    passage_weight: float = 0.05
    damping: float = 0.5
    walk: str = "pagerank"
    node_specificity: bool = True
    synonym_edges: bool = True
    passage_nodes: bool = True
    passage_share: float = 0.5
    name_share: float = 0.25
    temperature: float = 0.25
    hop_share: float = 0.4
    seed_passages: int = 50
    word_temperature: float = 0.1
    heaviest_starts: int = 5
    hop_triples: int = 10
    hop_temperature: float = 1.0
    word_candidates: int = 100
    part_length: int = 4
    parts_weight: float = 0.6
    least_known: float = 0.01
    titled_passages: int = 20
    near_cosine: float = 0.8
    shared_words: float = 0.8
    group_min: int = 3
    hub_degree: float = 2.5
    hub_power: float = 6.0


@dataclass
class Answer:
    scores: dict[str, float]
    triples: list[tuple[tuple[str, str, str], float]] = field(default_factory=list)
    seeds: dict[str, float] = field(default_factory=dict)


class Sums(dict[str, float]):
    """Numbers by key, 0 for other keys."""

    def __missing__(self, key: str) -> float:
        return 0.0


class Reference:
    """`passages`: those that live, each once. `vector(text)` and `query_vector(text)` give unit vectors;
    `triple_query_vector(text)` those that triples are compared with, where they are others. `known_words(text)`: of which
    share of its words the encoder knows anything.

    `passage_terms(text)` gives a passage's terms with their counts, its language and its length;
    `query_terms(query, languages)` for each of its words the terms that stand for it, and how often it has the word.
    """

    def __init__(
        self,
        passages,
        vector,
        query_vector,
        threshold=0.8,
        variants=True,
        passage_terms=None,
        query_terms=None,
        triple_query_vector=None,
        known_words=lambda query: 1.0,
    ):
        self._made_with = (
            vector,
            query_vector,
            threshold,
            variants,
            passage_terms,
            query_terms,
            triple_query_vector,
            known_words,
        )
        self.passages = sorted(passages)
        self.passage_terms = passage_terms or ascii_words
        self.query_terms = query_terms or (lambda query, _: {(word,): n for word, n in ascii_words(query)[0].items()})
        self.query_vector = query_vector
        self.triple_query_vector = triple_query_vector or query_vector
        self.ids = [p[0] for p in self.passages]
        self.known_words = known_words
        self._rarity = {}
        self.full = [f"{title}\n{text}" if title else text for _, title, text, _ in self.passages]
        read = [self.passage_terms(full) for full in self.full]
        self.texts = [counts for counts, _, _ in read]
        self.languages = {language for _, language, _ in read}
        self.lengths = [length for _, _, length in read]
        stated = {triple for p in self.passages for triple in p[3]}
        # Without a predicate it is a mention edge: no statement, and compared with nothing.
        self.triples = sorted(triple for triple in stated if triple[1])
        self.phrases = sorted({end for s, _, o in stated for end in (s, o)})
        self.holders = {
            phrase: sum(any(phrase in (s, o) for s, _, o in p[3]) for p in self.passages) for phrase in self.phrases
        }
        self.passage_vectors = np.array([rounded_vectors(vector(text)) for text in self.full], float)
        self.phrase_vectors = np.array([rounded_vectors(vector(phrase)) for phrase in self.phrases], float)
        self.triple_vectors = np.array(
            [rounded_vectors(vector(f"('{s}', '{p}', '{o}')")) for s, p, o in self.triples], float
        )
        self.edges = self._relations()
        self.synonyms = self._synonyms(threshold, variants)

    # The graph.

    def _relations(self):
        """{frozenset of two phrases: number of (passage, statement or mention edge) pairs that link them}."""
        counts: Counter[frozenset[str]] = Counter()
        for p in self.passages:
            for s, _, o in set(p[3]):
                if s != o:
                    counts[frozenset((s, o))] += 1
        return counts

    def _synonyms(self, threshold, variants):
        """Cosines at or above the threshold; with `variants` only of phrases whose texts allow it."""
        # The rules for texts have tests of their own (tests/store/index/synonyms).
        long = [
            i for i, phrase in enumerate(self.phrases) if sum(c.isalnum() for c in phrase) > 2 and not is_number(phrase)
        ]
        near = {}
        for i in long:
            cosines = self.phrase_vectors[long] @ self.phrase_vectors[i]
            found = [
                (-float(np.float32(c)), self.phrases[j])
                for j, c in zip(long, cosines, strict=True)
                if j != i and (not variants or can_be_synonyms(self.phrases[i], self.phrases[j], c, threshold))
            ]
            near[self.phrases[i]] = [pair for pair in found if -pair[0] >= np.float32(threshold)]
        return {frozenset((a, b)): -cosine for a, pairs in near.items() for cosine, b in pairs}

    def _occurrences(self, passage, phrase):
        return sum(phrase in (s, o) for s, _, o in set(passage[3]))

    def _pagerank(self, reset, settings, phrase_edge, context):
        """{node: PageRank}; `reset` {node: weight}; `context(passage, phrase)` is the weight of a context edge, or None."""
        names = [("phrase", phrase) for phrase in self.phrases] + [("passage", id) for id in self.ids]
        at = {name: i for i, name in enumerate(names)}
        edges, weights = [], []
        for pairs in (self.edges, self.synonyms if settings.synonym_edges else {}):
            for pair, weight in pairs.items():
                a, b = sorted(pair)
                edges.append((at["phrase", a], at["phrase", b]))
                weights.append(phrase_edge * weight)
        if context is not None:
            for p in self.passages:
                for phrase in {end for s, _, o in p[3] for end in (s, o)}:
                    edges.append((at["passage", p[0]], at["phrase", phrase]))
                    weights.append(context(p, phrase))
        graph = igraph.Graph(n=len(names), edges=edges)
        restart = [reset.get(name, 0.0) for name in names]
        ranks = graph.personalized_pagerank(
            directed=False, damping=settings.damping, reset=restart, weights=weights, implementation="prpack"
        )
        return dict(zip(names, ranks, strict=True))

    # The steps.

    def _dense(self, query):
        return dict(zip(self.ids, self.passage_vectors @ self.query_vector(query).astype(float), strict=True))

    def _top_triples(self, query, count, scale):
        if not self.triples:
            return []
        cosines = self.triple_vectors @ self.triple_query_vector(query).astype(float)
        scaled = scale(cosines)
        order = sorted(range(len(cosines)), key=lambda i: (-round(float(cosines[i]), 12), "\0".join(self.triples[i])))
        return [(self.triples[i], float(scaled[i])) for i in order[:count]]

    def _walk(self, query, seeds, passages, settings, context):
        """`passages` {id: reset weight}, or None where they are no nodes."""
        reset = {("phrase", phrase): weight for phrase, weight in seeds.items()}
        if passages is not None:
            reset |= {("passage", id): weight for id, weight in passages.items()}
        if not any(reset.values()):
            return self._dense(query)
        if passages is not None:
            ranks = self._pagerank(reset, settings, 2.0, context)
            return {id: ranks["passage", id] for id in self.ids}
        ranks = self._pagerank(reset, settings, 1.0, None)
        # Passages are left out of the walk by standing in the graph without an edge or a restart.
        return {p[0]: sum(ranks["phrase", end] for s, _, o in set(p[3]) for end in {s, o}) for p in self.passages}

    def _hipporag2(self, query, seeds, settings):
        if not settings.passage_nodes:
            return self._walk(query, seeds, None, settings, None)
        dense = self._dense(query)
        scaled = dict(zip(dense, min_max(np.array(list(dense.values()))), strict=True))
        passages = {id: settings.passage_weight * score for id, score in scaled.items()}
        return self._walk(query, seeds, passages, settings, lambda p, phrase: 1.0)

    # The modes.

    def answer(self, mode, query, names=(), settings=None):
        """Every living passage's score; those that are no answers are left out. `names` are the query's entities."""
        settings = settings or Settings()
        if not self.passages:
            return Answer({})
        return {
            "dense": lambda: Answer(self._dense(query)),
            "bm25": lambda: Answer(self.bm25(query)),
            "hipporag2": lambda: self.hipporag2(query, settings),
            "query-to-node": lambda: self.query_to_node(query, settings),
            "ner-to-node": lambda: self.ner_to_node(query, names, settings),
            "hipporag": lambda: self.hipporag(query, names, settings),
            "fused": lambda: self.without_duplicates(query, names, settings),
        }[mode]()

    def hipporag2(self, query, settings):
        triples = self._top_triples(query, settings.top_triples, min_max)
        if not triples:
            return Answer(self._dense(query))
        weights: dict[str, list[float]] = {}
        for (s, _, o), score in triples:
            for phrase in (s, o):
                weights.setdefault(phrase, []).append(score * self._specificity(phrase, settings))
        seeds = heaviest({phrase: sum(each) / len(each) for phrase, each in weights.items()}, settings.seed_phrases)
        return Answer(self._hipporag2(query, seeds, settings), triples, seeds)

    def query_to_node(self, query, settings):
        if not self.phrases:
            return Answer(self._dense(query))
        cosines = self.phrase_vectors @ self.query_vector(query).astype(float)
        scaled = min_max(cosines)
        order = sorted(range(len(cosines)), key=lambda i: (-round(float(cosines[i]), 12), self.phrases[i]))
        nearest = order[: settings.seed_phrases]
        seeds = {self.phrases[i]: float(scaled[i]) * self._specificity(self.phrases[i], settings) for i in nearest}
        return Answer(self._hipporag2(query, seeds, settings), [], seeds)

    def _specificity(self, phrase, settings):
        return 1.0 / self.holders[phrase] if settings.node_specificity else 1.0

    def _named(self, names, settings):
        seeds = {}
        for name in names if self.phrases else ():
            cosines = self.phrase_vectors @ self.query_vector(name).astype(float)
            best = min(range(len(cosines)), key=lambda i: (-round(float(cosines[i]), 12), self.phrases[i]))
            phrase = name if name in self.holders else self.phrases[best]
            seeds[phrase] = self._specificity(phrase, settings)
        return seeds

    def ner_to_node(self, query, names, settings):
        seeds = self._named(names, settings)
        return Answer(self._hipporag2(query, seeds, settings), [], seeds) if seeds else Answer(self._dense(query))

    def hipporag(self, query, names, settings):
        seeds = self._named(names, settings)
        if not seeds:
            return Answer(self._dense(query))
        if settings.walk == "pagerank":
            return Answer(self._walk(query, seeds, None, settings, None), [], seeds)
        weights = Sums(seeds)
        if settings.walk == "neighbours":
            edges = self.edges.keys() | (self.synonyms.keys() if settings.synonym_edges else set())
            for seed in seeds:
                for neighbour in {other for pair in edges if seed in pair for other in pair - {seed}}:
                    weights[neighbour] += 0.5 * min(seeds.values())
        scores = {p[0]: sum(weights[end] for s, _, o in set(p[3]) for end in {s, o}) for p in self.passages}
        return Answer(scores, [], seeds)

    def without_duplicates(self, query, names, settings):
        """The answer of a memory that has only the leader of each group. A near-duplicate has its leader's score, divided by
        the size of the group."""
        if not settings.passage_nodes:
            return self.fused(query, names, settings)
        leaders = self._leaders(query, settings)
        kept = Reference([p for p in self.passages if p[0] not in leaders], *self._made_with)
        # Edges that the cap cut off in the whole memory stay cut off.
        kept.synonyms = {pair: weight for pair, weight in self.synonyms.items() if pair <= set(kept.phrases)}
        answer = kept.fused(query, names, settings)
        for id, leader in leaders.items():
            answer.scores[id] = answer.scores[leader] / (1 + list(leaders.values()).count(leader))
        return answer

    def _leaders(self, query, settings):
        """{id: leader} of all near-duplicates in groups that are large enough, each searched for among all passages."""
        cosines = self._dense(query)
        order = sorted(self.ids, key=lambda id: (-round(cosines[id], 12), id))
        words = {p[0]: set(re.findall(r"[^\W_]+", folded(f"{p[1]}\n{p[2]}"))) for p in self.passages}
        vectors = dict(zip(self.ids, self.passage_vectors, strict=True))
        leaders = {}
        for at, id in enumerate(order):
            for leader in order[:at]:
                near = vectors[id] @ vectors[leader] >= settings.near_cosine
                alike = len(words[id] & words[leader]) >= settings.shared_words * len(words[id] | words[leader])
                if leader not in leaders and near and alike:
                    leaders[id] = leader
                    break
        sizes = Counter(leaders.values())
        return {id: leader for id, leader in leaders.items() if sizes[leader] + 1 >= settings.group_min}

    def fused(self, query, names, settings):
        triples = self._top_triples(query, settings.top_triples, standardised)
        titles = self._titles_in(query, settings)
        starts = self._passage_starts(query, titles, settings) if settings.passage_nodes else {}
        stated = {triple for p in self.passages if p[0] in self._heaviest(starts, settings) for triple in p[3]}
        phrases: dict[str, float] = {}
        chances = softmax([score for _, score in triples], settings.temperature)
        for (triple, _), chance in zip(triples, chances, strict=True):
            if settings.passage_nodes and triple not in stated:
                continue
            s, _, o = triple
            specific = {phrase: self._specificity(phrase, settings) for phrase in {s, o}}
            for phrase, specificity in specific.items():
                phrases[phrase] = phrases.get(phrase, 0.0) + chance * specificity / sum(specific.values())
        at = {p[0]: p for p in self.passages}
        called = {phrase for ids in titles.values() for id in ids for phrase in self._titles(at[id])}
        others = [name for name in names if not any(f" {name} " in f" {title} " for title in titles)]
        named = {name: self._specificity(name, settings) for name in {*called, *others} if name in self.holders}
        for_names = (settings.name_share if triples else 1.0) if named else 0.0
        phrases = {
            phrase: (1.0 - for_names) * phrases.get(phrase, 0.0)
            + for_names * named.get(phrase, 0.0) / sum(named.values())
            if named
            else phrases[phrase]
            for phrase in phrases.keys() | named.keys()
        }
        phrases = {phrase: weight for phrase, weight in phrases.items() if weight > 0}
        if not settings.passage_nodes:
            return Answer(self._walk(query, phrases, None, settings, None), triples, phrases)
        known = max(self.known_words(query), settings.least_known)
        share = 1.0 - known * (1.0 - settings.passage_share) * sum(phrases.values())
        seeds = {phrase: (1.0 - share) * weight / sum(phrases.values()) for phrase, weight in phrases.items()}
        hop = {id: settings.hop_share * weight for id, weight in self._next_passages(query, starts, settings).items()}
        stays = 1.0 - sum(hop.values())
        passages = {id: share * (stays * starts.get(id, 0.0) + hop.get(id, 0.0)) for id in self.ids}
        scores = self._walk(query, seeds, passages, settings, self._occurrences)
        return Answer(self._damped(scores, seeds, passages, settings), triples, seeds)

    def _damped(self, scores, seeds, passages, settings):
        """The scores where what a passage with far more triples than the mean gets from others counts for less."""
        degrees = {p[0]: sum(1 + (s != o) for s, _, o in set(p[3])) for p in self.passages}
        limit = settings.hub_degree * sum(degrees.values()) / len(degrees)
        whole = sum(seeds.values()) + sum(passages.values())
        if not whole:
            return scores
        isolated = sum(weight for id, weight in passages.items() if not degrees[id]) / whole
        damped = {}
        for id, score in scores.items():
            own = (1.0 - settings.damping) * passages[id] / whole / (1.0 - settings.damping * isolated)
            factor = (limit / degrees[id]) ** settings.hub_power if degrees[id] > limit else 1.0
            damped[id] = own + factor * (score - own)
        return damped

    def _passage_starts(self, query, titles, settings):
        """{id: weight}: the passages named, by what the titles are of the query; the rest by cosines and by words, each with as
        much as the squares of its weights sum to, and words with as much as their passages have of the query; and by the
        geometric mean of the two, as far as the encoder does not know the query, or whole if it names no title."""
        cosines = dict(zip(self.ids, standardised(np.array(list(self._dense(query).values()))), strict=True))
        nearest = self._softmax_of_best(cosines, settings.temperature, settings.seed_passages)
        words = self._with_parts(query, self.bm25(query), settings)
        best = max(words.values(), default=1.0)
        worded = self._softmax_of_best(
            {id: score / best for id, score in words.items()}, settings.word_temperature, settings.seed_passages
        )
        known = max(self.known_words(query), settings.least_known)
        either = sorted(nearest.keys() | worded.keys())
        means = [
            known * cosines[id] / settings.temperature / 2 + words.get(id, 0.0) / best / settings.word_temperature / 2
            for id in either
        ]
        both = dict(zip(either, softmax(means, 1.0), strict=True))
        sure = [sum(weight**2 for weight in weights.values()) for weights in (nearest, worded, both)]
        sure[0] *= known
        sure[1] *= sum(weight * self._coverage(query, id) for id, weight in worded.items())
        sure[2] *= 1.0 - known if titles else 1.0
        named = Sums()
        for ids in titles.values():
            for id in ids:
                named[id] += 1.0 / len(ids) / len(titles)
        asked = {word: self._idf(word) for word in self.query_terms(query, self.languages)}
        said = {word for title in titles for word in self.query_terms(title, self.languages)}
        length = math.sqrt(sum(idf**2 for idf in asked.values()))
        share = math.sqrt(sum(idf**2 for term, idf in asked.items() if term in said)) / length if titles else 0.0
        starts = Sums()
        for part, weights in (
            (share, named),
            ((1.0 - share) * sure[0] / sum(sure), nearest),
            ((1.0 - share) * sure[1] / sum(sure), worded),
            ((1.0 - share) * sure[2] / sum(sure), both),
        ):
            for id, weight in weights.items():
                starts[id] += part * weight
        return starts

    def _with_parts(self, query, words, settings):
        """{id: score} of the best by BM25, with BM25 of runs of characters of the query's words, as among them."""
        best = sorted(words, key=lambda id: (-round(words[id], 5), id))[: settings.word_candidates]
        texts = {id: folded(self.full[self.ids.index(id)]) for id in best}
        parts: Counter[str] = Counter()
        for word in re.findall(r"[^\W_]+", folded(query)):
            for start in range(len(word) - settings.part_length + 1):
                parts[word[start : start + settings.part_length]] += 1
        lengths = {id: self.lengths[self.ids.index(id)] for id in best}
        mean = sum(lengths.values()) / max(len(texts), 1)
        out = {}
        for id, text in texts.items():
            out[id] = words[id]
            for part, repeats in parts.items():
                df = sum(part in each for each in texts.values())
                idf = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
                count = sum(text.startswith(part, at) for at in range(len(text)))
                bm25 = idf * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * lengths[id] / mean))
                out[id] += settings.parts_weight * repeats * bm25
        return out

    def _softmax_of_best(self, scores, temperature, count):
        if not scores:
            return {}
        least = sorted(scores.values(), reverse=True)[:count][-1] - 1e-9
        near = {id: score for id, score in scores.items() if score >= least}
        return dict(zip(near, softmax(list(near.values()), temperature), strict=True))

    def _heaviest(self, starts, settings):
        """The ids of the heaviest starts, heaviest first."""
        sources = sorted(starts, key=lambda id: (-round(starts[id], 12), id))[: settings.heaviest_starts]
        return [id for id in sources if starts[id] > 0]

    def _next_passages(self, query, starts, settings):
        """{id: weight}: what the best triples of the heaviest starts send to the passages that their other ends title."""
        sources = self._heaviest(starts, settings)
        at = {p[0]: p for p in self.passages}
        scaled = self._scaled_triples(query, {triple for id in sources for triple in at[id][3]})
        arrives = Sums()
        for id in sources:
            own = self._titles(at[id])
            said = sorted(set(at[id][3]), key=lambda triple: (-round(scaled[triple], 9), "\0".join(triple)))
            said = said[: settings.hop_triples]
            chances = softmax([scaled[triple] for triple in said], settings.hop_temperature) if said else []
            for (s, _, o), chance in zip(said, chances, strict=True):
                specific = {phrase: self._specificity(phrase, settings) for phrase in {s, o} if phrase not in own}
                for phrase, specificity in specific.items():
                    sent = starts[id] / sum(starts[each] for each in sources) * chance
                    for other in self._titled(phrase, settings):
                        arrives[other] += (
                            sent * specificity / sum(specific.values()) / len(self._titled(phrase, settings))
                        )
        return arrives

    def _scaled_triples(self, query, stated):
        """{triple: score} of statements and mention edges, in standard deviations over all statements. A mention edge has no
        vector: it counts as nine tenths of the nearer of its two ends."""
        if not self.triples:
            return dict.fromkeys(stated, 0.0)
        cosines = self.triple_vectors @ self.triple_query_vector(query).astype(float)
        of_phrases = dict(zip(self.phrases, self.phrase_vectors @ self.query_vector(query).astype(float), strict=True))
        found = dict(zip(self.triples, cosines, strict=True))
        found |= {(s, p, o): 0.9 * max(of_phrases[s], of_phrases[o]) for s, p, o in stated if not p}
        deviation = cosines.std()
        return {t: (each - cosines.mean()) / deviation if deviation > SAME else 0.0 for t, each in found.items()}

    def _titled(self, phrase, settings):
        """The passages that say most of the phrase and have it as their title."""
        said = {p[0]: self._occurrences(p, phrase) for p in self.passages if self._occurrences(p, phrase)}
        if len(said) > settings.titled_passages:
            least = sorted(said.values(), reverse=True)[settings.titled_passages - 1]
            enough = {id for id, count in said.items() if count >= least}
            if len(enough) > 2 * settings.titled_passages:
                enough = {id for id, count in said.items() if count > least}
            return [p[0] for p in self.passages if p[0] in enough and phrase in self._titles(p)]
        return [p[0] for p in self.passages if p[0] in said and phrase in self._titles(p)]

    @staticmethod
    def _titles(passage):
        """What a passage is called: its title, and its title without what is in parentheses at its end."""
        called = normalise_phrase(passage[1]), normalise_phrase(re.sub(r"\([^()]*\)$", "", passage[1].strip()))
        return {phrase for phrase in called if phrase}

    def _titles_in(self, query, settings):
        """{title: ids}: titles of which the query has all words in a row, one of them capitalised, the longest first."""
        scores = self.bm25(query)
        candidates = sorted(scores, key=lambda id: (-round(scores[id], 5), id))[: settings.word_candidates]
        at = {p[0]: p for p in self.passages}
        bearers: dict[str, list[str]] = {}
        for id in candidates:
            for phrase in self._titles(at[id]):
                bearers.setdefault(phrase, []).append(id)
        words = [(normalise_phrase(word), word[0]) for word in re.findall(r"\w+", query)]
        capital = [not first.islower() and word not in ("where", "who") for word, first in words]
        spans = []
        for phrase in bearers:
            length = len(phrase.split())
            for start in range(len(words) - length + 1):
                span = range(start, start + length)
                if " ".join(words[i][0] for i in span) == phrase:
                    if any(capital[i] for i in span) or (not any(capital) and length > 1):
                        spans.append((-len(phrase), start, phrase, span))
                    break
        found = {}
        taken: set[int] = set()
        for _, _, phrase, span in sorted(spans, key=lambda each: each[:3]):
            if not taken & set(span):
                taken |= set(span)
                found[phrase] = bearers[phrase]
        return found

    def _coverage(self, query, id):
        """The cosine between the query's words, by idf, and those of them that the passage has."""
        counts = self.texts[self.ids.index(id)]
        asked = {word: self._idf(word) for word in self.query_terms(query, self.languages)}
        has = sum(idf**2 for word, idf in asked.items() if any(term in counts for term in word))
        return math.sqrt(has / sum(idf**2 for idf in asked.values()))

    def _idf(self, word):
        if word not in self._rarity:
            df = sum(any(term in counts for term in word) for counts in self.texts)
            self._rarity[word] = math.log(1 + (len(self.texts) - df + 0.5) / (df + 0.5))
        return self._rarity[word]

    def bm25(self, query, k1=1.2, b=0.75):
        mean = sum(self.lengths) / len(self.lengths)
        scores = {}
        for id, counts, length in zip(self.ids, self.texts, self.lengths, strict=True):
            score = 0.0
            for word, repeats in self.query_terms(query, self.languages).items():
                count = max(counts[term] for term in word)
                score += repeats * self._idf(word) * count * (k1 + 1) / (count + k1 * (1 - b + b * length / mean))
            if score > 0:
                scores[id] = score
        return scores


def ascii_words(text):
    """Words in ASCII, without regard to endings: for texts whose words have none."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return Counter(words), "en", len(words)


def min_max(values):
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high - low > SAME else np.ones(len(values))


def standardised(values):
    deviation = values.std()
    return (values - values.mean()) / deviation if deviation > SAME else np.zeros(len(values))


def softmax(scores, temperature):
    powers = [math.exp((score - max(scores)) / temperature) for score in scores]
    return [power / sum(powers) for power in powers]


def heaviest(weights, count):
    return dict(sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:count])
