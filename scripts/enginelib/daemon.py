"""An engine of our own: everything it has lies below one root, and another engine is never touched.

It has no bridge and no firewall rules, which two engines would share: containers and build steps run with
`--network none` (or `host`).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from enginelib import groups, process, rights
from enginelib.process import Started
from enginelib.say import MissingError, UsageError, last_lines, run, say

LONGEST_ROOT = 60  # a unix socket's path holds 107 bytes, and the engine makes some below its exec root
PROGRAMS = ("dockerd", "containerd", "containerd-shim-runc-v2")
PATHS = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")


class Engine:
    """The engine below one root folder."""

    def __init__(self, root: str) -> None:
        """Take an absolute, plain path; raises UsageError for another or one too long for sockets."""
        self.root = Path(root)
        if not re.fullmatch(r"(/[A-Za-z0-9_+@%:,-][A-Za-z0-9._+@%:,-]*)+", root):
            raise UsageError(f"TIC_ENGINE_ROOT must be an absolute path of plain characters, not {root!r}")
        if len(os.fsencode(root)) > LONGEST_ROOT:
            raise UsageError(
                f"TIC_ENGINE_ROOT is {len(os.fsencode(root))} bytes long; "
                f"{LONGEST_ROOT} at most, sockets lie below it"
            )
        self.run = self.root / "run"
        self.log = self.root / "log"
        self.mark = self.root / "tic-engine.json"
        self.pids = self.run / "started.json"
        self.socket = self.run / "docker.sock"
        self.host = f"unix://{self.socket}"
        self.containerd_socket = self.run / "containerd.sock"
        self.containerd_config = self.root / "containerd.toml"
        self.docker_config = self.root / "daemon.json"

    def answers(self) -> bool:
        """Tell whether the engine works: dockerd goes on answering for a while without its containerd."""
        with (
            contextlib.suppress(OSError),
            connected(self.containerd_socket),
            connected(self.socket) as link,
        ):
            link.sendall(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")
            return link.recv(64).startswith(b"HTTP/1.0 200")
        return False

    def claim(self) -> None:
        """Make the root ours; raises UsageError for a folder that holds something else."""
        if self.root.is_dir() and not self.mark.exists() and set(os.listdir(self.root)) - {"lock"}:
            raise UsageError(f"{self.root} is not empty and not made by scripts/engine; it is left alone")
        self.root.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o711)
        self.mark.write_text('{"made-by": "scripts/engine"}\n')

    def owned(self) -> bool:
        """Tell whether the root is one that we made."""
        return self.mark.exists()

    def lock(self) -> contextlib.AbstractContextManager[None]:
        """Hold this root's lock; the root must exist."""
        return process.locked(self.root / "lock", f"scripts/engine on {self.root}")

    def start(self) -> None:
        """Start containerd and dockerd; raises MissingError with what is missing or what the log says."""
        self.check()
        for folder in (self.run, self.log):
            folder.mkdir(exist_ok=True)
        self.configure()
        path = os.pathsep.join([*os.environ.get("PATH", "").split(os.pathsep), *PATHS])
        env = {**os.environ, "PATH": path.strip(os.pathsep)}
        try:
            self.launch("containerd", self.containerd_config, self.containerd_socket.exists, env)
            self.launch("dockerd", self.docker_config, self.answers, env)
        except BaseException:
            self.stop()
            raise

    def check(self) -> None:
        """Raise MissingError when rights or mounts for an engine are missing."""
        missing = rights.lacks(self.root)
        if missing:
            lines = "\n".join("  " + line for line in missing)
            raise MissingError(f"no engine can run here; missing:\n{lines}")

    def launch(self, name: str, config: Path, ready: Callable[[], bool], env: Mapping[str, str]) -> None:
        """Start one daemon, note it in the pid file, and wait until it is ready."""
        program = shutil.which(name, path=env["PATH"])
        if program is None:
            raise MissingError(f"{name} is not installed")
        option = "--config" if name == "containerd" else "--config-file"
        log = self.log / f"{name}.log"
        started = process.start(name, [program, option, str(config)], str(config), log, env)
        process.save(self.pids, [*process.load(self.pids), started])
        if not process.wait_until(lambda: ready() or not process.is_alive(started), 90) or not ready():
            raise MissingError(f"{name} did not start; {log} ends with:\n{last_lines(log)}")

    def configure(self) -> None:
        """Write both daemons' configuration."""
        self.containerd_config.write_text(
            f"""version = 2
root = "{self.root}/containerd"
state = "{self.run}/containerd"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.nri.v1.nri"]
[grpc]
address = "{self.containerd_socket}"
[ttrpc]
address = "{self.containerd_socket}.ttrpc"
[debug]
level = "warn"
[plugins."io.containerd.internal.v1.opt"]
path = "{self.root}/containerd/opt"
"""
        )
        settings = {
            "features": {"containerd-snapshotter": True},
            "hosts": [self.host],
            "group": "",
            "containerd": str(self.containerd_socket),
            "data-root": f"{self.root}/docker",
            "exec-root": f"{self.run}/docker",
            "pidfile": f"{self.run}/docker.pid",
            "exec-opts": ["native.cgroupdriver=cgroupfs"],
            "cgroup-parent": "/" + groups.name_for(self.root),
            "bridge": "none",
            "iptables": False,
            "ip6tables": False,
            "ip-forward": False,
            "ip-masq": False,
            "userland-proxy": False,
            "shutdown-timeout": 5,
            "builder": {"gc": {"enabled": True, "defaultKeepStorage": "20GB"}},
        }
        self.docker_config.write_text(json.dumps(settings, indent=1) + "\n")

    def stop(self) -> bool:
        """End what we started, containers first, and what a kill or a reboot left; tell if anything ran."""
        started = [entry for entry in process.load(self.pids) if process.is_alive(entry)]
        if self.answers():
            self.kill_containers()
        for entry in reversed(started):
            process.stop(entry, patience=20)
        strays = self.strays()
        for stray in strays:
            process.stop(stray, patience=3)
        groups.clear(self.root)
        self.unmount()
        shutil.rmtree(self.run, ignore_errors=True)
        return bool(started or strays)

    def kill_containers(self) -> None:
        """End all containers of this engine at once."""
        docker = ["docker", "--host", self.host]
        running = run([*docker, "ps", "--quiet", "--no-trunc"]).stdout.split()
        if running:
            say(f"ending {len(running)} containers")
            run([*docker, "kill", *running])

    def strays(self) -> list[Started]:
        """Return this root's processes, noted or not: their arguments name it, and they see this folder."""
        names = {str(path) for path in (self.containerd_socket, self.containerd_config, self.docker_config)}
        found = []
        for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
            argv = process.arguments(pid)
            marker = next((word for word in argv[1:] if word in names), None)
            if marker and Path(argv[0]).name in PROGRAMS and self.sees_root(pid):
                ticks = process.start_ticks(pid)
                if ticks is not None:
                    found.append(Started(Path(argv[0]).name, pid, ticks, process.boot_id(), marker))
        return found

    def sees_root(self, pid: int) -> bool:
        """Tell whether a process sees our root folder at its path; in a chroot that is another folder."""
        with contextlib.suppress(OSError):
            return os.path.samestat(os.stat(f"/proc/{pid}/root{self.root}"), os.stat(self.root))
        return False

    def unmount(self) -> None:
        """Unmount what was left mounted below the root, deepest first."""
        for place in sorted(self.mounts(), reverse=True):
            run(["umount", "--lazy", place])

    def mounts(self) -> list[str]:
        """Return the mount points below the root."""
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        return [line.split()[4] for line in lines if line.split()[4].startswith(f"{self.root}/")]

    def size(self) -> int:
        """Return the bytes that the root takes on disk; a file with several names counts once."""
        seen: set[tuple[int, int]] = set()
        total = 0
        device = self.root.stat().st_dev
        for folder, folders, files in os.walk(self.root):
            for name in [*folders, *files]:
                with contextlib.suppress(FileNotFoundError):
                    status = os.lstat(os.path.join(folder, name))
                    key = (status.st_dev, status.st_ino)
                    if key not in seen and status.st_dev == device:
                        seen.add(key)
                        total += status.st_blocks * 512
        return total

    def delete(self) -> None:
        """Delete the root folder; raises MissingError when something is still mounted below it."""
        if self.mounts():
            mounts = " ".join(self.mounts())
            raise MissingError(f"still mounted below {self.root}, nothing is deleted: {mounts}")
        shutil.rmtree(self.root)


@contextlib.contextmanager
def connected(path: Path) -> Iterator[socket.socket]:
    """Hold a connection to a unix socket; raises OSError when nobody listens."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(5)
        link.connect(str(path))
        yield link
