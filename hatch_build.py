"""What a package registry shows: the README with links that work there, and the project's pages.

On a registry's page relative links lead nowhere.  They become links to `home`, which pyproject.toml
names; as long as it names none, their texts stay and pictures are left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"!\[([^]]*)\]\((?!\w+:|#)([^)]*)\)\n*")
LINK = re.compile(r"(?<!!)\[([^]]*)\]\((?!\w+:|#)([^)]*)\)")
PAGES = {"Documentation": "docs/tour.md", "Changelog": "CHANGELOG.md"}


class MetadataHook(MetadataHookInterface):
    """Fills in `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Complete the project's metadata."""
        home = self.config.get("home", "").rstrip("/")
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": shown(text, home)}
        pages = {name: f"{home}/blob/HEAD/{path}" for name, path in PAGES.items()}
        metadata["urls"] = {"Homepage": home, "Source": home, **pages} if home else {}


def shown(text: str, home: str) -> str:
    """A page whose relative links lead to a repository, or are plain texts without one."""
    if not home:
        return LINK.sub(r"\1", PICTURE.sub("", text))
    text = PICTURE.sub(lambda m: f"![{m[1]}]({home}/raw/HEAD/{m[2]})\n\n", text)
    return LINK.sub(lambda m: f"[{m[1]}]({home}/blob/HEAD/{m[2]})", text)
