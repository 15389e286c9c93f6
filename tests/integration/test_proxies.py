"""Proxy, NO_PROXY and CA variables reach the HTTP clients; .netrc does not (contract, section 3)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tic_manifest.adapters.forge_http import HttpExchange
from tic_manifest.errors import UnavailableError

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "kit"), str(ROOT / "scripts")]
from layouts import Layout  # noqa: E402
from push import push  # noqa: E402
from scenarios.httpd import Request, Server  # noqa: E402
from scenarios.registry import Registry  # noqa: E402
from scenarios.reply import Reply  # noqa: E402
from tunnel import Tunnel  # noqa: E402

HOST = "registry.invalid"


class World:
    """A registry that is reached through the proxy alone, under a name that no resolver knows."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.secrets = folder, []  # type: ignore[var-annotated]
        layout = Layout(folder / "layout")
        self.digest = layout.save(layout.image())
        self.registry = Registry(folder / "registry", folder)
        self.server = Server(self.answer)
        push(layout.root, f"{self.server.url}/v2/team/app")
        self.secrets.clear()
        self.proxy = Tunnel(HOST, int(self.server.url.rpartition(":")[2]), folder)

    def answer(self, request: Request) -> Any:
        self.secrets.append(request.headers.get("authorization", ""))
        if request.path == "/api":
            return Reply(200, b"{}")
        return self.registry.answer(request)

    def verify(self, place: str, **environ: str) -> tuple[int, set[str]]:
        plain = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
            plain.pop(name, None)
        argv = [sys.executable, "-m", "tic_manifest", "verify", "--output", "json", f"{place}@{self.digest}"]
        done = subprocess.run(argv, env=plain | environ, capture_output=True, text=True, check=False)
        return done.returncode, {one["code"] for one in json.loads(done.stdout)["findings"]}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    one = World(tmp_path)
    yield one
    one.proxy.close()
    one.server.close()


READ = (3, {"DELIVERY_MISSING"})
UNREACHED = (3, {"NETWORK"})


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"])
@pytest.mark.parametrize("proxy", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_a_registry_behind_a_proxy_is_read(world: World, proxy: str, variable: str) -> None:
    said = world.verify(f"{HOST}/team/app", **{proxy: world.proxy.url, variable: str(world.proxy.authority)})
    assert said == READ
    assert set(world.proxy.connected) == {f"CONNECT {HOST}:443"}


def test_an_authority_that_nobody_named_is_not_trusted(world: World) -> None:
    assert world.verify(f"{HOST}/team/app", HTTPS_PROXY=world.proxy.url) == UNREACHED
    assert set(world.secrets) == set()


def test_no_proxy_is_honoured_and_loopback_needs_none(world: World) -> None:
    environ = {"HTTPS_PROXY": world.proxy.url, "HTTP_PROXY": world.proxy.url, "ALL_PROXY": world.proxy.url}
    assert world.verify(f"{HOST}/team/app", **environ, NO_PROXY=".invalid") == UNREACHED
    assert world.verify(f"{world.server.address}/team/app", **environ) == READ
    assert world.proxy.connected == [], "plain HTTP never leaves this machine"


def test_netrc_gives_no_secret(world: World) -> None:
    netrc = world.folder / ".netrc"
    for host in (HOST, "127.0.0.1"):
        netrc.write_text(f"machine {host} login me password secret\n")
        netrc.chmod(0o600)
        environ = {"HOME": str(world.folder), "NETRC": str(netrc), "HTTPS_PROXY": world.proxy.url}
        place = HOST if host == HOST else world.server.address
        ca = {"SSL_CERT_FILE": str(world.proxy.authority)}
        assert world.verify(f"{place}/team/app", **environ, **ca) == READ
    assert set(world.secrets) == {""}


def test_the_forge_is_asked_the_same_way(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if "proxy" in name.lower() or "CA_BUNDLE" in name]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HTTPS_PROXY", world.proxy.url)
    with pytest.raises(UnavailableError):
        HttpExchange(os.environ).get(f"https://{HOST}/api", {})
    monkeypatch.setenv("SSL_CERT_FILE", str(world.proxy.authority))
    assert HttpExchange(os.environ).get(f"https://{HOST}/api", {}).status == 200
    monkeypatch.setenv("no_proxy", HOST)
    with pytest.raises(UnavailableError):
        HttpExchange(os.environ).get(f"https://{HOST}/api", {})


def test_a_forge_that_points_at_no_url_is_no_answer() -> None:
    server = Server(lambda _: Reply(302, b"", headers={"Location": "https://[x"}))
    with pytest.raises(UnavailableError) as raised:
        HttpExchange({}).get(f"{server.url}/x", {})
    server.close()
    assert raised.value.code == "BAD_RESPONSE"
