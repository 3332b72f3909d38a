"""What a public site has beside its pages: a sitemap, a card for links, pages that moved."""

import tomllib
from html import escape
from pathlib import Path
from xml.sax.saxutils import escape as escape_xml

DOCS = Path(__file__).parent
CARD = "_static/card.png"
# Old name of a page: the page that has its content now. Add a line whenever a page is renamed.
REDIRECTS: dict[str, str] = {}
MOVED = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<link rel="canonical" href="{target}"><meta http-equiv="refresh" content="0; url={target}"></head>
<body><p>This page is now <a href="{target}">{target}</a>.</p></body></html>
"""


def address() -> str:
    """Return where the site is published, as ``pyproject.toml`` says."""
    settings = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["project"]["urls"]["Documentation"]


def card_tags(title: str, url: str, summary: str) -> str:
    """Return the tags by which other sites show a link to a page."""
    told = {
        "og:type": "website",
        "og:site_name": "ccot",
        "og:title": title,
        "og:description": summary,
        "og:url": url,
        "og:image": address() + CARD,
        "og:image:alt": "A shuffled matrix and the blocks that ccot finds in it",
    }
    lines = [f'<meta property="{name}" content="{escape(it)}">' for name, it in told.items()]
    return "\n".join([*lines, '<meta name="twitter:card" content="summary_large_image">'])


def add_card(app, page: str, template: str, context: dict, doctree) -> None:
    """Put the tags into the head of a page."""
    summary = "Co-clustering through optimal transport, in Python"
    tags = card_tags(context.get("title") or "ccot", f"{address()}{page}.html", summary)
    context["metatags"] = context.get("metatags", "") + tags


def sitemap(pages: list[str]) -> str:
    """Return the list of all pages that search engines ask for."""
    lines = [f"<url><loc>{escape_xml(address() + page)}</loc></url>" for page in sorted(pages)]
    head = '<?xml version="1.0" encoding="utf-8"?>'
    kind = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return "\n".join([head, f'<urlset xmlns="{kind}">', *lines, "</urlset>"]) + "\n"


def finish(app, failure: Exception | None) -> None:
    """Write the sitemap, and a page at every address that moved."""
    if failure or app.builder.name != "html":
        return
    out = Path(app.outdir)
    pages = [f"{name}.html" for name in app.env.found_docs]
    (out / "sitemap.xml").write_text(sitemap(pages), encoding="utf-8")
    (out / "robots.txt").write_text(f"Sitemap: {address()}sitemap.xml\n", encoding="utf-8")
    for old, new in REDIRECTS.items():
        page = out / f"{old}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        moved = MOVED.format(title=escape(new), target="../" * old.count("/") + f"{new}.html")
        page.write_text(moved, encoding="utf-8")
