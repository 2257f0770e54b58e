"""Declares the numeric settings of a deep question, each with default, bounds and meaning.

The section `[deep]` of the configuration, `deep_settings` of a request, and `hippoctl ask --deep --set` derive from this
declaration. This module imports nothing heavy, because clients import it too.
"""

from collections.abc import Mapping

from memory.retrieval.settings import Setting


def _setting(name: str, kind: type, default: float | None, meaning: str, **bounds: float) -> Setting:
    return Setting(name, kind, default, bounds, (), meaning, ())


DEEP_SETTINGS: Mapping[str, Setting] = {
    each.name: each
    for each in (
        _setting("n_v", int, 20, "Number of entities retrieved for a subquery.", ge=1, le=1_000),
        _setting("n_e", int, 5, "Number of triples of each of these entities.", ge=0, le=1_000),
        _setting("n_d", int, 10, "Number of passages of these entities; -k sets it for one question.", ge=1, le=1_000),
        _setting(
            "answer_passages", int, 50, "Largest number of passages that the answer is written from.", ge=1, le=1_000
        ),
        _setting(
            "model_temperature", float, None, "Temperature of the model's calls; by default that of [llm].", ge=0, le=2
        ),
    )
}
"""Every setting by its name, in the order of the configuration. Names and defaults are the paper's (appendix B.1)."""
