"""``python -m tests.golden [--accept] [SITE...]``: show how job scripts differ from those that are kept, or keep them."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from . import accept, differences, scripts_of_all, site_names


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description="The job scripts of all sites.")
    parser.add_argument("sites", nargs="*", metavar="SITE", help=f"of {', '.join(site_names())}; all by default")
    parser.add_argument("--accept", action="store_true", help="keep what is written now")
    arguments = parser.parse_args()
    sites = arguments.sites or site_names()
    if unknown := [site for site in sites if site not in site_names()]:
        parser.error(f"no site {unknown[0]!r}; there are: {', '.join(site_names())}")
    different = False
    with tempfile.TemporaryDirectory() as work:
        for site, found in scripts_of_all(sites, Path(work)).items():
            difference = differences(site, found)
            sys.stdout.write(difference)
            different |= bool(difference)
            if arguments.accept:
                accept(site, found)
    return int(different and not arguments.accept)


if __name__ == "__main__":
    sys.exit(main())
