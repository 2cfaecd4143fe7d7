"""The README as a package index shows it: links and pictures with the public address, or without.

There is no public address yet: `repository` in pyproject.toml (tool.hatch.metadata.hooks.custom) is
empty, and the index gets links as plain text and no pictures, rather than addresses that lead
nowhere. Once it is set, links lead there and pictures load from there.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)\s]+)\)")


class ReadmeHook(MetadataHookInterface):
    """Gives the README to the package's metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the README, its links as the setting `repository` has them."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        text = readme_of_index(text, self.config["repository"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def readme_of_index(text: str, repository: str) -> str:
    """Return the README with whole addresses, or, without a repository, with none that are dead."""

    def whole(link: re.Match[str]) -> str:
        picture, shown, place = link.groups()
        if repository:
            kind = "raw" if picture else "blob"
            return f"{picture}[{shown}]({repository.rstrip('/')}/{kind}/HEAD/{place})"
        return "" if picture else shown

    return _LINK.sub(whole, text)
