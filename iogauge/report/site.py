"""The report: an assessed site as a folder of HTML pages that need no network, written whole or not at all."""

from __future__ import annotations

import datetime
import functools
import json
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from filelock import FileLock
from markupsafe import Markup

from iogauge import __version__, report
from iogauge.assess.record import Assessed, FileSystemState, Timeline
from iogauge.errors import InputError
from iogauge.night import Case, Night, write_whole
from iogauge.report import figures, words
from iogauge.report.templates import environment
from iogauge.report.words import Evidence, Shown
from iogauge.verdict import percent, rate

#: Marks a folder as a report: only such a folder is ever replaced.
MARKER = ".iogauge-report"
#: Kinds of plots, each with its Vega-Lite specification in a file.
_KINDS = ("timeline", "scaling", "dots")
#: Nights in the table of a series' page, and back to which a good night is looked for.
_TABLE_NIGHTS = 21
_LOOKED_BACK = 60


@dataclass(frozen=True)
class FileSystem:
    """A file system with its series, worst first; ``state`` is none where these are too few to be judged together."""

    name: str
    state: FileSystemState | None
    series: tuple[Shown, ...]
    page: str
    patterns_page: str


@dataclass(frozen=True)
class Group:
    """The series of one suite on one file system."""

    file_system: FileSystem
    suite: str
    series: tuple[Shown, ...]


@dataclass(frozen=True)
class Event:
    """What the levels of ``series`` on one file system did on one day."""

    date: datetime.date
    text: str
    file_system: FileSystem
    series: tuple[Shown, ...]


@dataclass(frozen=True)
class Changes:
    """What is otherwise than on the ``good`` night, the last one on which nothing was slower that nobody knew of; ``since`` is
    where the looking back ended, none where there is no earlier night. ``software`` with date and number of series; ``moves``
    that began or ended."""

    good: datetime.date | None
    since: datetime.date | None
    software: tuple[tuple[datetime.date, str, int], ...]
    moves: tuple[Event, ...]


def write_site(assessed: Assessed, nights: Sequence[Night], folder: Path) -> Path:
    """Write the report of ``assessed`` into ``folder``; returns its first page.

    ``nights`` are the newest runs: those of tonight get their own pages, and the newest of each series tells its site band
    and what Darshan saw. Raises :class:`InputError` where ``folder`` is something else than a report, and OSError when it
    cannot be written; the report that was there is then as it was.
    """
    folder = folder.resolve()
    if folder.exists() and not (folder / MARKER).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("is there, and is no report: it is not replaced; name another folder", file=folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.parent / f".{folder.name}.lock"):
        for left in folder.parent.glob(f".{folder.name}.part-*"):
            shutil.rmtree(left)
        new = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.part-"))
        try:
            _write(_Pages(assessed, nights), new)
            new.chmod(0o755)
            _swap(new, folder)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
    return folder / "index.html"


def _swap(new: Path, folder: Path) -> None:
    """Put ``new`` in the place of ``folder``; should that fail, the old one is put back."""
    old = folder.with_name(f".{folder.name}.part-old")
    if folder.exists():
        folder.rename(old)
    try:
        new.rename(folder)
    except BaseException:
        if old.exists():
            old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


class _Pages:
    """What the pages show, from the assessment and the newest runs."""

    def __init__(self, assessed: Assessed, nights: Sequence[Night]) -> None:
        self.assessment = assessed.assessment
        nights = sorted(nights, key=lambda night: night.started)
        evidence = {row.key: Evidence(night, case, row) for night in nights for case, row in night.rows}
        lines = {line.key: line for line in assessed.timelines}
        self.tonight = [night for night in nights if night.night_date == self.assessment.night]
        self.causes = [
            night.build_failure or night.cause for night in self.tonight if night.build_failure or not night.complete
        ]
        self.series = sorted(
            (
                Shown(
                    state=state,
                    line=lines.get(state.key) or _empty(state.key),
                    evidence=evidence.get(state.key),
                    page=f"series/{words.file_name(state.key)}.html",
                    tonight=state.date == self.assessment.night,
                )
                for state in self.assessment.series
            ),
            key=lambda shown: shown.badness,
        )
        self.invalid_cases = list(self._cases("invalid"))
        self.skipped_cases = list(self._cases("skipped"))
        self.file_systems = self._file_systems()
        self.groups = sorted(
            (
                Group(one, suite, tuple(shown for shown in one.series if shown.suite == suite))
                for one in self.file_systems
                for suite in sorted({shown.suite for shown in one.series})
            ),
            key=lambda group: self.series.index(group.series[0]),
        )

    def _file_systems(self) -> list[FileSystem]:
        """Worst first."""
        by_name: dict[str, list[Shown]] = defaultdict(list)
        for shown in self.series:
            by_name[shown.state.file_system].append(shown)
        states = {state.name: state for state in self.assessment.file_systems}
        return [
            FileSystem(
                name=name,
                state=states.get(name),
                series=tuple(members),
                page=f"file-systems/{words.file_name(name)}.html",
                patterns_page=f"patterns/{words.file_name(name)}.html",
            )
            for name, members in by_name.items()
        ]

    def _cases(self, verdict: str) -> Iterator[tuple[Night, Case]]:
        """Those of tonight with this verdict of which no series tells."""
        told = {shown.state.reason for shown in self.of_tonight if shown.word == verdict} - {""}
        for night in self.tonight:
            for case in night.cases:
                judged = case.judgement
                if (
                    judged.verdict == verdict
                    and not judged.rows
                    and not any(r in "; ".join(judged.reasons) for r in told)
                ):
                    yield night, case

    @property
    def of_tonight(self) -> list[Shown]:
        """The series that were measured."""
        return [shown for shown in self.series if shown.tonight]

    @property
    def missing(self) -> list[Shown]:
        """The series that were not measured, those measured last first."""
        rest = [shown for shown in self.series if not shown.tonight]
        return sorted(rest, key=lambda shown: (-shown.state.date.toordinal(), shown.state.key))

    def changes(self) -> Changes:
        """Looks at nights back to ``_LOOKED_BACK`` ago."""
        tonight = self.assessment.night
        since = tonight - datetime.timedelta(days=_LOOKED_BACK)
        slower = [
            (move.began, move.ended or datetime.date.max)
            for shown in self.series
            for move in shown.state.moves
            if move.slower and move.acknowledged is None and shown.state.muted is None
        ]
        dates = {night for shown in self.series for night in shown.line.dates[-_LOOKED_BACK:].tolist()}
        good = next(
            (
                night
                for night in sorted(dates, reverse=True)
                if since <= night < tonight and not any(began <= night < ended for began, ended in slower)
            ),
            None,
        )
        after = good or since
        software = Counter(
            (date, text)
            for shown in self.series
            for night, texts in shown.line.software.items()
            for text in texts
            if after < (date := shown.line.dates[night].tolist()) <= tonight
        )
        configuration = Counter(
            (date, "another configuration of the case")
            for shown in self.series
            for night in shown.line.configuration
            if after < (date := shown.line.dates[night].tolist()) <= tonight
        )
        return Changes(
            good=good,
            since=after if dates - {tonight} else None,
            software=tuple((date, text, count) for (date, text), count in sorted((software + configuration).items())),
            moves=tuple(event for one in self.file_systems for event in _events_since(one, after)),
        )


def _events_since(one: FileSystem, after: datetime.date) -> list[Event]:
    """Moves of series that began or ended after a day, those of one day and kind together."""
    found: dict[tuple[datetime.date, str, bool], list[tuple[float, Shown]]] = defaultdict(list)
    for shown in one.series:
        for move in shown.state.moves:
            if move.began > after:
                found[move.began, "", move.slower].append((abs(move.drop), shown))
            if move.ended is not None and move.ended > after:
                found[move.ended, f", {move.how}", move.slower].append((abs(move.drop), shown))
    return [
        Event(
            date=date,
            text=f"{'no longer ' * bool(how)}{words.drops(parts)} {'slower' if slower else 'faster'}{how}",
            file_system=one,
            series=tuple(shown for _, shown in members),
        )
        for (date, how, slower), members in sorted(found.items(), key=lambda item: item[0])
        if (parts := [drop for drop, _ in members])
    ]


def _empty(key: str) -> Timeline:
    nothing = np.full(0, np.nan)
    return Timeline(
        key=key,
        dates=np.array([], "datetime64[D]"),
        rates=nothing,
        reference=nothing,
        level=nothing,
        score=nothing,
        maintenance=np.zeros(0, np.bool_),
        repeats={},
        invalid={},
        software={},
        configuration={},
    )


def _environment(pages: _Pages) -> jinja2.Environment:
    made = environment()
    made.globals.update(
        {
            "site": pages.assessment,
            "pages": pages,
            "words": words,
            "symbols": words.SYMBOLS,
            "rate": rate,
            "night_name": _night_name,
            "version": __version__,
            "sparkline": figures.sparkline,
            "compared_nights": figures.COMPARED_NIGHTS,
        }
    )
    made.filters["percent"] = percent
    made.filters["script"] = lambda text: Markup(_harmless(text))
    made.filters["slug"] = lambda word: word.replace(" ", "-")
    return made


def _harmless(text: str) -> str:
    """JSON that cannot end the element that it stands in."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _night_name(night: Night) -> str:
    return night.started.strftime("%Y%m%dT%H%M%SZ")


def _write(pages: _Pages, folder: Path) -> None:
    environment = _environment(pages)

    def write(path: str, template: str, **values: Any) -> None:
        values["up"] = "../" * path.count("/")
        text = environment.get_template(template).render(page=path, **values)
        (folder / path).write_text(text, encoding="utf-8", errors="backslashreplace")

    for name in ("assets", "series", "file-systems", "patterns", "nights"):
        (folder / name).mkdir()
    _write_assets(environment, folder / "assets")
    found = (
        figures.recent(one.state, one.line, one.evidence.row.ratios if one.evidence else ()) for one in pages.series
    )
    recent = [one for one in found if one is not None]
    page_of = {shown.state.key: shown.page for shown in pages.series}
    scaling = list(figures.scaling(recent))
    patterns = {
        one.name: list(figures.patterns([r for r in recent if r.state.file_system == one.name]))
        for one in pages.file_systems
    }
    environment.globals["patterns"] = patterns
    banner = words.banner(
        pages.assessment, pages.of_tonight, invalid_cases=len(pages.invalid_cases), causes=pages.causes
    )
    write("index.html", "overview.html.j2", banner=banner, changes=pages.changes())
    write("scaling.html", "figures.html.j2", title="Scaling over nodes and ranks", sections=scaling, page_of=page_of)
    for one in pages.file_systems:
        line = figures.together(one.name, [shown.line for shown in one.series])
        moves = one.state.moves if one.state else ()
        plot = figures.as_json(figures.timeline(line, "of the usual rate", moves))
        write(one.page, "file_system.html.j2", one=one, line=line, plot=plot)
        if patterns[one.name]:
            title = f"Patterns on {one.name}"
            write(one.patterns_page, "figures.html.j2", title=title, sections=patterns[one.name], page_of=page_of)
    lines = []
    for shown in pages.series:
        plot = figures.as_json(figures.timeline(shown.line, shown.state.unit, shown.state.moves, shown.band))
        lines.append(f"{json.dumps(shown.state.key)}:{plot}")
        write(shown.page, "series.html.j2", **_series_page(pages, shown), plot=plot)
    for night in pages.tonight:
        (folder / "nights" / f"{_night_name(night)}.html").write_text(report.render(night), encoding="utf-8")
    (folder / "assessment.json").write_text(pages.assessment.model_dump_json(by_alias=True, indent=1), encoding="utf-8")
    (folder / "timelines.json").write_text("{" + ",\n".join(lines) + "}", encoding="utf-8")
    (folder / MARKER).write_text(f"iogauge {__version__}\n", encoding="utf-8")


def _write_assets(environment: jinja2.Environment, folder: Path) -> None:
    """Style, the plots' specifications and scripts, and Vega, which all pages share."""
    here = Path(report.__file__).parent
    (folder / "site.css").write_text(environment.get_template("site.css").render(), encoding="utf-8")
    shutil.copyfile(here / "site.js", folder / "site.js")
    specifications = {kind: json.loads((here / f"{kind}.vl.json").read_text(encoding="utf-8")) for kind in _KINDS}
    text = json.dumps(specifications, ensure_ascii=False, separators=(",", ":"))
    (folder / "plots.js").write_text(f"window.specifications = {text};\n", encoding="utf-8")
    (folder / "vega.js").write_text(_vega(), encoding="utf-8")


@functools.cache
def _vega() -> str:
    """Vega-Embed with all that it needs, as one script. It takes two seconds to make, so that it is kept in the environment of
    the package that makes it, where that is one of its own and can be written."""
    kept = Path(sys.prefix) / "share" / "iogauge" / f"vega-{version('vl-convert-python')}.js"
    with suppress(OSError, UnicodeDecodeError):
        return kept.read_text(encoding="utf-8")
    import vl_convert  # loads a JavaScript engine

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    with suppress(OSError, InputError):
        if sys.prefix == sys.base_prefix:
            return bundle
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_whole(kept, bundle)
    return bundle


def _series_page(pages: _Pages, shown: Shown) -> dict[str, Any]:
    line, state = shown.line, shown.state
    numbers = range(len(line.dates) - 1, max(-1, len(line.dates) - 1 - _TABLE_NIGHTS), -1)
    return {
        "shown": shown,
        "state": state,
        "file_system": next(one for one in pages.file_systems if one.name == state.file_system),
        "nights": [_night_row(line, number) for number in numbers],
        "events": _events(line),
        "thinned": figures.thinned(line),
        "steps": words.next_steps(shown, pages.assessment.site),
    }


def _night_row(line: Timeline, number: int) -> tuple[str, ...]:
    """Date, best, repeats, reference, to the reference, what else."""
    best, reference = float(line.rates[number]), float(line.reference[number])
    notes = [line.invalid[number]] if number in line.invalid else []
    notes += ["maintenance"] if line.maintenance[number] else []
    notes += line.software.get(number, ())
    notes += [f"configuration {line.configuration[number]}"] if number in line.configuration else []
    told = [rate(value) if np.isfinite(value) else "" for value in (best, reference)]
    return (
        str(line.dates[number]),
        told[0] or "invalid",
        " ".join(map(rate, line.repeats.get(number, ()))),
        told[1],
        words.change(1 - best / reference if all(told) else None),
        "; ".join(notes),
    )


def _events(line: Timeline) -> list[tuple[str, str]]:
    """Changes of software and configuration, newest first."""
    found = [(str(line.dates[n]), text) for n, texts in line.software.items() for text in texts]
    found += [(str(line.dates[n]), f"configuration {text}") for n, text in line.configuration.items()]
    return sorted(found, reverse=True)
