"""Whether the extra `multilingual` is installed, with the taggers for German (HanTa) and Japanese (Sudachi)."""

from importlib.util import find_spec

EXTRA = "multilingual"
TAGGED_LANGUAGES = frozenset({"de", "ja"})
"""Languages of the taggers, by code of the language detector."""
INSTALLED = all(find_spec(module) is not None for module in ("HanTa", "sudachipy", "sudachidict_small"))
"""Whether both taggers are installed and used. Without them, names are found by capitals and characters only."""
