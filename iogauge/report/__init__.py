"""A night as one self-contained HTML page: verdicts first, then plots, then the table, then the machine."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from iogauge import __version__, terminal
from iogauge.night import Night, write_whole
from iogauge.report import plots


def render(night: Night) -> str:
    """The page; it needs no network and no script."""
    environment = Environment(
        loader=PackageLoader("iogauge.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        {
            "rate": terminal.rate,
            "percent": terminal.percent,
            "limits_of": terminal.limits_of,
            "bands": terminal.BANDS,
            "symbols": {verdict: symbol for verdict, (symbol, _) in terminal.STYLES.items()},
        }
    )
    return environment.get_template("night.html.j2").render(
        night=night,
        headline=terminal.headline(night),
        counts=terminal.counts_line(night),
        verdict_text=lambda row: terminal.verdict_text(night, row),
        rates=[(title, Markup(svg)) for title, svg in plots.rates(night)],
        ratios=[(title, Markup(svg)) for title, svg in plots.ratios(night)],
        version=__version__,
    )


def write_report(night: Night, path: Path) -> Path:
    """Write the page whole or not at all; returns ``path``."""
    write_whole(path, render(night))
    return path
