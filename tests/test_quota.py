"""What quota tools print is understood to the byte; what is not understood is said, and never taken for a limit.

The outputs are those that the tools print, none of which is installed here: the sources are named beside each.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from iogauge.commands import Unreadable
from iogauge.quota import Quota, ask, in_units, parse, refusal, summary

KIB, MIB, GIB, TIB = 1024, 1024**2, 1024**3, 1024**4

# lfs quota, kibibytes; a name longer than 15 characters has a line of its own (Lustre, lustre/utils/lfs.c, print_quota).
LFS_USER = """\
Disk quotas for usr alice (uid 1001):
     Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace
        /hpcwork 23592960  209715200 244140625       -   12345       0 1000000       -
"""
LFS_LONG_NAME_OVER_SOFT = """\
Disk quotas for usr bob (uid 1002):
     Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace
/lustre/scratch/project
                5242880* 4194304 6291456 6d23h59m59s  120000       0 1000000       -
"""
LFS_ALL_KINDS = """\
Disk quotas for usr alice (uid 1001):
     Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace
        /scratch 1048576       0       0       -     100       0       0       -
uid 1001 is using default block quota setting
uid 1001 is using default file quota setting
Disk quotas for grp hpc (gid 500):
     Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace
        /scratch 2097152       0 4194304       -     200       0       0       -
Disk quotas for prj 77 (pid 77):
     Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace
        /scratch 1048576       0 3145728       -     200       0       0       -
"""
# Human-readable (-h); seen at a site, home on Lustre (its column reads "used").
LFS_HUMAN = """\
Disk quotas for usr carol (uid 1471600598):
     Filesystem    used   quota   limit   grace   files   quota   limit   grace
     /home/group  99.99G      0k    100G       -  921718       0 1048576       -
uid 1471600598 is using default block quota setting
"""

# quota of Linux quota-tools, 1 KiB blocks; the grace column is empty while nothing is exceeded (quota.c, heading).
LINUX = """\
Disk quotas for user dave (uid 1234):
     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace
/dev/mapper/backup3-backup3
                6094452  2147483648 2147483648          365672       0       0
"""
LINUX_GRACE_OVER = """\
Disk quotas for user dave (uid 1234):
     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace
      /dev/sda1 1048580* 1048576 2097152    none      10       0       0
"""
LINUX_NONE = "Disk quotas for user root (uid 0): none\n"

# beegfs-ctl --getquota: a table with units, or --csv in bytes (BeeGFS 7, ctl/source/modes/ModeGetQuotaInfo.cpp).
BEEGFS_CSV = """\

Quota information for storage pool Default (ID: 1):

name,id,size,hard,files,hard
alice,1000,21474836480,107374182400,4530,2000000
"""
BEEGFS_TABLE = """\
      user/group     ||           size          ||    chunk files
     name     |  id  ||    used    |    hard    ||  used   |  hard
--------------|------||------------|------------||---------|---------
         alice| 99002||   88.50 GiB| 1000.00 GiB||   645266|unlimited
"""
BEEGFS_POOLS = """\

Quota information for storage pool scratch (ID: 1):

      user/group     ||           size          ||    chunk files
     name     |  id  ||    used    |    hard    ||  used   |  hard
--------------|------||------------|------------||---------|---------
         alice|588559||   20.63 GiB|    5.00 TiB||   278772|  1000000

Quota information for storage pool home (ID: 2):

      user/group     ||           size          ||    chunk files
     name     |  id  ||    used    |    hard    ||  used   |  hard
--------------|------||------------|------------||---------|---------
         alice|588559||    3.44 GiB|    8.00 GiB||    48433|  1000000
"""
BEEGFS_UNLIMITED = """\
      user/group     ||           size          ||    chunk files
     name     |  id  ||    used    |    hard    ||  used   |  hard
--------------|------||------------|------------||---------|---------
        k8s-sc|  1000||      0 Byte|   unlimited||        0|unlimited
"""
# beegfs quota list-usage --uids current, without and with --raw (BeeGFS 8, beegfs-go, ctl/internal/cmd/quota/quota.go).
BEEGFS_8 = """\
NAME   ID    TYPE  POOL     SPACE               INODE
alice  1000  user  default  10.00GiB/100.00GiB  4.53k/∞
INFO: Quota usage information is fetched every 30s from the server nodes, thus the displayed values might be slightly out
"""
BEEGFS_8_RAW = """\
NAME   ID    TYPE  POOL     SPACE                     INODE
alice  1000  user  default  10737418240/107374182400  4530/9223372036854775807
"""

# mmlsquota, KiB, and -Y with its fields named in a header (IBM Storage Scale, mmlsquota command).
GPFS = """\
                         Block Limits                                    |     File Limits
Filesystem type             KB      quota      limit   in_doubt    grace |    files   quota    limit in_doubt    grace  Remarks
gpfs       USR        28292096 3221225472 4294967296      10240     none |   136704 2000000  3000000        0     none
"""
GPFS_EXPIRED_GROUP = """\

Disk quotas for group mihg (gid 1041):
                         Block Limits                                    |     File Limits
Filesystem type             KB      quota      limit   in_doubt    grace |    files   quota    limit in_doubt    grace  Remarks
homelv     GRP      1081268576 1073741824 1180696576          0  expired |      945       0        0        0     none
"""
GPFS_NO_LIMITS = """\
                         Block Limits                                    |     File Limits
Filesystem type             KB      quota      limit   in_doubt    grace |    files   quota    limit in_doubt    grace  Remarks
gpfs       FILESET     no limits
"""
GPFS_Y = """\
mmlsquota::HEADER:version:reserved:reserved:filesystemName:quotaType:id:name:blockUsage:blockQuota:blockLimit:blockInDoubt:blockGrace:filesUsage:filesQuota:filesLimit:filesInDoubt:filesGrace:remarks:quota:defQuota:fid:filesetname:
mmlsquota::0:1:::gpfs01:USR:1234:me:2097152:10485760:12582912:1024:none:4000:0:500000:0:none:e:on:off:::
mmlsquota::0:1:::gpfs01:GRP:500:lab:9999999:0:0:0:none:1:0:0:0:none:e:on:off:::
"""


@pytest.mark.parametrize(
    ("printed", "quotas"),
    [
        (LFS_USER, [Quota("user alice", (244140625 - 23592960) * KIB, 244140625 * KIB)]),
        (LFS_LONG_NAME_OVER_SOFT, [Quota("user bob", MIB * KIB, 6291456 * KIB)]),
        (
            LFS_ALL_KINDS,
            [Quota("user alice", None), Quota("group hpc", 2 * GIB, 4 * GIB), Quota("project 77", 2 * GIB, 3 * GIB)],
        ),
        (LFS_HUMAN, [Quota("user carol", 100 * GIB - round(99.99 * GIB), 100 * GIB)]),
        (LINUX, [Quota("user dave", (2147483648 - 6094452) * KIB, 2 * TIB)]),
        (LINUX_GRACE_OVER, [Quota("user dave", 0, GIB)]),
        (LINUX_NONE, [Quota("user root", None)]),
        (BEEGFS_CSV, [Quota("alice", 80 * GIB, 100 * GIB)]),
        (BEEGFS_TABLE, [Quota("alice", round(911.5 * GIB), 1000 * GIB)]),
        (BEEGFS_UNLIMITED, [Quota("k8s-sc", None)]),
        (BEEGFS_8, [Quota("user alice", 90 * GIB, 100 * GIB)]),
        (BEEGFS_8_RAW, [Quota("user alice", 90 * GIB, 100 * GIB)]),
        (GPFS, [Quota("user", (4294967296 - 28292096 - 10240) * KIB, 4 * TIB)]),
        (GPFS_EXPIRED_GROUP, [Quota("group mihg", 0, TIB)]),
        (GPFS_NO_LIMITS, [Quota("fileset", None)]),
        (GPFS_Y, [Quota("user me", (12582912 - 2097152 - 1024) * KIB, 12 * GIB), Quota("group lab", None)]),
        ("1048576\n", [Quota("", MIB)]),
        ("0\n", [Quota("", 0)]),
        ("unlimited\n", [Quota("", None)]),
        ("none", [Quota("", None)]),
    ],
)
def test_what_is_left_of_each_quota_is_read_to_the_byte(printed, quotas):
    assert list(parse(printed)) == quotas


def test_a_soft_limit_alone_holds():
    assert parse(LFS_USER.replace("244140625", "0"))[0].limit == 209715200 * KIB


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        ("", "nothing"),
        ("12.5\n", "one number is expected"),
        ("-3\n", "one number is expected"),
        ("Unexpected quotactl error: Input/output error\n", "neither what a known quota tool prints"),
        (BEEGFS_POOLS, "several quotas"),
        (BEEGFS_CSV + "bob,1001,1,2,3,4\n", "several quotas"),
        (BEEGFS_8.replace("10.00GiB/100.00GiB", "?/?"), "does not tell the quota of user alice"),
        (LINUX + "      /dev/sdb1  100 0 200 10 0 0\n", "several quotas"),
        (LFS_USER.replace("23592960 ", "[23592960]") + 'Some errors happened when getting quota info. The data in "[]" is '
         "inaccurate.\n", "inaccurate"),
        (LFS_USER.replace("23592960", "many"), "'many' is no size"),
        (GPFS.replace(" KB ", " GB "), "a unit that is not known"),
        ("\nQuota information\nname,id,size,hard,files,hard\n", "a heading and no quota"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_never_taken_for_a_limit(printed, reason):
    with pytest.raises(Unreadable, match=reason):
        parse(printed)


def test_the_smallest_of_several_quotas_is_named_with_its_sums():
    text = refusal(3 * GIB, parse(LFS_ALL_KINDS), "scratch")
    assert text == "2.0 GiB are left of the 4.0 GiB quota of scratch for group hpc"
    assert refusal(2 * GIB, parse(LFS_ALL_KINDS), "scratch") == ""
    assert refusal(2, parse("1"), "scratch") == "1 bytes are left of the quota of scratch"
    assert summary(parse(LFS_ALL_KINDS)).startswith("user alice: no limit, group hpc: 2.0 GiB left of 4.0 GiB")


def test_bytes_are_told_in_units_of_1024():
    assert [in_units(n) for n in (0, 1023, 1024, 480 * GIB, 1536 * GIB)] == [
        "0 bytes", "1023 bytes", "1.0 KiB", "480.0 GiB", "1.5 TiB",
    ]  # fmt: skip


def test_quota_ends_with_1_where_a_limit_is_exceeded_and_is_believed():
    assert ask(f"printf '%s' '{LINUX_GRACE_OVER}'; exit 1")[0].left == 0


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("no-such-quota-tool", "exit code 127: .*no-such-quota-tool: command not found"),
        ("echo 'Permission denied.' >&2; exit 1", "exit code 1: Permission denied."),
    ],
)
def test_a_command_that_fails_is_said_with_its_own_words(command, reason):
    with pytest.raises(Unreadable, match=reason):
        ask(command)


def test_a_tool_that_hangs_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("iogauge.commands.ANSWER_SECONDS", 0.2)
    with pytest.raises(Unreadable, match=r"no answer in 0\.2 s"):
        ask("sleep 60")


@pytest.mark.parametrize(
    ("printed", "needed", "code", "text"),
    [
        ("1000", 1000, 0, "1000 bytes left"),
        ("unlimited", 1000, 0, "no limit"),
        ("999", 1000, 10, "999 bytes are left of the quota of disk"),
        (BEEGFS_CSV, 90 * GIB, 10, "80.0 GiB are left of the 100.0 GiB quota of disk for alice"),
        (BEEGFS_CSV, 101 * GIB, 11, "80.0 GiB are left"),
        ("what?", 1, 12, "not known: "),
    ],
)
def test_a_job_is_told_whether_its_bytes_fit_now_or_ever(printed, needed, code, text):
    command = [sys.executable, "-I", "-m", "iogauge.quota", "disk", str(needed), f"printf '%s' '{printed}'"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, text in done.stdout) == (code, True), done
