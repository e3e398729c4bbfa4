"""The job scripts of every site are those that are kept in tests/golden; Slurm, PBS and modules are stood in for."""

from __future__ import annotations

import golden
import pytest


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> dict[str, dict[str, str]]:
    """Site to job scripts as they are written now."""
    return golden.scripts_of_all(golden.site_names(), tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("site", golden.site_names())
def test_the_job_scripts_of_a_site_are_as_they_are_kept(written, site):
    difference = golden.differences(site, written[site])
    assert not difference, f"to keep them: python -m tests.golden --accept {site}\n{difference}"
