"""The server against the client of VS Code's own tests, from npm; with `--npm` only."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.dap.programs import CALLS, WINDOW

PACKAGE = "@vscode/debugadapter-testsupport@1.68.0"
SCRIPT = Path(__file__).with_name("testsupport.js")


@pytest.mark.npm
def test_the_client_of_vs_code_is_content(tmp_path: Path) -> None:
    (tmp_path / "calls.rasm").write_text(CALLS)
    (tmp_path / "window.rasm").write_text(WINDOW)
    subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(tmp_path), PACKAGE],
        check=True,
        capture_output=True,
    )
    command = Path(sys.executable).parent / "rvm"
    done = subprocess.run(
        ["node", str(SCRIPT), str(command), str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "NODE_PATH": str(tmp_path / "node_modules")},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok ") == SCRIPT.read_text().count("  async ")
