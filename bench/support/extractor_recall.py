"""Compare OpenIE extractors by what a user feels: recall of supporting passages, in an in-memory HippoRAG 2.

A development harness, apart from the product so that it stays a second opinion: numpy and scipy only, the paper's
numbers as constants. `python -m bench.support.extractor_recall --data DIR` with DIR holding corpus.json, questions.json and
openie.json prints one row an extractor, with the bootstrapped difference from dense retrieval.
"""

import argparse
import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from memory.encoder.packaged_model import MINILM, verified_weights
from memory.openie.hipporag_file import read_hipporag_file
from store.passage_id import passage_id
from store.types import PassageText, Triple, is_statement

Floats = NDArray[np.float32]
K = (2, 5, 10)
TOP_TRIPLES, SEED_PHRASES, PASSAGE_WEIGHT, DAMPING, SYNONYM = 5, 5, 0.05, 0.5, 0.8


class CachedEncoder:
    """MiniLM from its package. Every text is encoded once; its vector is kept in `folder` as .npy with its keys."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.model = folder, None
        self.known: dict[str, Floats] = {}
        for keys in sorted(folder.glob("*.json")):
            rows = np.load(keys.with_suffix(".npy"))
            self.known.update(zip(json.loads(keys.read_text()), rows, strict=True))

    def encode(self, texts: Sequence[str]) -> Floats:
        """Returns unit vectors, shape (n, 384)."""
        keys = [blake2b(text.encode("utf-8", "replace"), digest_size=12).hexdigest() for text in texts]
        fresh = {key: text for key, text in zip(keys, texts, strict=True) if key not in self.known}
        if fresh:
            rows = self._compute(list(fresh.values()))
            stem = f"{len(list(self.folder.glob('*.json'))):05d}-{os.getpid()}"
            np.save(self.folder / f"{stem}.npy", rows)
            (self.folder / f"{stem}.json").write_text(json.dumps(list(fresh)))
            self.known.update(zip(fresh, rows, strict=True))
        return np.stack([self.known[key] for key in keys]) if keys else np.zeros((0, 384), np.float32)

    def _compute(self, texts: list[str]) -> Floats:
        os.environ["HF_HUB_OFFLINE"] = "1"
        import torch  # from the extra `torch`
        from sentence_transformers import SentenceTransformer

        if self.model is None:
            self.model = SentenceTransformer(str(verified_weights(MINILM).parent), device="cpu")
        bf16 = "avx512_bf16" in Path("/proc/cpuinfo").read_text()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            rows = self.model.encode(texts, batch_size=128, convert_to_numpy=True, show_progress_bar=False)
        rows = np.asarray(rows, np.float32)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


@dataclass(frozen=True)
class Question:
    text: str
    gold: frozenset[int]


def scaled(values: Floats) -> Floats:
    """Scales min-max to 0..1; all ones if all values are equal."""
    span = float(values.max() - values.min())
    return (values - values.min()) / span if span > 0 else np.ones_like(values)


class Memory:
    """A HippoRAG 2 graph over passages and their triples (edge weights: design, "The method, in numbers")."""

    def __init__(
        self, passages: Sequence[PassageText], found: Sequence[Sequence[Triple]], encoder: CachedEncoder
    ) -> None:
        self.encoder = encoder
        phrases = sorted({part for triples in found for s, _, o in triples for part in (s, o)})
        self.phrases, self.row = phrases, {phrase: i for i, phrase in enumerate(phrases)}
        self.triples = sorted({triple for triples in found for triple in triples if is_statement(triple)})
        holders: dict[int, set[int]] = defaultdict(set)
        relation: Counter[tuple[int, int]] = Counter()
        for p, triples in enumerate(found):
            for s, _, o in set(triples):
                a, b = self.row[s], self.row[o]
                holders[a].add(p)
                holders[b].add(p)
                if a != b:
                    relation[min(a, b), max(a, b)] += 1
        self.holders = np.array([len(holders[i]) for i in range(len(phrases))], np.float32)
        self.passage_vectors = encoder.encode([p.full for p in passages])
        self.triple_vectors = encoder.encode([str(t) for t in self.triples])
        synonyms = self._synonyms(encoder.encode(phrases))
        context = [(i, len(phrases) + p, 1.0) for i, ps in holders.items() for p in ps]
        edges = [(a, b, float(w)) for (a, b), w in relation.items()] + context + synonyms
        self.counts = (len(phrases), len(self.triples), len(relation), len(context), len(synonyms))
        n = len(phrases) + len(passages)
        a, b, w = (np.array(column) for column in zip(*edges, strict=True)) if edges else (np.zeros(0, int),) * 3
        graph = sp.coo_matrix((np.r_[w, w], (np.r_[a, b], np.r_[b, a])), shape=(n, n)).tocsr()
        degree = np.asarray(graph.sum(axis=0)).ravel()
        self.walk = (graph @ sp.diags(1 / np.maximum(degree, 1e-12))).tocsr()
        self.dangling = degree == 0

    def _synonyms(self, vectors: Floats) -> list[tuple[int, int, float]]:
        # HippoRAG's rule: a phrase needs more than two letters or digits to have synonyms.
        linkable = np.array([sum(char.isalnum() for char in p) > 2 for p in self.phrases])
        found = []
        for start in range(0, len(vectors), 1024):
            block = vectors[start : start + 1024] @ vectors.T
            for i, j in zip(*np.nonzero(block >= SYNONYM), strict=True):
                if start + i < j and linkable[start + i] and linkable[j]:
                    found.append((int(start + i), int(j), float(block[i, j])))
        return found

    def rank(self, query: str) -> NDArray[np.int64]:
        """Returns passage rows, best first, as HippoRAG 2 ranks them without the filter."""
        vector = self.encoder.encode([query])[0]
        passage = scaled(self.passage_vectors @ vector)
        if not self.triples:
            return np.argsort(-passage, kind="stable")
        score = scaled(self.triple_vectors @ vector)
        weights: dict[int, list[float]] = defaultdict(list)
        for t in np.argsort(-score, kind="stable")[:TOP_TRIPLES]:
            s, _, o = self.triples[t]
            for part in (s, o):
                row = self.row[part]
                weights[row].append(float(score[t] / self.holders[row]))
        seeds = sorted(((float(np.mean(w)), i) for i, w in weights.items()), reverse=True)[:SEED_PHRASES]
        reset = np.zeros(self.walk.shape[0])
        reset[len(self.phrases) :] = passage * PASSAGE_WEIGHT
        for weight, row in seeds:
            reset[row] += weight
        reset /= reset.sum()
        rank = reset
        for _ in range(60):
            new = DAMPING * (self.walk @ rank + rank[self.dangling].sum() * reset) + (1 - DAMPING) * reset
            done = np.abs(new - rank).sum() < 1e-9
            rank = new
            if done:
                break
        return np.argsort(-rank[len(self.phrases) :], kind="stable")


def recall(ranks: NDArray[np.int64], gold: frozenset[int], k: int) -> float:
    """Returns the share of the gold passages among the first k."""
    return len(gold & set(ranks[:k].tolist())) / len(gold)


def measure(rank: Callable[[str], NDArray[np.int64]], questions: Sequence[Question]) -> NDArray[np.float64]:
    """Returns the recall at each of K, shape (questions, len(K))."""
    return np.array([[recall(order, q.gold, k) for k in K] for q in questions for order in [rank(q.text)]])


def against(ours: NDArray[np.float64], base: NDArray[np.float64]) -> str:
    """Formats the mean difference of recall@5 with its 90 % bootstrap interval over questions."""
    difference = ours[:, 1] - base[:, 1]
    rng = np.random.default_rng(0)
    means = difference[rng.integers(0, len(difference), (4000, len(difference)))].mean(axis=1)
    low, high = np.quantile(means, [0.05, 0.95])
    return f"{difference.mean():+.3f} [{low:+.3f}, {high:+.3f}]"


def load(folder: Path) -> tuple[list[PassageText], list[Question], dict[str, list[Triple]]]:
    """Returns passages, questions and GPT-3.5's triples by full passage text, from HippoRAG's files."""
    corpus = json.loads((folder / "corpus.json").read_text())
    passages = [PassageText(passage_id(c["title"], c["text"]), c["title"], c["text"]) for c in corpus]
    rows = {p.full: i for i, p in enumerate(passages)}
    questions = [
        Question(
            q["question"],
            frozenset(rows[f"{g['title']}\n{g['text']}"] for g in q["paragraphs"] if g["is_supporting"]),
        )
        for q in json.loads((folder / "questions.json").read_text())
    ]
    recorded = {
        (f"{r.title}\n{r.text}" if r.title else r.text): list(r.triples)
        for r in read_hipporag_file(folder / "openie.json")
    }
    return passages, questions, recorded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, default=Path("/tmp/extractor/vectors"))
    args = parser.parse_args()
    passages, questions, recorded = load(args.data)
    encoder = CachedEncoder(args.cache)
    from memory.openie.rules.extractor import RulesExtractor

    started = time.perf_counter()
    ours = [list(e.triples) for e in RulesExtractor().extract(passages)]
    rate = len(passages) / (time.perf_counter() - started)
    theirs = [recorded.get(p.full, []) for p in passages]
    encoder.encode([q.text for q in questions])
    dense = measure(Memory(passages, [[] for _ in passages], encoder).rank, questions)
    print(
        f"{'extractor':<10} {'@2':>6} {'@5':>6} {'@10':>6}  @5 against dense  phrases/triples/relation/context/synonym"
    )
    print(f"{'dense':<10} " + " ".join(f"{v:6.4f}" for v in dense.mean(axis=0)))
    for name, found in (("recorded", theirs), ("rules", ours)):
        memory = Memory(passages, found, encoder)
        scores = measure(memory.rank, questions)
        row = " ".join(f"{v:6.4f}" for v in scores.mean(axis=0))
        print(f"{name:<10} {row}  {against(scores, dense)}  {'/'.join(map(str, memory.counts))}")
    print(f"rules: {rate:.0f} passages/s")


if __name__ == "__main__":
    main()
