"""`make audit`: what hippod is installed with, held against its pins, its imports, its licences, and what is known to be
vulnerable, of the pins of the extra `vllm` too.

All but the last need nothing but the installation. The last asks a service by pip-audit, and says so where that cannot
be reached: exit code 0 means that the service answered and knows of nothing, 1 that something is wrong, 3 that nobody knows.
"""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, distributions, packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PINS = ROOT / "constraints.txt"
VLLM_PINS = ROOT / "constraints-vllm.txt"
"""What the extra `vllm` is installed with in place of the others; it is not installed here, and asked about all the same."""
TABLE = ROOT / "docs" / "reference" / "dependencies.md"
EXTRAS = {"graph", "multilingual", "ray", "torch", "vllm"}
OWN = {"hippod", "pip", "setuptools", "wheel"}
"""What is there by itself."""
ROOMS = ("consumers", "memory", "store", "daemon", "cli")
BESIDE = ("tests", "bench", "examples", "systemd", "docs")
"""Code that is not installed; it has what the tests have."""
NOTHING_KNOWN, WRONG, NOBODY_KNOWS = 0, 1, 3
SERVICE_S = 600.0


@dataclass(frozen=True)
class Row:
    """One line of the list in docs/reference/dependencies.md."""

    name: str
    why: str
    instead: str


def pins(file: Path | None = None) -> dict[str, str]:
    """Versions by canonical name."""
    found: dict[str, str] = {}
    for line in (file or PINS).read_text("utf-8").splitlines():
        name, equal, version = line.partition("#")[0].partition("==")
        if equal:
            found[canonicalize_name(name.strip())] = version.strip()
    return found


def extra_pins() -> set[str]:
    """Pins of extras that need not be installed: the ones after a heading "# Only with the extra …:"."""
    _, _, below = PINS.read_text("utf-8").partition("\n# Only with the extra ")
    return {canonicalize_name(line.partition("==")[0]) for line in below.splitlines() if "==" in line}


def installed() -> dict[str, Distribution]:
    return {canonicalize_name(each.name): each for each in distributions()}


ELSEWHERE = {
    "bench/support/second_extractors.py",
    "systemd/package/wheel_backend.py",
    "examples/langchain_retriever.py",
    "examples/llama/serve.py",
    "examples/llamaindex_retriever.py",
    "tests/examples/retriever_run.py",
    "tests/memory/llm/servers/gguf_tokens.py",
    "tests/memory/llm/servers/random_gguf.py",
    "tests/memory/llm/servers/random_transformers.py",
}
"""Programs that run in an environment of their own (`make test-servers`, `make test-integrations`, a build of the wheel)."""


def direct() -> dict[str, str]:
    """The dependencies that pyproject.toml names, and under which extra ("" for hippod itself). One that the extra `test`
    shares with another is the other's."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    in_order = sorted(groups.items(), key=lambda group: group[0] != "test")
    return {canonicalize_name(Requirement(text).name): extra for extra, texts in in_order for text in texts}


def table() -> list[Row]:
    """The lines of the list: a name in backquotes, why it is there, and what would replace it."""
    lines = re.findall(r"^- `([^`]+)`(?: \(.*?\))?: (.*); instead: (.*)$", TABLE.read_text("utf-8"), re.MULTILINE)
    return [Row(canonicalize_name(name), why, instead) for name, why, instead in lines]


def licence(distribution: Distribution) -> str:
    """As short as the package says it."""
    meta = distribution.metadata
    classified = [
        text.rpartition(" :: ")[2] for text in meta.get_all("Classifier") or () if text.startswith("License ::")
    ]
    named = [*(meta.get_all("License-Expression") or ()), *classified, *(meta.get_all("License") or ())]
    for text in named:
        if text and text not in ("OSI Approved", "UNKNOWN"):
            return " ".join(text.split())[:60]
    return "not said"


def differences() -> Iterator[str]:
    """Where installation and pins do not agree."""
    wanted, there = pins(), installed()
    asked_for = {
        canonicalize_name(requirement.name)
        for each in there.values()
        for requirement in map(Requirement, each.requires or ())
        if "extra ==" not in str(requirement.marker or "")
    }
    for name, distribution in sorted(there.items()):
        if name in OWN:
            continue
        if name not in wanted:
            yield f"{name} {distribution.version} is installed and not pinned: add it to constraints.txt"
        elif Version(distribution.version).public != Version(wanted[name]).public:
            yield f"{name} is installed as {distribution.version} and pinned to {wanted[name]}: install again"
    for name in sorted(set(wanted) - set(there) - asked_for - extra_pins()):
        yield f"{name} is pinned and nothing asks for it: take it out of constraints.txt"


def unexplained() -> Iterator[str]:
    """Dependencies of hippod and its extras that the table does not account for, and rows that account for nothing."""
    rows = {row.name: row for row in table()}
    named = {name for name, extra in direct().items() if extra != "test"}
    for name in sorted(named):
        if name not in rows:
            yield f"{name} is not in docs/reference/dependencies.md: say why it is there and what would replace it"
        elif not (rows[name].why and rows[name].instead):
            yield f"{name} lacks its reason, or what would replace it, in docs/reference/dependencies.md"
    for name in sorted(set(rows) - named):
        yield f"{name} is in docs/reference/dependencies.md and not in pyproject.toml"


@cache
def imported(folder: str) -> dict[str, Path]:
    """Distributions that the code below a folder imports, each with a file that does."""
    homes = packages_distributions()
    ours = {*ROOMS, *BESIDE, *(path.stem for path in (ROOT / "systemd" / "package").glob("*.py"))}
    found: dict[str, Path] = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        if path.relative_to(ROOT).as_posix() in ELSEWHERE:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            modules = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules = [node.module]
            for name in {module.partition(".")[0] for module in modules} - ours - sys.stdlib_module_names:
                # What is not installed (an extra) is taken to be called as its module is.
                for home in homes.get(name, [name]):
                    found.setdefault(canonicalize_name(home), path.relative_to(ROOT))
    return found


def undeclared() -> Iterator[str]:
    """Imports of what pyproject.toml does not name: that came with something else, and may go with it."""
    extras = direct()
    for folders, allowed in ((ROOMS, {"", *EXTRAS}), (BESIDE, {"", *EXTRAS, "test"})):
        for name, path in sorted({name: path for each in folders for name, path in imported(each).items()}.items()):
            if extras.get(name) not in allowed:
                yield f"{name} is imported ({path}) and not in pyproject.toml: name it there and in {TABLE.relative_to(ROOT)}"


def known_of_all_pins(command: list[str]) -> tuple[int, list[str]]:
    """What is known of both files of pins; the worse of the two exit codes."""
    codes, sentences = [], []
    for file in (PINS, VLLM_PINS):
        code, told = known_vulnerabilities(command, file)
        codes.append(code)
        sentences += [f"{file.name}: {sentence}" for sentence in told]
    return next((code for code in (WRONG, NOBODY_KNOWS) if code in codes), NOTHING_KNOWN), sentences


def known_vulnerabilities(command: list[str], file: Path) -> tuple[int, list[str]]:
    """What pip-audit, run as `command`, finds among the pins of a file: an exit code as above, and sentences."""
    asked = [
        *command,
        "--requirement",
        str(file),
        "--no-deps",
        "--disable-pip",
        "--format",
        "json",
        "--progress-spinner",
        "off",
    ]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=SERVICE_S)
    except FileNotFoundError:
        return NOBODY_KNOWS, [f"there is no {command[0]}: nothing was asked"]
    except subprocess.TimeoutExpired:
        return NOBODY_KNOWS, [f"the vulnerability service did not answer within {SERVICE_S:.0f} s: nothing is known"]
    try:
        answers = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        last = [line for line in done.stderr.splitlines() if line.strip()][-1:] or ["no reason given"]
        return NOBODY_KNOWS, [
            f"the vulnerability service could not be asked, so nothing is known: {last[0].strip()[:300]}"
        ]
    found = [
        f"{each['name']} {each.get('version')}: {fault['id']}; fixed in {', '.join(fault['fix_versions']) or 'no version'}"
        for each in answers
        for fault in each.get("vulns", ())
    ]
    unknown = [each for each in answers if "skip_reason" in each]
    skipped = []
    if unknown:
        names = ", ".join(each["name"] for each in unknown[:5]) + (", …" if len(unknown) > 5 else "")
        count = f"{len(unknown)} of {len(answers)} packages could not be looked up, so nothing is known of them"
        skipped = [f"{count}: {names} ({unknown[0]['skip_reason']})"]
    if found or done.returncode not in (0, 1):
        return WRONG, [*found, *skipped] or [f"pip-audit ended with {done.returncode}"]
    if skipped:
        return NOBODY_KNOWS, skipped
    return NOTHING_KNOWN, [f"{len(answers)} packages looked up, nothing known against any of them"]


def main(command: list[str]) -> int:
    print("Licences")
    for name, distribution in sorted(installed().items()):
        if name not in OWN:
            print(f"  {name} {distribution.version}: {licence(distribution)}")
    wrong = [*differences(), *unexplained(), *undeclared()]
    print("Pins, imports and docs/reference/dependencies.md" + ("" if wrong else ": in order"))
    for sentence in wrong:
        print(f"  {sentence}")
    code, told = known_of_all_pins(command)
    print("Known vulnerabilities")
    for sentence in told:
        print(f"  {sentence}")
    return WRONG if wrong else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
