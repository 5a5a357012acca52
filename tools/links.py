"""Follow every link of a site that was built: `python tools/links.py build/docs`. Nothing is fetched.

A link inside the site must lead to a file of it, and to a place in that file; links to other hosts are listed.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page links to, and the places in it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.places: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in {"href", "src"}:
                self.links.add(value)
            elif value and (name == "id" or (tag == "a" and name == "name")):
                self.places.add(value)


def follow_links(site: Path) -> tuple[list[str], dict[str, str], int]:
    """Links that lead nowhere, links to elsewhere with a page that has them, and how many were followed."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    broken, elsewhere, followed = [], {}, 0
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if parts.scheme != "data":
                    elsewhere.setdefault(link, path.name)
                continue
            followed += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = pages[target].places if target in pages else {""}
            if not target.is_file() or (target in pages and unquote(parts.fragment) not in known):
                broken.append(f"{path.relative_to(site.resolve())}: {link}")
    return broken, elsewhere, followed


def main() -> None:
    broken, elsewhere, followed = follow_links(Path(sys.argv[1]))
    for link, page in elsewhere.items():
        print(f"not followed: {link} (in {page})")
    if broken:
        sys.exit("these links lead nowhere:\n" + "\n".join(broken))
    print(f"{followed:,} links inside the site lead somewhere")


if __name__ == "__main__":
    main()
