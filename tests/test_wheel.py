"""What a package registry shows of the project: every link there leads somewhere, or is none."""

from __future__ import annotations

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
HOME = "https://example.org/rvm"
RELATIVE = re.compile(r"\]\((?!https?:)[^)]*\)")


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The build's own module; what it is a plug-in of need not be installed."""
    interface = ModuleType("hatchling.metadata.plugin.interface")
    interface.MetadataHookInterface = object  # type: ignore[attr-defined]
    for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    spec = spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def metadata(hook: ModuleType, home: str) -> dict[str, Any]:
    plugin = hook.MetadataHook()
    plugin.root, plugin.config = str(ROOT), {"home": home}
    found: dict[str, Any] = {}
    plugin.update(found)
    return found


def test_without_a_home_there_are_no_links_but_to_elsewhere(hook: ModuleType) -> None:
    found = metadata(hook, "")
    text = found["readme"]["text"]
    assert found["urls"] == {}
    assert not RELATIVE.search(text)
    assert "docs/tour.md" in text and "https://docs.astral.sh/uv/" in text


def test_with_a_home_every_link_is_to_a_file_there(hook: ModuleType) -> None:
    found = metadata(hook, HOME + "/")
    text = found["readme"]["text"]
    assert not RELATIVE.search(text)
    links = re.findall(rf"\]\({HOME}/(blob|raw)/HEAD/([^)#]*)\)", text)
    assert len(links) >= 20
    links += [("blob", v.removeprefix(f"{HOME}/blob/HEAD/")) for v in found["urls"].values()][2:]
    for kind, path in links:
        assert (ROOT / path).exists(), path
        assert (kind == "raw") == path.endswith(".svg")
    assert found["urls"]["Homepage"] == HOME


def test_the_readme_has_no_other_form_of_link() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert not re.search(r"^\[[^]]+\]:|<img|<a |href=", text, re.M)
