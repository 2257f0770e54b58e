"""Imports all that hippod's code imports anywhere: `python systemd/package/used_modules.py ROOT`, where ROOT contains the code.

Prints a JSON object: `missing`, the modules that are not installed, and `files`, the source files of all modules that were
loaded. Modules that a library loads later are not among them.
"""

import ast
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

ROOMS = ("consumers", "memory", "store", "daemon", "cli")


def main() -> None:
    root = Path(sys.argv[1])
    missing = set()
    for module, name in sorted(imports(root)):
        try:
            found = importlib.import_module(module)
            if name and not hasattr(found, name):
                importlib.import_module(f"{module}.{name}")
        except ModuleNotFoundError as error:
            missing.add(error.name)
    files = {file for each in [*sys.modules.values()] if (file := getattr(each, "__file__", None)) is not None}
    json.dump({"missing": sorted(missing), "files": sorted(file for file in files if file.endswith(".py"))}, sys.stdout)


def imports(root: Path) -> Iterator[tuple[str, str]]:
    """Yields the modules, and what is imported from them, or "" for the whole module."""
    for path in [path for room in ROOMS for path in (root / room).rglob("*.py")]:
        yield ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"), ""
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found = [(alias.name, "") for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module is not None:
                found = [(node.module, alias.name) for alias in node.names]
            else:
                continue
            yield from (each for each in found if each[0].partition(".")[0] not in sys.stdlib_module_names)


if __name__ == "__main__":
    main()
