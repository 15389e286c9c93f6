"""`scripts/engine` for real: started, asked, built with, killed and ended, beside any other engine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from enginelib import answer, host, packages, process  # noqa: E402
from enginelib.daemon import Engine  # noqa: E402
from enginelib.say import UsageError  # noqa: E402

pytestmark = pytest.mark.engine
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: an engine of our own needs root")


def script(name: str, *words: str, root: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run one of our scripts; `root` selects an engine of its own."""
    env = {key: value for key, value in os.environ.items() if key != "TIC_ENGINE_ROOT"}
    if root:
        env["TIC_ENGINE_ROOT"] = str(root)
    argv = [sys.executable, "-B", str(SCRIPTS / name), *words]
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=600)


def done(result: subprocess.CompletedProcess[str]) -> str:
    """Return what a script printed, when it ended well."""
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def environment(root: Path | None = None) -> dict[str, str]:
    """Return the environment that `env` asks a shell to have."""
    line = done(script("engine", "env", root=root)).strip()
    exported = dict([line.removeprefix("export ").split("=", 1)]) if line else {}
    return {**os.environ, **exported}


def processes(root: Path) -> list[str]:
    """Return the command lines of living processes that name a path below `root`."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
        except OSError:
            continue
        if f"{root}/" in line and "scripts/engine" not in line:
            found.append(line)
    return found


def mounts(root: Path) -> list[str]:
    """Return the mounts below `root`."""
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f" {root}/" in line]


@pytest.fixture(scope="module")
def engine() -> Iterator[dict[str, str]]:
    """Yield the environment of the engine in use; one that this started is ended again."""
    was_up = script("engine", "status").returncode == 0
    done(script("engine", "up"))
    yield environment()
    if not was_up:
        done(script("engine", "down"))


@pytest.fixture
def own() -> Iterator[Path]:
    """Yield the root of an engine of its own, with a short path, purged afterwards."""
    root = Path(tempfile.mkdtemp(prefix="tic-e-", dir="/var/tmp"))
    yield root
    script("engine", "purge", root=root)
    shutil.rmtree(root, ignore_errors=True)


def platform_digest(archive: Path) -> str:
    """Return the digest of the platform manifest in an OCI archive, below however many indexes."""
    with tarfile.open(archive) as tar:
        member = "index.json"
        while True:
            stream = tar.extractfile(member)
            assert stream
            entries = [entry for entry in json.load(stream)["manifests"] if not attested(entry)]
            (entry,) = entries
            if "manifest.v" in entry["mediaType"] and "list" not in entry["mediaType"]:
                return str(entry["digest"])
            member = "blobs/" + entry["digest"].replace(":", "/")


def attested(entry: dict[str, dict[str, str]]) -> bool:
    """Tell whether an entry of an index is BuildKit's attestation and no platform."""
    return entry.get("platform", {}).get("os") == "unknown"


def build(context: Path, archive: Path, env: dict[str, str]) -> str:
    """Build without cache to an OCI archive and return the digest of its platform manifest."""
    argv = ["docker", "buildx", "build", "--no-cache", "--provenance=mode=max"]
    argv += ["--output", f"type=oci,rewrite-timestamp=true,dest={archive}", str(context)]
    result = subprocess.run(
        argv, env={**env, "SOURCE_DATE_EPOCH": "1700000000"}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return platform_digest(archive)


def test_up_twice_is_a_no_op_under_a_second(engine: dict[str, str]) -> None:
    seconds = []
    for _ in range(3):  # the fastest, since the machine may be busy with something else
        started = time.monotonic()
        result = script("engine", "up")
        seconds.append(time.monotonic() - started)
        assert result.returncode == 0
    assert min(seconds) < 1
    assert "starting" not in result.stderr and "installing" not in result.stderr
    assert done(script("engine", "status"))


def test_env_is_one_safe_line_or_nothing(engine: dict[str, str]) -> None:
    printed = done(script("engine", "env"))
    assert printed == "" or printed == f"export DOCKER_HOST={engine['DOCKER_HOST']}\n"


def test_status_names_what_answers(engine: dict[str, str]) -> None:
    facts = dict(line.split(": ", 1) for line in done(script("engine", "status")).splitlines())
    assert answer.version(facts["version"]) and (answer.version(facts["buildx"]) or (0, 0)) >= (0, 13)
    if facts["started by"] == "scripts/engine":
        assert int(facts["disk used"].removesuffix(" bytes")) > 0


def test_builds_repeat_to_the_digest(engine: dict[str, str], tmp_path: Path) -> None:
    context = tmp_path / "context"
    context.mkdir()
    (context / "Dockerfile").write_text("FROM scratch\nCOPY fact /fact\n")
    digests = []
    for number, text in enumerate(("one", "one", "two")):
        (context / "fact").write_text(text)
        os.utime(context / "fact", (1_600_000_000 + number, 1_800_000_000 + number))
        digests.append(build(context, tmp_path / f"{number}.tar", engine))
    assert digests[0] == digests[1] != digests[2]


@needs_root
def test_down_leaves_nothing_running_and_purge_nothing_on_disk(own: Path) -> None:
    assert script("engine", "status", root=own).returncode == 3
    assert script("engine", "env", root=own).returncode == 3
    done(script("engine", "up", root=own))
    assert len(processes(own)) == 2
    assert environment(own)["DOCKER_HOST"] == f"unix://{own}/run/docker.sock"
    done(script("engine", "down", root=own))
    assert processes(own) == [] and mounts(own) == [] and (own / "docker").is_dir()
    freed = done(script("engine", "purge", root=own))
    assert int(freed.split()[1]) > 0 and not own.exists()


@needs_root
def test_two_engines_do_not_see_each_other(engine: dict[str, str], own: Path, tmp_path: Path) -> None:
    done(script("engine", "up", root=own))
    before = done(script("engine", "status"))
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY Dockerfile /\n")
    first = build(tmp_path, tmp_path / "first.tar", engine)
    assert first == build(tmp_path, tmp_path / "second.tar", environment(own))
    done(script("engine", "purge", root=own))
    assert done(script("engine", "status")).splitlines()[:3] == before.splitlines()[:3]


@needs_root
@pytest.mark.parametrize("killed", [(0,), (1,), (0, 1)], ids=["containerd", "dockerd", "both"])
def test_up_after_a_kill(own: Path, killed: tuple[int, ...]) -> None:
    done(script("engine", "up", root=own))
    pids = [entry["pid"] for entry in json.loads((own / "run/started.json").read_text())]
    for index in killed:
        os.kill(pids[index], signal.SIGKILL)
    done(script("engine", "up", root=own))
    assert len(processes(own)) == 2
    done(script("engine", "status", root=own))


@needs_root
def test_a_stale_pid_file_ends_nobody_else(own: Path) -> None:
    """After a reboot our pid may be another's: neither `down` nor `up` may touch it."""
    done(script("engine", "up", root=own))
    noted = json.loads((own / "run/started.json").read_text())
    done(script("engine", "down", root=own))
    with subprocess.Popen(["sleep", "300"]) as stranger:
        (own / "run").mkdir()
        for entry in noted:
            entry["pid"] = stranger.pid
        (own / "run/started.json").write_text(json.dumps(noted))
        (own / "run/docker.sock").touch()
        done(script("engine", "down", root=own))
        done(script("engine", "up", root=own))
        assert stranger.poll() is None
        stranger.kill()


@needs_root
def test_concurrent_up_starts_one_engine(own: Path) -> None:
    env = {**os.environ, "TIC_ENGINE_ROOT": str(own)}
    argv = [sys.executable, "-B", str(SCRIPTS / "engine"), "up"]
    rivals = [subprocess.Popen(argv, env=env, stderr=subprocess.DEVNULL) for _ in range(4)]
    assert [rival.wait(120) for rival in rivals] == [0, 0, 0, 0]
    assert len(processes(own)) == 2


@needs_root
def test_a_missing_right_is_named(own: Path) -> None:
    argv = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    argv += [sys.executable, "-B", str(SCRIPTS / "engine"), "up"]
    env = {**os.environ, "TIC_ENGINE_ROOT": str(own)}
    result = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert result.returncode == 3 and "right: CAP_SYS_ADMIN is not held" in result.stderr


@pytest.mark.parametrize(
    "root", ["relative", "/", "/a b", "/a$(x)", "/a/../b", "/" + "x" * 60, "/a\nb", "/a//b"]
)
def test_a_root_that_no_shell_or_socket_can_take_is_refused(root: str) -> None:
    with pytest.raises(UsageError):
        Engine(root)


@pytest.mark.parametrize("command", ["up", "down", "purge"])
def test_a_folder_with_other_things_is_left_alone(own: Path, command: str) -> None:
    (own / "precious").write_text("x")
    result = script("engine", command, root=own)
    assert result.returncode == (3 if os.geteuid() else 2 if command == "up" else 0)
    assert os.listdir(own) == ["precious"]


@pytest.mark.parametrize("words", [[], ["fly"], ["up", "now"], ["install"], ["install", "bash"]])
def test_wrong_use_exits_2(words: list[str]) -> None:
    assert script("engine", *words).returncode == 2


@needs_root
def test_registry_answers_on_loopback_alone(tmp_path: Path) -> None:
    root = tmp_path / "registry"
    address = done(script("registry", "up", "--root", str(root))).strip()
    try:
        assert address == done(script("registry", "up", "--root", str(root))).strip()
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address + "/v2/", timeout=10) as reply:
            assert reply.status == 200
    finally:
        done(script("registry", "down", "--root", str(root)))
    assert processes(root) == [] and not root.exists()
    assert script("registry", "url", "--root", str(root)).returncode == 3


ONE_LINE = """\
# deb http://off.example/debian bookworm main
deb [arch=amd64,arm64 signed-by=/k.gpg] http://mirror.example/debian bookworm main contrib # ours
deb http://mirror.example/debian bookworm-updates main
deb-src http://mirror.example/debian bookworm main
deb http://other.example/debian bookworm main
"""
DEB822 = """\
Types: deb
# a comment
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 -----END PGP PUBLIC KEY BLOCK-----

Types: deb
URIs: http://other.example/debian
Suites: bookworm
Components: main
Enabled: no
"""


@pytest.mark.parametrize(("name", "text"), [("sources.list", ONE_LINE), ("sources.list.d/x.sources", DEB822)])
def test_a_newer_release_follows_the_machines_own_source(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / name).write_text(text)
    system = packages.Distribution("debian", 12, "bookworm")
    sources = packages.debian_sources(system, tmp_path)
    assert sources[0]["URIs"] == "http://mirror.example/debian"
    assert not [stanza for stanza in sources if "off.example" in stanza["URIs"]]
    view = tmp_path / "work/apt"
    packages.write_view(view, sources, packages.newer_releases(system, packages.ENGINE))
    written = (view / "sources/debian.sources").read_text()
    assert written.endswith("\n") and "Suites: trixie\n" in written and "Signed-By:" in written
    pins = (view / "preferences/pins").read_text()
    assert "Package: *\nPin: release n=trixie\nPin-Priority: 1\n" in pins
    assert (
        "Package: docker.io docker-cli docker-buildx containerd\nPin: release n=trixie\nPin-Priority: 500\n"
        in pins
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n',
            packages.Distribution("debian", 12, "bookworm"),
        ),
        ("ID=debian\nVERSION_CODENAME=forky\n", packages.Distribution("debian", 99, "forky")),
        ('ID=ubuntu\nVERSION_ID="24.04"\n', packages.Distribution("ubuntu", 24, "")),
        ("ID=fedora\nVERSION_ID=42\n", None),
    ],
)
def test_distribution(tmp_path: Path, text: str, expected: packages.Distribution | None) -> None:
    (tmp_path / "os-release").write_text(text)
    assert packages.distribution(tmp_path / "os-release") == expected


def test_clean_root_takes_over_what_pip_names(tmp_path: Path) -> None:
    settings = [
        ("find-links", str(tmp_path)),
        ("extra-index-url", f"file://{tmp_path}/a%20b/simple"),
        ("index-url", "https://index.example/simple"),
        ("constraint", str(tmp_path / "c.txt")),
    ]
    assert host.paths_in(settings) == [tmp_path, tmp_path / "a b", tmp_path / "c.txt"]


@needs_root
@pytest.mark.slow
def test_clean_root_leaves_nothing_when_killed(own: Path) -> None:
    """Debian 12 with git, make and Python 3.11; a killed command leaves neither mounts nor processes."""
    root = own / "root"
    done(script("clean-root", "make", str(root)))
    look = 'git --version && make --version && python3 -c "import ensurepip" && cat /etc/debian_version && exit 7'
    result = script("clean-root", "run", str(root), "--", "sh", "-c", look)
    assert result.returncode == 7 and result.stdout.splitlines()[-1].startswith("12."), result.stderr
    argv = [sys.executable, "-B", str(SCRIPTS / "clean-root"), "run", str(root), "--", "sleep", "31536000"]
    with subprocess.Popen(argv) as running:
        deadline = time.monotonic() + 20
        while not (inside := sleepers()) and time.monotonic() < deadline:
            time.sleep(0.05)
        running.kill()
    assert inside
    while sleepers() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sleepers() == [] and mounts(own) == []
    done(script("clean-root", "rm", str(root)))
    assert not root.exists()


def sleepers() -> list[int]:
    """Return the processes that sleep for a year, as only the test above asks for."""
    return [
        pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if process.arguments(pid) == YEAR
    ]


YEAR = ["sleep", "31536000"]
