"""Where the benchmarks read question sets and corpora, and write results."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
MUSIQUE = DATA / "musique"
CORPUS = DATA / "2wiki" / "corpus.json"
MANUALS = Path(os.environ.get("HIPPOD_BENCH_MANUALS", DATA / "manuals" / "drive"))
DRIVE = ROOT / "examples" / "drive"
RESULTS = ROOT / "bench" / "results"


def skipped(name: str, *paths: Path, variable: str = "") -> str:
    """Returns the line of the report for a part whose files are missing. `variable`: the environment variable that names
    another place."""
    missing = " and ".join(str(path) for path in paths if not path.exists())
    return f"{name} skipped: {missing} not found{f' ({variable} names another place)' if variable else ''}."
