"""The page's text functions, run by node."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

TEXT = Path(__file__).parents[3] / "daemon" / "page" / "static" / "text.js"
LINE = "a line of more than fifty-five characters, broken for its width"
TIMEOUT_S = 60


@pytest.mark.process
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_unwrapped_joins_wrapped_lines_of_any_length(tmp_path: Path) -> None:
    module = tmp_path / "text.mjs"
    module.write_text(TEXT.read_text())
    cases = {
        f"{LINE}\n{LINE}\nshort\nnext": f"{LINE} {LINE} short\nnext",
        f"{LINE}\r\nnext": f"{LINE} next",
        f"{LINE}\n- item": f"{LINE}\n- item",
        f"{LINE}\n\nparagraph": f"{LINE}\n\nparagraph",
        "x" * 500_000: "x" * 500_000,
    }
    code = f"import {{ unwrapped }} from {json.dumps(module.as_uri())}; let data = ''; "
    code += "for await (const piece of process.stdin) data += piece; "
    code += "console.log(JSON.stringify(JSON.parse(data).map(unwrapped)))"
    command = ["node", "--input-type=module", "-e", code]
    found = subprocess.run(
        command, input=json.dumps(list(cases)), capture_output=True, text=True, check=True, timeout=TIMEOUT_S
    )
    assert json.loads(found.stdout) == list(cases.values())
