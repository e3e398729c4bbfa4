"""The command ``iogauge arms``: which arms are here, and whether they can be compared."""

from __future__ import annotations

import itertools
import json

import click
from rich.table import Table

from iogauge import arms
from iogauge.arms import Proof
from iogauge.command import answers, new_console
from iogauge.errors import InputError, Refusal


@click.command("arms")
@click.argument("names", nargs=-1, metavar="[ARM]...")
@click.option("--site", default="local", show_default=True, help="Whose environments and Spack stacks are meant.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
@answers
def arms_command(names: tuple[str, ...], site: str, as_json: bool) -> None:
    """List the arms of this machine; of each ARM that is named, build the kernels, run one, and say what it really is.

    ARM is one of scripts/hdf5-arms, an environment of the site, STACK/ARM of Spack, or the prefix of an HDF5. Two or more must
    differ in HDF5 or MPI, and in nothing else.

    \b
    Examples:
      iogauge arms
      iogauge arms hdf5-1.10.8-openmpi hdf5-1.14.5-openmpi

    Exit codes: 0 each is what it says, and they can be compared; 2 not so, or wrong input.
    """
    if not names:
        there = list(arms.known(site))
        click.echo(json.dumps(there) if as_json else "\n".join(there))
        return
    try:
        meant = [arms.resolve(name, site) for name in names]
        for arm in meant:
            arms.check_modules(arm)
        proofs = [arms.prove(arm) for arm in meant]
        for one, other in itertools.combinations(proofs, 2):
            arms.check_comparable(one, other)
    except Refusal as refusal:
        raise InputError(str(refusal)) from None
    if as_json:
        click.echo(json.dumps([proof.model_dump(mode="json") for proof in proofs], indent=1))
    else:
        new_console().print(_table(proofs))


def _table(proofs: list[Proof]) -> Table:
    table = Table("arm", "HDF5", "MPI", "library", "launcher", "kernels", "compiler", box=None)
    for proof in proofs:
        flags = () if proof.kernels.flags is None else proof.kernels.flags
        compiler = " ".join((proof.compiler, *flags))
        table.add_row(
            proof.arm.name, proof.hdf5, proof.mpi, str(proof.library), proof.arm.launcher, proof.sources, compiler
        )
    return table
