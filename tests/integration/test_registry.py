"""`RegistrySource` against a registry that answers wrongly, late, half or not at all (scenarios S10, S12, S22 to S25)."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tic_manifest.adapters.attach import attach
from tic_manifest.adapters.blobs import read_blobs
from tic_manifest.adapters.registry import RegistrySource
from tic_manifest.adapters.registry_auth import find_credentials, may_send
from tic_manifest.errors import PersonError, RefusedError, TicError, UnavailableError
from tic_manifest.formats.reference import parse_reference
from tic_manifest.model.delivery import VerifyReport
from tic_manifest.model.verdict import Check, Status
from tic_manifest.stages.verify import Options, Tools, verify

sys.path.insert(0, str(Path(__file__).parents[1] / "kit"))
sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from layouts import Layout, digest_of, layers_of
from push import push
from quiet import Quiet
from scenarios.httpd import Request, Server
from scenarios.registry import Registry
from scenarios.reply import Reply
from scenarios.script import Script
from statements import EVIDENCE, delivery, descriptor

FILES = {"runs/rollout/scores.bin": EVIDENCE["runs/rollout/scores.bin"]}
REPO = "team/image"


class Bench:
    """A delivered image in a registry whose answers can be scripted afterwards."""

    def __init__(self, root: Path) -> None:
        self.layout = Layout(root / "layout")
        self.image = self.layout.image()
        self.index = self.layout.index([self.image, self.layout.attestation(self.image)])
        self.layout.save(self.index, "latest")
        raw = delivery(self.image["digest"], self.index["digest"], FILES)
        attach(self.layout.root, descriptor(self.image), descriptor(self.index), raw, FILES)
        self.registry = Registry(root / "registry", root)
        self.server = Server(self.answer)
        self.gate: Any = None
        push(self.layout.root, f"{self.server.url}/v2/{REPO}")
        self.server.log.clear()

    def answer(self, request: Request) -> Any:
        told = self.gate(request) if self.gate else None
        return told if told is not None else self.registry.answer(request)

    def script(self, **answers: Any) -> None:
        rows = {
            f"{key.partition(' ')[0]} /v2/{REPO}/{key.partition(' ')[2]}": row for key, row in answers.items()
        }
        self.registry.script = Script(rows)

    def source(self, environ: dict[str, str] | None = None) -> RegistrySource:
        return RegistrySource(self.server.address, REPO, environ or {})

    def judge(
        self, digest: str | None = None, environ: dict[str, str] | None = None, **options: Any
    ) -> VerifyReport:
        reference = parse_reference(f"{self.server.address}/{REPO}@{digest or self.index['digest']}")
        tools = Tools(reader=read_blobs, judge=agree, progress=Quiet())
        return verify(self.source(environ), reference, Options(**options), tools)

    @property
    def layer(self) -> str:
        return str(layers_of(self.layout, self.image)[0]["digest"])


def agree(*_: Any) -> tuple[list[Check], list[Any]]:
    return [Check(id="judged", status=Status.PASS)], []


def codes(report: VerifyReport) -> set[str]:
    return {one.code for one in report.findings if not one.note}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.server.close()


def test_a_delivered_image_passes_with_few_requests(bench: Bench) -> None:
    report = bench.judge(depth="identity")
    assert report.outcome.value == "pass", report.findings
    heads = [line for line in bench.server.log if line.startswith("HEAD")]
    others = [line for line in bench.server.log if not line.startswith("HEAD")]
    assert len(others) <= 12, others
    assert len(heads) == len(set(heads))
    assert bench.judge().outcome.value == "pass"


def test_layout_and_registry_give_the_same_report(bench: Bench) -> None:
    from tic_manifest.adapters.layout import LayoutSource

    tools = Tools(reader=read_blobs, judge=agree, progress=Quiet())
    reference = parse_reference(f"oci:{bench.layout.root}@{bench.index['digest']}")
    local = verify(LayoutSource(bench.layout.root), reference, Options(), tools)
    assert local.model_dump_json() == bench.judge().model_dump_json()


def test_without_a_referrers_api_the_fallback_tag_counts(bench: Bench) -> None:
    bench.script(**{"GET referrers/*": [{"status": 404}]})
    assert bench.judge().outcome.value == "pass"


def test_a_fallback_tag_that_names_the_image_is_no_answer(bench: Bench) -> None:
    tag = bench.image["digest"].replace(":", "-")
    raw = bench.layout.path(bench.image["digest"]).read_text()
    bench.script(
        **{"GET referrers/*": [{"status": 404}], f"GET manifests/{tag}": [{"status": 200, "body": raw}]}
    )
    report = bench.judge(bench.image["digest"])
    assert codes(report) == {"REFERRERS_INVALID", "DELIVERY_MISSING"}
    assert report.exit_code == 3


def test_a_page_of_html_from_the_referrers_api_is_no_answer(bench: Bench) -> None:
    bench.script(**{"GET referrers/*": [{"status": 200, "body": "<html>"}]})
    assert codes(bench.judge()) >= {"REFERRERS_INVALID", "DELIVERY_MISSING"}


def test_a_swapped_body_fails_whatever_the_headers_say(bench: Bench) -> None:
    other = bench.layout.path(bench.layout.image(env=("PATH=/x",))["digest"]).read_text()
    kind = {"Content-Type": bench.image["mediaType"], "Docker-Content-Digest": bench.image["digest"]}
    bench.script(
        **{f"GET manifests/{bench.image['digest']}": [{"status": 200, "body": other, "headers": kind}]}
    )
    report = bench.judge(bench.image["digest"])
    assert (report.exit_code, codes(report)) == (1, {"MANIFEST_DIGEST"})


def test_a_content_type_that_is_not_the_document_s_is_refused(bench: Bench) -> None:
    kind = {"Content-Type": "application/vnd.oci.image.index.v1+json"}
    bench.script(**{f"GET manifests/{bench.image['digest']}": [{"headers": kind}]})
    with pytest.raises(RefusedError) as raised:
        bench.judge(bench.image["digest"])
    assert raised.value.code == "MEDIATYPE_CONFUSION"


def test_a_flipped_byte_at_rest_is_seen_at_the_default_depth_alone(bench: Bench) -> None:
    path = bench.registry._file(bench.layer)
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(bytes(data))
    assert bench.judge(depth="identity").outcome.value == "pass"
    report = bench.judge()
    assert (report.exit_code, codes(report)) == (1, {"BLOB_DIGEST"})


@pytest.mark.parametrize(
    "fault", [{"truncate": 50}, {"reset": 50}, {"status": 503, "headers": {"Retry-After": "0"}}]
)
def test_a_fault_that_goes_away_is_no_fault(bench: Bench, fault: dict[str, Any]) -> None:
    bench.script(**{f"GET blobs/{bench.layer}": [fault, {}], f"HEAD blobs/{bench.layer}": [{}]})
    assert bench.judge().outcome.value == "pass"


def test_a_blob_that_always_ends_early_fails(bench: Bench) -> None:
    bench.script(**{f"GET blobs/{bench.layer}": [{"truncate": 0}], f"HEAD blobs/{bench.layer}": [{}]})
    report = bench.judge()
    assert (report.exit_code, codes(report)) == (1, {"BLOB_DIGEST"})


def test_a_registry_that_stays_busy_is_no_verdict(bench: Bench) -> None:
    bench.script(**{f"GET blobs/{bench.layer}": [{"status": 503, "headers": {"Retry-After": "0"}}]})
    with pytest.raises(UnavailableError) as raised:
        bench.judge()
    assert raised.value.exit_code == 3


def test_a_server_error_is_never_a_missing_blob(bench: Bench) -> None:
    bench.script(**{f"GET manifests/{bench.image['digest']}": [{"status": 500}]})
    with pytest.raises(UnavailableError):
        bench.judge()


def test_the_digest_of_a_config_or_layer_is_told(bench: Bench) -> None:
    config = json.loads(bench.layout.path(bench.image["digest"]).read_bytes())["config"]["digest"]
    for digest, variant in ((config, "config"), (bench.layer, "layer")):
        with pytest.raises(PersonError) as raised:
            bench.judge(digest)
        assert raised.value.code == f"DIGEST_KIND/{variant}"


def test_what_is_not_there_and_nobody_there_are_no_verdict(bench: Bench) -> None:
    with pytest.raises(UnavailableError) as raised:
        bench.judge(digest_of(b"nothing"))
    assert raised.value.code == "NOT_FOUND"
    bench.server.close()
    with pytest.raises(UnavailableError) as raised:
        bench.judge()
    assert raised.value.code == "NETWORK"


TOKEN = "token-of-the-registry"


class Guard:
    """Asks for a token, as `realm` says, and keeps every secret that it was sent."""

    def __init__(self, bench: Bench, scheme: str = "bearer", realm: str | None = None) -> None:
        self.bench, self.scheme, self.realm = bench, scheme, realm or f"{bench.server.url}/token"
        self.seen: list[str] = []

    def __call__(self, request: Request) -> Reply | None:
        said = request.headers.get("authorization", "")
        if request.path == "/token":
            self.seen.append(said)
            good = said in ("", f"Basic {base64.b64encode(b'me:secret').decode()}")
            return Reply(200 if good else 401, json.dumps({"token": TOKEN}).encode())
        if self.scheme == "bearer" and said != f"Bearer {TOKEN}":
            scope = f'Bearer realm="{self.realm}",service="r",scope="repository:{REPO}:pull,push"'
            return Reply(401, headers={"WWW-Authenticate": scope})
        if self.scheme == "basic" and not said.startswith("Basic "):
            return Reply(401, headers={"WWW-Authenticate": 'Basic realm="r"'})
        return None


def auth_file(path: Path, host: str) -> dict[str, str]:
    path.write_text(json.dumps({"auths": {host: {"auth": base64.b64encode(b"me:secret").decode()}}}))
    return {"REGISTRY_AUTH_FILE": str(path)}


def test_a_token_is_fetched_with_the_stored_credentials(bench: Bench, tmp_path: Path) -> None:
    bench.gate = Guard(bench)
    environ = auth_file(tmp_path / "auth.json", bench.server.address)
    assert bench.judge(environ=environ).outcome.value == "pass"
    assert bench.gate.seen[0].startswith("Basic ")
    bench.gate = Guard(bench)
    assert bench.judge().outcome.value == "pass", "an anonymous token is enough where the registry says so"


def test_basic_credentials_and_their_absence(bench: Bench, tmp_path: Path) -> None:
    bench.gate = Guard(bench, "basic")
    assert bench.judge(environ=auth_file(tmp_path / "a.json", bench.server.address)).outcome.value == "pass"
    with pytest.raises(UnavailableError) as raised:
        bench.judge()
    assert (raised.value.code, raised.value.exit_code) == ("AUTH", 3)


def test_a_secret_never_goes_to_a_foreign_token_service(bench: Bench, tmp_path: Path) -> None:
    seen: list[str] = []

    def answer(request: Request) -> Reply:
        seen.append(request.headers.get("authorization", ""))
        return Reply(200, json.dumps({"token": "foreign"}).encode())

    foreign = Server(answer, host="127.0.0.2")
    bench.gate = Guard(bench, realm=f"{foreign.url}/token")
    with pytest.raises(UnavailableError):
        bench.judge(environ=auth_file(tmp_path / "a.json", bench.server.address))
    foreign.close()
    assert seen and set(seen) == {""}


def test_a_redirect_carries_no_secret_to_another_host(bench: Bench, tmp_path: Path) -> None:
    seen: list[str] = []

    def store(request: Request) -> Any:
        seen.append(request.headers.get("authorization", ""))
        return bench.registry.answer(request)

    other = Server(store, host="127.0.0.2")
    guard = Guard(bench)

    def gate(request: Request) -> Any:
        refused = guard(request)
        moved = "/blobs/" in request.path and request.method == "GET"
        return refused or (Reply(307, headers={"Location": f"{other.url}{request.path}"}) if moved else None)

    bench.gate = gate
    assert bench.judge(environ=auth_file(tmp_path / "a.json", bench.server.address)).outcome.value == "pass"
    other.close()
    assert seen and set(seen) == {""}


@pytest.mark.parametrize(
    "location",
    [
        "http://192.0.2.1/x",
        "file:///etc/passwd",
        "ftp://127.0.0.1/x",
        "",
        "https://[x",
        "https://a:99999/",
        "//[:1",
    ],
)
def test_a_redirect_elsewhere_is_refused(bench: Bench, location: str) -> None:
    bench.script(**{f"GET blobs/{bench.layer}": [{"status": 307, "headers": {"Location": location}}]})
    with pytest.raises(TicError):
        bench.judge()


@pytest.mark.parametrize("realm", ["https://[x", "http://127.0.0.1:99999/", "//"])
def test_a_token_service_at_no_url_is_refused(bench: Bench, realm: str) -> None:
    bench.gate = Guard(bench, realm=realm)
    with pytest.raises(TicError) as raised:
        bench.judge()
    assert raised.value.exit_code in {3, 4}


def test_a_next_page_at_no_url_is_no_page(bench: Bench) -> None:
    kind = "application/vnd.oci.image.index.v1+json"
    headers = {"Link": '<https://[x>; rel="next"', "Content-Type": kind}
    answer = {
        "status": 200,
        "headers": headers,
        "body": {"schemaVersion": 2, "mediaType": kind, "manifests": []},
    }
    digests = (bench.image["digest"], bench.index["digest"])
    bench.script(**{f"GET referrers/{one}": [answer] for one in digests})
    assert codes(bench.judge()) == {"DELIVERY_MISSING"}


def test_no_secret_is_in_a_message(bench: Bench, tmp_path: Path) -> None:
    bench.gate = lambda _: Reply(401, headers={"WWW-Authenticate": 'Basic realm="r"'})
    with pytest.raises(UnavailableError) as raised:
        bench.judge(environ=auth_file(tmp_path / "a.json", bench.server.address))
    said = "\n".join(raised.value.lines()) + repr(raised.value.__dict__)
    assert "secret" not in said and base64.b64encode(b"me:secret").decode() not in said


@pytest.mark.parametrize(
    ("registry", "realm", "may"),
    [
        ("registry.example.com", "https://auth.example.com/token", True),
        ("registry.example.com", "https://registry.example.com/token", True),
        ("registry.example.com", "http://registry.example.com/token", False),
        ("registry.example.com", "https://example.org/token", False),
        ("registry.example.co.uk", "https://other.co.uk/token", False),
        ("docker.io", "https://auth.docker.io/token", True),
        ("docker.io", "https://evil.docker.io/token", False),
        ("127.0.0.1:5000", "http://127.0.0.2/token", False),
        ("10.0.0.1", "https://20.0.0.1/token", False),
        ("com", "https://evil.com/token", False),
    ],
)
def test_where_a_stored_secret_may_go(registry: str, realm: str, may: bool) -> None:
    assert may_send(registry, realm) is may


def test_credentials_come_from_files_and_helpers_in_order(tmp_path: Path) -> None:
    helper = tmp_path / "docker-credential-fake"
    helper.write_text(
        '#!/bin/sh\nread host\n[ "$1" = get ] && echo "{\\"Username\\":\\"u\\",\\"Secret\\":\\"$host\\"}"\n'
    )
    helper.chmod(0o755)
    config = tmp_path / "config.json"
    auth = base64.b64encode(b"a:b").decode()
    config.write_text(json.dumps({
        "credHelpers": {"helped.example": "fake", "evil.example": "../fake"},
        "auths": {"plain.example": {"auth": auth}, "plain.example/team": {"auth": base64.b64encode(b"t:b").decode()},
                  "token.example": {"identitytoken": "idt"}, "empty.example": {"auth": ""}},
    }))  # fmt: skip
    environ = {
        "DOCKER_CONFIG": str(tmp_path),
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "HOME": str(tmp_path / "home"),
    }

    def user(host: str, repository: str = "x/y") -> str | None:
        found = find_credentials(environ, host, repository)
        return None if found is None else f"{found.user}:{found.secret}"

    assert user("helped.example") == "u:helped.example"
    assert user("plain.example") == "a:b" and user("plain.example", "team/x") == "t:b"
    assert user("token.example") == ":idt"
    assert user("evil.example") is user("empty.example") is user("other.example") is None
    assert "idt" not in repr(find_credentials(environ, "token.example", "x"))
