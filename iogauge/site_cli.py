"""The commands about a site's configuration: ``iogauge site ...`` and ``iogauge check-config``."""

from __future__ import annotations

import json
from collections.abc import Iterable

import click
from rich.console import Console

from iogauge import nightly, site_check, site_init, terminal
from iogauge.command import answers, new_console, progress_bar


@click.group("site")
def site_group() -> None:
    """What concerns a site.

    Example: iogauge site check
    """


@site_group.command("check")
@click.argument("site", default="local")
@click.option("--submit", is_flag=True, help="also run a case of two ranks on each file system of each partition")
@click.option("--json", "as_json", is_flag=True, help="print the findings as JSON")
@answers
def site_check_command(site: str, submit: bool, as_json: bool) -> int:
    """Say for each partition and file system of SITE what is there: the first thing to run at a new site.

    \b
    Examples:
      iogauge site check
      iogauge site check claix --submit

    Exit codes: 0 nothing is wrong; 1 there is a problem; 2 the configuration is wrong.
    """
    with progress_bar(Console(stderr=True), f"{site}, {site_check.SUITE}", verbose=False) as progress:
        findings = site_check.check(site, submit=submit, progress=progress)
    if as_json:
        click.echo(json.dumps([finding.model_dump() for finding in findings], indent=1))
    else:
        terminal.print_findings(new_console(), site, findings, submitted=submit)
    return site_check.exit_code(findings)


@site_group.command("init")
@click.argument("name")
@answers
def site_init_command(name: str) -> None:
    """Draft the Spack scope of a new site NAME from what Spack finds here, mend its known errors, and say what to look at.

    Writes spack_env/sites/NAME and spack_env/envs/NAME, and site_configs/NAME.py if there is none; overwrites nothing. Load
    the modules of the compiler and the MPI library first. Spack is that of SPACK_ROOT, else a clone of the pinned one.

    \b
    Examples:
      iogauge site init mysite
      SPACK_ROOT=/opt/spack iogauge site init mysite

    Exit codes: 0 it was written; 2 bad name, the site is there already, or there is no Spack.
    """
    root = nightly.checkout()
    made, written = site_init.site_init(root, nightly.home().resolve() / "spack", name)
    terminal.print_draft(new_console(), made, [path.relative_to(root) for path in written], name)


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


@click.command("check-config")
@click.option("--site", default="local", show_default=True)
@answers
def check_config_command(site: str) -> None:
    """Check a site's configuration and all bands, and say what was found. Nothing is run.

    Example: iogauge check-config --site local
    """
    for partition, model in nightly.check_configuration(site).items():
        systems = ", ".join(f"{name} ({fs.type})" for name, fs in model.file_systems.items())
        click.echo(
            f"{partition}: {systems}; nodes {_listed(model.nodes)}; ranks per node {_listed(model.ranks_per_node)}"
        )
