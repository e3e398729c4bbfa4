"""All that Darshan says of a case, to stand beside its verdict."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from iogauge.darshan.overhead import Overhead, overheads
from iogauge.darshan.rules import Finding, diagnose
from iogauge.darshan.summary import Summary
from iogauge.darshan.witness import Witness, claim_of, witness
from iogauge.measurement import Measurement


class Profile(BaseModel):
    """Summary, diagnosis and second witness. ``overhead``: what Darshan itself cost, by operation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    log: str
    summary: Summary
    findings: tuple[Finding, ...]
    witness: Witness
    overhead: tuple[Overhead, ...] = ()

    @property
    def flags(self) -> tuple[str, ...]:
        """Why the numbers are not to be taken as they are: two witnesses disagree."""
        flags = [self.witness.text] if self.witness.agrees is False else []
        return (*flags, *(finding.text for finding in self.findings if finding.rule == "bytes-disagree"))

    @property
    def sentences(self) -> tuple[str, ...]:
        """What to read: first where the witnesses disagree, then the diagnosis."""
        flags = self.flags
        return (*flags, *(f.text for f in self.findings if f.text not in flags))


def profile(
    log: str,
    summary: Summary,
    measurements: Sequence[Measurement],
    without: Sequence[Measurement] = (),
    *,
    exact: bool = True,
) -> Profile:
    """Of the log of the run whose records these are; ``log`` is its name among the case's files. ``without``: the records of
    the same run without Darshan. ``exact``: the log has nothing of the data files that no record counts.
    """
    claim = claim_of(measurements, exact=exact)
    return Profile(
        log=log,
        summary=summary,
        findings=diagnose(summary, claim),
        witness=witness(summary, measurements, claim),
        overhead=overheads(measurements, without),
    )
