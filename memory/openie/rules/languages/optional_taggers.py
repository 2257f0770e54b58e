"""Whether the extra `multilingual` is installed, which contains the taggers of German (HanTa) and Japanese (Sudachi)."""

from importlib.util import find_spec

EXTRA = "multilingual"
TAGGED_LANGUAGES = frozenset({"de", "ja"})
"""Languages of the taggers, by the detector's codes."""
INSTALLED = all(find_spec(module) is not None for module in ("HanTa", "sudachipy", "sudachidict_small"))
"""Whether both taggers are used. Without them, names are found by capitals and characters alone."""
