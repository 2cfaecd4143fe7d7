"""The README and the project's URLs for a package index, from one public address.

The address is `repository` in pyproject.toml (tool.hatch.metadata.hooks.custom). While it is empty,
the package has no URLs, and the README has plain text instead of links and no pictures, because
they would lead nowhere.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)\s]+)\)")


class ReadmeHook(MetadataHookInterface):
    """Adds the README and the URLs to the package's metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set README and URLs for the setting `repository`."""
        repository = self.config["repository"].rstrip("/")
        text = (Path(self.root) / "README.md").read_text("utf-8")
        text = readme_of_index(text, repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = urls_of_project(repository)


def urls_of_project(repository: str) -> dict[str, str]:
    """Return the URLs that a package index shows, none without a repository."""
    if not repository:
        return {}
    return {
        "Source Code": repository,
        "Documentation": f"{repository}/blob/HEAD/docs/index.md",
        "Changelog": f"{repository}/blob/HEAD/CHANGELOG.md",
        "Bug Tracker": f"{repository}/issues",
    }


def readme_of_index(text: str, repository: str) -> str:
    """Return the README with whole addresses, or, without a repository, with none that are dead."""

    def whole(link: re.Match[str]) -> str:
        picture, shown, place = link.groups()
        if repository:
            kind = "raw" if picture else "blob"
            return f"{picture}[{shown}]({repository.rstrip('/')}/{kind}/HEAD/{place})"
        return "" if picture else shown

    return _LINK.sub(whole, text)
