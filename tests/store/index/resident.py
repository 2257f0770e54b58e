"""The share of a mapped file that this process has accessed."""

from pathlib import Path


def resident_share(file: Path) -> float:
    """Returns the share of the pages of `file`'s mapping that are accessible without a page fault."""
    mapped, sizes = False, {"Size": 0, "Rss": 0}
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, _, rest = line.partition(" ")
        if not name.endswith(":"):
            mapped = rest.endswith(str(file))
        elif mapped and name[:-1] in sizes:
            sizes[name[:-1]] += int(rest.split()[0])
    return sizes["Rss"] / sizes["Size"]
