"""Every dependency is pinned and explained, and an audit that could not ask does not say that all is well."""

import json
import sys
from pathlib import Path

import pytest

from tests.dependencies import audit


@pytest.mark.slow
def test_what_is_installed_is_what_is_pinned() -> None:
    assert list(audit.differences()) == []


def test_every_dependency_has_a_reason_and_an_alternative() -> None:
    assert list(audit.unexplained()) == []


@pytest.mark.slow
def test_audit_reports_unpinned_stale_and_unexplained_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pinned = audit.PINS.read_text("utf-8").replace("structlog==", "structlog-of-old==")
    (tmp_path / "constraints.txt").write_text(pinned)
    told = audit.TABLE.read_text("utf-8").replace("- `structlog`", "- `structlog-of-old`")
    (tmp_path / "dependencies.md").write_text(told)
    monkeypatch.setattr(audit, "PINS", tmp_path / "constraints.txt")
    monkeypatch.setattr(audit, "TABLE", tmp_path / "dependencies.md")
    assert [sentence.split(" ")[0] for sentence in audit.differences()] == ["structlog", "structlog-of-old"]
    assert [sentence.split(" ")[0] for sentence in audit.unexplained()] == ["structlog", "structlog-of-old"]


def test_every_licence_is_known() -> None:
    """Two say it in a file only; what that says was read."""
    unknown = {
        name for name, each in audit.installed().items() if name not in audit.OWN and audit.licence(each) == "not said"
    }
    assert unknown <= {"promql-parser", "axe-playwright-python"}


FINE = [{"name": "a", "version": "1", "vulns": []}]
BAD = [
    {"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"], "aliases": [], "description": ""}]}
]
SKIPPED = [{"name": "a", "skip_reason": "not found"}]


@pytest.mark.process
@pytest.mark.parametrize(
    ("code", "said", "error", "expected", "told"),
    [
        (0, json.dumps({"dependencies": FINE}), "", audit.NOTHING_KNOWN, "nothing known"),
        (1, json.dumps({"dependencies": BAD}), "", audit.WRONG, "CVE-1; fixed in 2"),
        (0, json.dumps({"dependencies": SKIPPED}), "", audit.NOBODY_KNOWS, "not found"),
        (1, "", "Traceback\nConnectionError: no route", audit.NOBODY_KNOWS, "no route"),
        (0, "", "", audit.NOBODY_KNOWS, "nothing is known"),
    ],
)
def test_vulnerability_audit_reports_findings_unknown_packages_and_outages(
    code: int, said: str, error: str, expected: int, told: str
) -> None:
    """A service that answers, finds something, does not know a package, or cannot be reached."""
    program = f"import sys; sys.stdout.write({said!r}); sys.stderr.write({error!r}); sys.exit({code})"
    found, sentences = audit.known_vulnerabilities([sys.executable, "-c", program], audit.PINS)
    assert found == expected
    assert told in " ".join(sentences)


@pytest.mark.process
def test_audit_without_pip_audit_reports_an_unknown_result(tmp_path: Path) -> None:
    assert audit.known_of_all_pins([str(tmp_path / "pip-audit")])[0] == audit.NOBODY_KNOWS


@pytest.mark.process
@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"constraints.txt": FINE, "constraints-vllm.txt": FINE}, audit.NOTHING_KNOWN),
        ({"constraints.txt": FINE, "constraints-vllm.txt": BAD}, audit.WRONG),
        ({"constraints.txt": BAD, "constraints-vllm.txt": SKIPPED}, audit.WRONG),
        ({"constraints.txt": FINE, "constraints-vllm.txt": SKIPPED}, audit.NOBODY_KNOWS),
    ],
    ids=["nothing", "the extra's", "hippod's", "half of it asked"],
)
def test_vulnerability_audit_includes_the_pins_of_the_vllm_extra(answers: dict[str, object], expected: int) -> None:
    """A stand-in for pip-audit that knows of one file this and of the other that."""
    given = {name: json.dumps({"dependencies": answer}) for name, answer in answers.items()}
    program = f"import sys; print({given!r}[sys.argv[sys.argv.index('--requirement') + 1].rpartition('/')[2]])"
    code, sentences = audit.known_of_all_pins([sys.executable, "-c", program])
    assert code == expected
    assert {sentence.partition(": ")[0] for sentence in sentences} == set(answers)


def test_vllm_pins_contain_every_dependency_of_hippod() -> None:
    needed = {name for name, extra in audit.direct().items() if extra not in ("multilingual", "ray", "test")}
    assert needed - set(audit.pins(audit.VLLM_PINS)) == set()


@pytest.mark.slow
def test_what_is_imported_is_declared() -> None:
    assert list(audit.undeclared()) == []


@pytest.mark.slow
def test_audit_reports_imports_of_undeclared_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = audit.direct()
    monkeypatch.setattr(audit, "direct", lambda: declared | {"starlette": "test", "pytest": "vllm"} | {"pillow": "x"})
    told = list(audit.undeclared())
    # The daemon may not live on what the tests have; a module is known by its distribution (PIL is pillow).
    assert [sentence.split(" ")[0] for sentence in told] == ["pillow", "starlette", "pillow"]
    assert "pyproject.toml" in told[0]
