"""One canary for every place that a secret can lie in: the gate uses those it may, and leaves none anywhere.

A token that is really used and a proxy that is really asked, so that the secrets do pass through the tool; then
every file, every line of output and every argument of every process is searched.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from scenarios.forge import Forge  # noqa: E402
from scenarios.httpd import Request, Server  # noqa: E402
from scenarios.reply import json_reply  # noqa: E402

SOURCES = ("GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GH_TOKEN", "netrc", "helper", "gitconfig", "url", "proxy")
CANARY = {name: f"canary-{name.lower()}-51f6e0b4" for name in SOURCES}


@dataclass
class Place:
    """Folders of one run, the forge, and a proxy in front of it that asks for a password."""

    root: Path
    token_needed: bool = True
    asked: list[str] = field(default_factory=list)
    proxied: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("work", "home", "tmp", "bin"):
            (self.root / name).mkdir()
        self.forge = Forge(self.root / "work")
        self.server = Server(self.answer)
        self.proxy = Server(self.forward)

    def answer(self, request: Request) -> Any:
        """The interface, for those who have the token; git for all."""
        self.asked.append(f"{request.target} {dict(request.headers)} {request.body[:4000]!r}")
        allowed = request.headers.get("authorization") == f"Bearer {CANARY['GITHUB_TOKEN']}"
        if request.path.startswith("/repos/") and self.token_needed and not allowed:
            return json_reply(401, {"message": "Requires authentication"})
        return self.forge.answer(request)

    def forward(self, request: Request) -> Any:
        """What a proxy does: it is given the whole address, and its own password in a header of its own."""
        self.proxied.append(str(request.headers.get("proxy-authorization")))
        target = request.target.removeprefix(self.server.url)
        kept = {name: value for name, value in request.headers.items() if name != "proxy-authorization"}
        return self.answer(replace(request, target=target, headers=kept))

    def prepare(self) -> None:
        """Scenario S06, and a secret in every file that a tool could read."""
        env = {**os.environ, "FORGE": self.server.url, "GIT": self.server.url}
        subprocess.run(
            [str(ROOT / "tests/scenarios/gate/S06/make")], cwd=self.root / "work", env=env, check=True
        )
        home, host = self.root / "home", self.server.address
        (home / ".netrc").write_text(f"machine 127.0.0.1 login x password {CANARY['netrc']}\n")
        helper = self.root / "bin" / "git-credential-canary"
        helper.write_text(f"#!/bin/sh\necho username=x\necho password={CANARY['helper']}\n")
        (home / ".gitconfig").write_text(
            f"[credential]\n\thelper = {helper}\n[http]\n\textraHeader = X-Key: {CANARY['gitconfig']}\n"
            f'[url "http://x:{CANARY["url"]}@{host}/"]\n\tinsteadOf = http://{host}/\n'
        )
        self._wrap_git()
        helper.chmod(0o755)

    def _wrap_git(self) -> None:
        real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
        wrapper = self.root / "bin" / "git"
        wrapper.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> "{self.root}/argv"\nexec "{real}" "$@"\n')
        wrapper.chmod(0o755)

    def run(self, *argv: str, **more: str) -> tuple[subprocess.CompletedProcess[str], set[bytes]]:
        """Run the gate; also every command line that its session showed meanwhile."""
        env = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        env |= {
            "PATH": f"{self.root}/bin:{os.environ['PATH']}", "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"), "TIC_TIME_SCALE": "0", "GITHUB_API_URL": self.server.url,
            "GH_HOST": "ghe.invalid", **{name: CANARY[name] for name in SOURCES[:3]}, **more,
        }  # fmt: skip
        command = [sys.executable, "-m", "tic_manifest", "-v", "gate", "recipe.yaml", *argv]
        tool = subprocess.Popen(
            command, cwd=self.root / "work", env=env, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        seen: set[bytes] = set()
        ended = Event()
        watch = Thread(target=_watched, args=(tool.pid, seen, ended))
        watch.start()
        out, err = tool.communicate()
        ended.set()
        watch.join()
        return subprocess.CompletedProcess(command, tool.returncode, out, err), seen

    def with_a_secret(self) -> list[str]:
        """Files with a canary in them, but those that were put there."""
        put = {self.root / "home" / ".netrc", self.root / "home" / ".gitconfig"}
        put.add(self.root / "bin" / "git-credential-canary")
        files = [one for one in self.root.rglob("*") if one.is_file() and one not in put]
        return [str(one) for one in files if b"canary-" in one.read_bytes()]


def _watched(session: int, seen: set[bytes], ended: Event) -> None:
    while not ended.is_set():
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if int((folder / "stat").read_text().rpartition(")")[2].split()[3]) == session:
                    seen.add((folder / "cmdline").read_bytes())
            except (OSError, IndexError):
                continue
        time.sleep(0.01)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    one = Place(tmp_path)
    one.prepare()
    yield one
    one.server.close()
    one.proxy.close()


OUTPUTS = [
    part
    for form in ("markdown", "html", "junit", "sarif", "text")
    for part in ("--output", f"{form}=out.{form}")
]


def test_secrets_that_are_used_stay_nowhere(place: Place) -> None:
    proxy = place.proxy.url.replace("http://", f"http://user:{CANARY['proxy']}@")
    done, argv = place.run(
        "--record", "proof", "--output", "json", *OUTPUTS, http_proxy=proxy, https_proxy=proxy, no_proxy=""
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "STACKED_SHA" in done.stdout
    wanted = "Basic " + b64encode(f"user:{CANARY['proxy']}".encode()).decode()
    assert wanted in place.proxied  # the proxy's password was used
    assert any(f"Bearer {CANARY['GITHUB_TOKEN']}" in line for line in place.asked)  # and so was the token
    assert "canary-" not in done.stdout + done.stderr
    assert place.with_a_secret() == []
    log = (place.root / "argv").read_text()
    assert "fetch" in log and "merge-tree" in log  # the processes were seen
    assert "canary-" not in log
    assert len(argv) > 1
    assert not [one for one in argv if b"canary-" in one]


def test_a_secret_goes_to_no_one_else(place: Place) -> None:
    done, _ = place.run("--output", "json")
    assert done.returncode == 1, done.stderr
    api = [line for line in place.asked if line.startswith("/repos/")]
    rest = [line for line in place.asked if not line.startswith("/repos/")]
    assert api and rest
    others = [CANARY[name] for name in SOURCES if name != "GITHUB_TOKEN"]
    assert not [line for line in place.asked for canary in others if canary in line]


@pytest.mark.parametrize("proxy", ["http://user:{}@proxy.invalid:3128", "http://user:{}@127.0.0.1:9"])
def test_an_error_does_not_show_the_proxys_password(place: Place, proxy: str) -> None:
    url = proxy.format(CANARY["proxy"])
    done, argv = place.run(
        "--record", "proof", "--output", "json", http_proxy=url, https_proxy=url, no_proxy=""
    )
    assert done.returncode == 3, done.stderr
    assert "canary-" not in done.stdout + done.stderr
    assert place.with_a_secret() == []
    assert not [one for one in argv if b"canary-" in one]


def test_a_token_that_is_refused_is_not_shown(place: Place) -> None:
    done, _ = place.run("--record", "proof", "--output", "json", GITHUB_TOKEN=CANARY["GH_TOKEN"])
    assert done.returncode == 3, done.stderr
    assert "NO_ACCESS" in done.stdout
    assert "canary-" not in done.stdout + done.stderr
    assert place.with_a_secret() == []
