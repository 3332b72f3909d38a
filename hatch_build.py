"""Description of a release: README.md with addresses in place of paths in the repository.

Package indexes show the text alone, where a path such as ``docs/cli.md`` leads nowhere.
"""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

# The part of a Markdown link or picture behind its text, unless it is an address or an anchor.
PATH = re.compile(r"(!?\[[^\]]*\]\()(?!https?:|#)")


def with_addresses(text: str, repository: str, version: str) -> str:
    """Return a page whose paths are addresses of this version's files."""
    # A version in development has no tag.
    files = f"{repository}/{{}}/{'main' if 'dev' in version else f'v{version}'}/"
    return PATH.sub(
        lambda link: link[1] + files.format("raw" if link[1][0] == "!" else "blob"), text
    )


class Readme(MetadataHookInterface):
    """The field ``readme`` of the project."""

    def update(self, metadata: dict) -> None:
        """Put the description in."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        page = with_addresses(text, metadata["urls"]["Repository"], metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": page}
