"""People are told once of what changed, by real mail and real webhooks, and nothing secret is shown."""

from __future__ import annotations

import base64
import datetime
import email
import email.policy
import functools
import http.server
import json
import re
import socketserver
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import assessed
import pytest
from assessed import LAST_NIGHT, Event
from click.testing import CliRunner, Result
from kept_nights import change, keep
from samples import case, invalid_case, make_night

from iogauge import cli
from iogauge.assess.record import Assessment
from iogauge.detect import Action
from iogauge.errors import InputError
from iogauge.notify import cli as notify_cli
from iogauge.notify import message, send
from iogauge.notify.changes import Change, Told, compare
from iogauge.tonight import Tonight

KEYS = assessed.keys(["scratch", "disk"], 16)
SCRATCH = [key for key in KEYS if "/scratch/" in key]
DISK = [key for key in KEYS if "/disk/" in key]
STEADY: dict[str, Event] = dict.fromkeys(KEYS, "steady")
ALL_SLOW: dict[str, Event] = STEADY | dict.fromkeys(SCRATCH, "shift")
A_DAY = datetime.timedelta(days=1)


def mute(until: datetime.date, said: datetime.date = LAST_NIGHT - 10 * A_DAY) -> Action:
    return Action("mute", said, "anna", "rebuild", until=until)


@functools.cache
def _assessment(
    events: tuple[tuple[str, Event], ...], slowed: int, last: datetime.date, said: tuple[Any, ...]
) -> Assessment:
    actions = {key: [action] for key, action in said}
    return assessed.site(dict(events), nights=50, slowed_nights=slowed, last=last, actions=actions).assessment


def night(
    events: Mapping[str, Event],
    number: int = 0,
    *cases: Any,
    slowed: int = 4,
    said: Mapping[str, Action] | None = None,
    **changes: Any,
) -> Tonight:
    """The night so many days after the last; ``slowed`` nights up to it were slow; ``changes`` are of its record."""
    last = LAST_NIGHT + number * A_DAY
    made = _assessment(tuple(events.items()), slowed, last, tuple((said or {}).items()))
    ended = datetime.datetime.combine(last, datetime.time(23), datetime.timezone.utc)
    record = make_night(*(cases or [case("write")]), site="test", started=ended, finished=ended, **changes)
    return Tonight("test", made, record)


def tell(*nights: Tonight, missing: Sequence[str] = ()) -> list[list[Change]]:
    """What is told after each of them."""
    told, found = Told(), []
    for number, tonight in enumerate(nights):
        changes, told = compare(told, tonight, missing[number] if number < len(missing) else "")
        told = Told.model_validate_json(told.model_dump_json())  # as it is kept
        found.append(list(changes))
    return found


def words(changes: Sequence[Change]) -> list[tuple[str, str]]:
    return [(one.kind, one.name) for one in changes]


# --- what is new ------------------------------------------------------------------------------------------------------


def test_nothing_is_told_while_all_is_well_or_only_drifts_and_stumbles():
    assert tell(night(STEADY | {DISK[0]: "bad", DISK[1]: "improved", DISK[2]: "new"})) == [[]]


def test_an_alarm_is_told_once_and_so_is_its_end():
    slow = {SCRATCH[0]: "shift"}
    first, second, end, after = tell(
        night(STEADY | slow), night(STEADY | slow, 1, slowed=5), night(STEADY, 10), night(STEADY, 11)
    )
    assert words(first) == [("slower", SCRATCH[0])]
    assert re.match("2.% slower since 2026-11-17, since HDF5 1.14.3 -> 1.14.5", first[0].text)
    assert second == []
    assert words(end) == [("ended", SCRATCH[0])]
    assert end[0].text == "no longer slower: pass"
    assert after == []


def test_the_same_series_that_is_slower_anew_is_told_anew():
    slow = STEADY | {SCRATCH[0]: "shift"}
    assert list(map(words, tell(night(slow), night(slow, 30)))) == [[("slower", SCRATCH[0])]] * 2


def test_a_muted_series_tells_nothing_and_the_end_of_its_mute_tells():
    slow = STEADY | {SCRATCH[0]: "shift"}
    said = {SCRATCH[0]: mute(LAST_NIGHT + 2 * A_DAY)}
    silent, still, told, again = tell(
        night(slow, said=said),
        night(slow, 1, slowed=5, said=said),
        night(slow, 2, slowed=6, said=said),
        night(slow, 3, slowed=7),
    )
    assert silent == still == again == []
    assert words(told) == [("slower", SCRATCH[0])]
    assert re.match("its mute has ended: 2.% slower since 2026-11-17", told[0].text)


def test_a_muted_series_that_is_invalid_tells_nothing_either():
    assert tell(night(STEADY | {DISK[0]: "invalid"}, said={DISK[0]: mute(LAST_NIGHT + 2 * A_DAY)})) == [[]]


def test_an_alarm_that_ends_while_it_is_muted_ends_silently():
    slow = STEADY | {SCRATCH[0]: "shift"}
    said = {SCRATCH[0]: mute(LAST_NIGHT + 30 * A_DAY)}
    assert list(map(len, tell(night(slow), night(slow, 1, slowed=5, said=said), night(STEADY, 10, said=said)))) == [
        1,
        0,
        0,
    ]


def test_an_acknowledged_alarm_is_silent_until_it_ends_and_tells_when_the_word_is_taken_back():
    slow = STEADY | {SCRATCH[0]: "shift"}
    said = {SCRATCH[0]: Action("ack", LAST_NIGHT, "anna", "ticket 4711")}
    known = night(slow, said=said)
    first, silent, ended = tell(night(slow), known, night(STEADY, 10))
    assert (len(first), silent, words(ended)) == (1, [], [("ended", SCRATCH[0])])
    assert list(map(len, tell(night(slow), known, night(slow)))) == [1, 0, 1]


def test_a_whole_file_system_is_one_thing_and_its_series_are_not_told_one_by_one():
    some = STEADY | dict.fromkeys(SCRATCH[:3], "shift")
    first, whole, more, end = tell(
        night(some), night(ALL_SLOW, 1, slowed=5), night(ALL_SLOW, 2, slowed=6), night(STEADY, 12)
    )
    assert sorted(words(first)) == [("slower", key) for key in sorted(SCRATCH[:3])]
    assert words(whole) == [("whole file system", "scratch")]
    assert "slower since 2026-11-17, since HDF5 1.14.3 -> 1.14.5; 8 of its 8 series by themselves, too" in whole[0].text
    assert more == []
    assert [(one.kind, one.name, one.text) for one in end] == [("ended", "scratch", "no longer slower as a whole")]


def test_when_it_is_no_longer_the_whole_file_system_what_is_left_is_said():
    few = STEADY | {SCRATCH[0]: "shift"}
    _, left, end = tell(night(ALL_SLOW), night(few, 1, slowed=5), night(STEADY, 10))
    assert [(one.kind, one.name, one.text) for one in left] == [
        ("ended", "scratch", "no longer slower as a whole; 1 of its series still are")
    ]
    assert words(end) == [("ended", SCRATCH[0])]


def test_a_file_system_whose_series_are_all_muted_tells_nothing():
    said = {key: mute(LAST_NIGHT + 30 * A_DAY) for key in SCRATCH}
    assert tell(night(ALL_SLOW, said=said)) == [[]]
    assert list(
        map(len, tell(night(ALL_SLOW), night(ALL_SLOW, 1, slowed=5, said=said), night(STEADY, 12, said=said)))
    ) == [1, 0, 0]


def test_what_is_newly_invalid_is_told_once_and_that_it_is_measured_again():
    bad = night(STEADY | {DISK[0]: "invalid"}, 0, case("write"), invalid_case("no space left"))
    good = night(STEADY, 1, case("write"), case("write", name="Broken"))
    first, second, end = tell(bad, night(STEADY | {DISK[0]: "invalid"}, 0, case("write"), invalid_case("full")), good)
    assert words(first) == [("invalid", "Broken"), ("invalid", DISK[0])]
    assert second == []
    assert words(end) == [("ended", "Broken"), ("ended", DISK[0])]
    assert [one.text for one in end] == ["measured again", "measured again: pass"]


def test_what_was_not_measured_tonight_has_not_ended():
    slow = STEADY | {SCRATCH[0]: "shift"}
    part = {key: event for key, event in STEADY.items() if key not in SCRATCH}
    assert list(map(len, tell(night(slow, 0, invalid_case("x")), night(part, 1), night(slow, 2, slowed=6)))) == [
        2,
        0,
        0,
    ]
    # Neither does a night that makes it invalid end it.
    first, broken, again = tell(night(slow), night(slow | {SCRATCH[0]: "invalid"}, 1), night(slow, 2, slowed=6))
    assert (words(first), words(broken)) == ([("slower", SCRATCH[0])], [("invalid", SCRATCH[0])])
    assert words(again) == [("ended", SCRATCH[0])]
    assert again[0].text == "measured again: shifted level"


def test_a_ratio_below_its_band_is_told_though_the_rate_is_not_slower():
    first, second, end = tell(
        night(STEADY, 0, case("write", ratio=2.0)),
        night(STEADY, 1, case("write", ratio=2.0)),
        night(STEADY, 2, case("write")),
    )
    assert words(first) == [("regressed", "particles/write/disk/1x2/CC/hdf5")]
    assert second == []
    assert [one.kind for one in end] == ["ended"]


def test_a_night_that_broke_off_is_told_once_though_its_counts_differ():
    broken = {"complete": False, "cause": "stopped by SIGTERM", "selected": 14}
    other = broken | {"cause": "not all tests could be loaded: x.py"}
    found = tell(
        night(STEADY, 0, **broken),
        night(STEADY, 1, case("write"), case("read"), **broken),
        night(STEADY, 2, **other),
        night(STEADY, 3),
    )
    assert list(map(words, found)) == [[("no night", "")], [], [("no night", "")], [("ended", "")]]
    assert found[0][0].text == "incomplete: stopped by SIGTERM; 1 of 14 cases were measured"


def test_a_night_that_is_overdue_is_told_once_for_each_gap():
    same = night(STEADY)
    found = tell(
        same, same, same, night(STEADY, 5), missing=["", "no night since 2026-11-20", "no night since 2026-11-20", ""]
    )
    assert list(map(words, found)) == [[], [("no night", "")], [], [("ended", "")]]
    later = tell(same, night(STEADY, 5), missing=["no night since 2026-11-20", "no night since 2026-11-25"])
    assert list(map(len, later)) == [1, 1]


# --- the message ------------------------------------------------------------------------------------------------------


def test_the_message_has_the_worst_first_and_a_link_and_escapes_what_programs_printed():
    bad = invalid_case("<script>alert(1)</script>\x1b[31m\r\nBcc: all@example.org")
    tonight = night(
        ALL_SLOW | {DISK[0]: "shift"}, 0, case("write"), bad, complete=False, cause="stopped by SIGTERM", selected=9
    )
    changes, after = compare(Told(), tonight)
    made = message.compose(changes, after, tonight, "https://example.org/r?a=1&b=2")
    assert re.match(
        "iogauge test: the whole file system scratch is 2. % slower since 2026-11-17; particles", made.subject
    )
    assert len(made.subject) <= message.SUBJECT_CHARACTERS
    assert made.severity == "failure"
    titles = ["SLOWER: A WHOLE FILE SYSTEM", "SLOWER\n", "INVALID", "NOT MEASURED"]
    places = [made.text.index(title) for title in titles]
    assert places == sorted(places)
    assert "report: https://example.org/r?a=1&b=2" in made.text
    assert 'href="https://example.org/r?a=1&amp;b=2"' in made.html
    assert "<script" not in made.html
    assert "\x1b" not in made.text + made.html + made.subject
    assert "\n" not in made.subject + changes[-1].name


def test_a_message_stays_short_whatever_happens():
    changes = [Change(kind="invalid", name=f"case {n}", text="x" * 5000) for n in range(300)]
    made = message.compose(changes, Told(), night(STEADY))
    assert made.text.count("case ") == message.MOST_OF_A_KIND
    assert "and 290 more" in made.text
    assert "and 290 more" in made.html
    assert len(made.text) < 6000
    assert made.subject == "iogauge test: 300 invalid"


# --- delivery ---------------------------------------------------------------------------------------------------------

PASSWORD = "s3cr3t-word"


class _Smtp(socketserver.StreamRequestHandler):
    """As much of a mail server as delivers a message; it refuses to as long as the server says so."""

    def handle(self) -> None:
        self.say("220 here")
        for line in iter(self.rfile.readline, b""):
            command = line.decode().upper().split()[:2]
            if command[:1] == ["EHLO"]:
                self.say("250-here\r\n250 AUTH PLAIN")
            elif command == ["AUTH", "PLAIN"]:
                said = base64.b64decode(line.split()[2]).decode()
                self.say("235 ok" if said.endswith(f"\0{PASSWORD}") else "535 no")
            elif command[:1] == ["DATA"] and self.server.refuse:
                self.say(f"554 the password {PASSWORD} is refused")
            elif command[:1] == ["DATA"]:
                self.say("354 go on")
                lines = list(iter(self.rfile.readline, b".\r\n"))
                time.sleep(self.server.seconds)
                self.server.got.append(email.message_from_bytes(b"".join(lines), policy=email.policy.default))
                self.say("250 taken")
            elif command[:1] == ["QUIT"]:
                self.say("221 bye")
                return
            else:
                self.say("250 ok")

    def say(self, text: str) -> None:
        self.wfile.write(text.encode() + b"\r\n")


class _Hook(http.server.BaseHTTPRequestHandler):
    """A webhook that keeps what it is sent."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(500 if self.server.refuse else 200)
        self.end_headers()
        if not self.server.refuse:
            self.server.got.append(json.loads(body))

    def log_message(self, *unused: object) -> None:
        """Not on the test's output."""


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, handler: type) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.got: list[Any] = []
        self.refuse = False
        self.seconds = 0.0
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()


@pytest.fixture
def mail() -> Iterator[_Server]:
    with _Server(_Smtp) as server:
        yield server
        server.shutdown()


@pytest.fixture
def hook() -> Iterator[_Server]:
    with _Server(_Hook) as server:
        yield server
        server.shutdown()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("IOGAUGE_HISTORY", send.TARGETS_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("IOGAUGE_HOME", str(tmp_path))
    return tmp_path


def mail_url(server: _Server) -> str:
    return f"mailto://me:{PASSWORD}@127.0.0.1:{server.port}/?mode=insecure&from=iogauge@example.org&to=anna@example.org"


def hook_url(server: _Server) -> str:
    return f"json://127.0.0.1:{server.port}/hooks/{PASSWORD}"


def notify(*arguments: str) -> Result:
    within = () if "--expect-within" in arguments else ("--expect-within", "36500d")
    result = CliRunner().invoke(cli.main, ["notify", "--site", "test", *within, *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert PASSWORD not in result.output + result.stderr
    return result


def targets_file(home: Path, *urls: str, mode: int = 0o600) -> Path:
    path = home / "notify.urls"
    path.write_text("\n".join(["# who is told", "", *urls]), encoding="utf-8")
    path.chmod(mode)
    return path


def test_one_mail_and_one_webhook_with_all_that_is_new_and_then_none(home, mail, hook):
    keep(home, ALL_SLOW | {DISK[0]: "invalid"}, case("write"))
    targets_file(home, mail_url(mail), hook_url(hook))
    result = notify("--link", "https://example.org/report")
    assert result.exit_code == 0, result.output + result.stderr
    (letter,), (posted,) = mail.got, hook.got
    subject = (
        "iogauge test: the whole file system scratch is 2. % slower since 2026-11-17; particles/write/disk/1x1/CC/hdf5…"
    )
    assert re.fullmatch(subject, posted["title"])
    assert letter["Subject"] == posted["title"]
    assert (letter["To"], posted["type"]) == ("anna@example.org", "failure")
    plain, html = letter.get_body(("plain",)).get_content(), letter.get_body(("html",)).get_content()
    for text in (plain, html, posted["message"]):
        assert "scratch" in text
        assert "2 ranks share core 0 of n1" in text
    assert "https://example.org/report" in html
    assert "https://example.org/report" in posted["message"]
    assert "<" not in plain + posted["message"]
    again = notify()
    assert again.output.count("nothing new") == 2
    assert (len(mail.got), len(hook.got)) == (1, 1)
    keep(home, STEADY, case("write"), last=LAST_NIGHT + 12 * A_DAY)
    assert notify().exit_code == 0
    assert mail.got[1]["Subject"].startswith("iogauge test: 2 alarms over")
    assert hook.got[1]["type"] == "success"


def test_what_could_not_be_delivered_is_said_and_tried_again_and_others_are_told_all_the_same(home, mail, hook):
    keep(home, STEADY | {SCRATCH[0]: "shift"}, case("write"))
    targets_file(home, mail_url(mail), hook_url(hook))
    mail.refuse = True
    result = notify()
    assert result.exit_code == 2
    assert f"{home / 'notify.urls'}:3): not delivered: " in result.stderr
    assert "tried again next time" in result.stderr
    assert (mail.got, len(hook.got)) == ([], 1)
    mail.refuse = False
    assert notify().exit_code == 0
    assert (len(mail.got), len(hook.got)) == (1, 1)
    hook.refuse = True
    keep(home, STEADY, case("write"), last=LAST_NIGHT + 12 * A_DAY)
    failed = notify()
    assert (failed.exit_code, "error=500" in failed.stderr) == (2, True)
    assert len(mail.got) == 2


def test_a_server_that_is_not_there_is_said_without_the_password(home, mail):
    keep(home, STEADY | {SCRATCH[0]: "shift"}, case("write"))
    url = mail_url(mail)
    mail.shutdown()
    mail.server_close()
    result = notify("--to", url)
    assert result.exit_code == 2
    assert "E-Mail (--to 1): not delivered: " in result.stderr
    assert "Connection refused" in result.stderr


def test_two_at_once_tell_once(home, mail, capsys):
    keep(home, STEADY | {SCRATCH[0]: "shift"}, case("write"))
    mail.seconds = 0.3
    found = send.targets([mail_url(mail)], None)
    with ThreadPoolExecutor(2) as both:
        codes = [both.submit(notify_cli.tell, "test", found, 36500 * A_DAY) for _ in range(2)]
    assert [code.result() for code in codes] == [0, 0]
    assert capsys.readouterr().out.count("nothing new") == 1
    assert len(mail.got) == 1


def test_a_night_that_is_overdue_is_told_with_the_date_of_the_last(home, hook):
    keep(home, STEADY, case("write"), last=datetime.date(2020, 1, 2))
    targets_file(home, hook_url(hook))
    assert notify("--expect-within", "30h").exit_code == 0
    assert hook.got[0]["title"] == "iogauge test: no night since 2020-01-02"
    assert hook.got[0]["type"] == "warning"
    assert "nothing new" in notify("--expect-within", "30h").output
    for wrong in ("30", "0h", "x", "-1h", "1w"):
        assert notify("--expect-within", wrong).exit_code == 2


def test_a_dry_run_prints_and_leaves_everything_as_it_was(home, hook):
    keep(home, STEADY | {SCRATCH[0]: "shift"}, case("write"))
    assert "a new target would get:\nSubject: iogauge test: " in notify("--dry-run").output
    targets_file(home, hook_url(hook))
    before = sorted(home.rglob("*"))
    result = notify("--dry-run")
    assert re.search(f"Subject: iogauge test: {SCRATCH[0]} 2.% slower since 2026-11-17", result.output)
    assert (hook.got, sorted(home.rglob("*"))) == ([], before)
    assert notify().exit_code == 0
    assert "nothing new" in notify("--dry-run").output


def test_a_test_message_is_sent_and_changes_nothing(home, hook):
    result = notify("--test", "--to", hook_url(hook))
    assert (result.exit_code, hook.got[0]["title"]) == (0, "iogauge test: a test")
    assert not (home / "told").exists()


def test_what_was_told_is_kept_for_its_owner_alone_and_without_the_urls(home, hook):
    keep(home, STEADY | {SCRATCH[0]: "shift"}, case("write"))
    notify("--to", hook_url(hook))
    path = home / "told" / "test.json"
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text(encoding="utf-8")
    assert SCRATCH[0] in text
    assert not any(piece in text for piece in (PASSWORD, "127.0.0.1", "json:"))
    assert [one.name for one in path.parent.iterdir() if one.suffix != ".lock"] == ["test.json"]


@pytest.mark.parametrize("spoil", ["", "{}x", '{"schema": "iogauge.told/2"}', None])
def test_nothing_is_sent_when_what_was_told_cannot_be_read_or_kept(home, hook, spoil):
    keep(home, STEADY | {SCRATCH[0]: "shift"}, case("write"))
    path = home / "told" / "test.json"
    path.parent.mkdir()
    if spoil is None:
        path.mkdir()
    else:
        path.write_text(spoil)
    result = notify("--to", hook_url(hook))
    assert (result.exit_code, hook.got) == (2, [])
    assert "told/test.json" in result.stderr


def test_targets_that_cannot_be_meant_are_named_by_their_line_alone(home, monkeypatch):
    keep(home, STEADY, case("write"))
    assert "no target; write Apprise URLs into it" in notify().stderr
    path = targets_file(home, f"nonsense://me:{PASSWORD}@there")
    assert f"{path}:3: no URL that Apprise knows" in notify().stderr
    targets_file(home, "json://there", mode=0o640)
    assert "can be read by others (mode 640); chmod 600" in notify().stderr
    assert "no target in it" in notify("--targets", str(targets_file(home))).stderr
    path.write_bytes(b"\xff\xfe")
    assert "no text in UTF-8" in notify().stderr
    monkeypatch.setenv(send.TARGETS_VARIABLE, f"json://there mailto://{PASSWORD}")
    assert "IOGAUGE_NOTIFY 2: no URL" in notify().stderr
    assert notify("--to", "json://there", "--link", "javascript:alert(1)").exit_code == 2
    assert notify("--to", "json://there", "--targets", str(home / "none")).exit_code == 2


def test_the_same_target_named_twice_is_told_once(home, hook):
    keep(home, STEADY | {SCRATCH[0]: "shift"}, case("write"))
    notify("--to", hook_url(hook), "--to", hook_url(hook))
    assert len(hook.got) == 1


def test_without_any_night_it_says_so(home, hook):
    result = notify("--to", hook_url(hook))
    assert (result.exit_code, hook.got) == (2, [])


def test_an_incomplete_night_is_told(home, hook):
    change(keep(home, STEADY, case("write")), complete=False, cause="stopped by SIGTERM", selected=14)
    notify("--to", hook_url(hook))
    assert hook.got[0]["title"] == "iogauge test: incomplete: stopped by SIGTERM"


def test_a_secret_in_a_token_url_is_cut_out_of_what_is_said():
    said = send._without_secrets(
        "POST https://hooks.example.org/T0ken/B1tter failed for T0ken", "slack://T0ken/B1tter/x"
    )
    assert said == "POST https://hooks.example.org/***/*** failed for ***"
    with pytest.raises(InputError):
        _ = send.Target("--to 1", "nonsense://x").service
    assert "T0ken" not in repr(send.Target("--to 1", "slack://T0ken/B1tter/x"))
