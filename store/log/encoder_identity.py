"""Which encoder a store was made with, read without opening the store."""

import json
from pathlib import Path

from store.lance.import_shim import lancedb
from store.types import EncoderIdentity


def encoder_of_store(folder: Path) -> EncoderIdentity | None:
    """The encoder that the store in `folder` was made with; None where there is no store yet, or one that cannot be read.

    Damage is not told of here: opening the store finds it and says what to do.
    """
    if not (folder / "commits.lance").is_dir():
        return None
    try:
        table = lancedb.connect(folder).open_table("commits")
        (row,) = table.search().where("seq = 1").select(["facts"]).limit(1).to_list()
        facts = json.loads(row["facts"])
        return EncoderIdentity(facts["encoder"], facts["dim"])
    except (OSError, RuntimeError, ValueError, KeyError):
        return None
