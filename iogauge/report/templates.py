"""The templates of all pages, and how they are read: escaped by default, and a name that is missing is an error."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined


def environment() -> Environment:
    """A new one, for a page to add its own names to."""
    return Environment(
        loader=PackageLoader("iogauge.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
