"""The agent and what a process loaded: files that change under it, preloads, imports, late libraries, secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from watched import CODE, build, mapped, observe


def test_code_that_is_executed_is_compared_with_the_file(tmp_path: Path) -> None:
    build(tmp_path, "plain", CODE % 1)
    build(tmp_path, "patched", CODE % 2)
    build(tmp_path, "replaced", CODE % 3)
    build(tmp_path, "replaced_new", CODE % 4)
    build(tmp_path, "really (deleted)", CODE % 5)
    report = observe(
        tmp_path,
        """
        here = sys.argv[1]
        libs = {n: ctypes.CDLL(f"{here}/{n}.so") for n in ("plain", "patched", "replaced", "really (deleted)")}
        address = ctypes.cast(libs["patched"].answer, ctypes.c_void_p).value
        c = ctypes.CDLL(None); page = address & ~4095
        assert c.mprotect(ctypes.c_void_p(page), 4096, 7) == 0
        ctypes.memset(address, 0xCC, 1)
        os.rename(f"{here}/replaced_new.so", f"{here}/replaced.so")
        ready()
        """,
    )
    assert mapped(report, "/plain.so")["executing"]["verdict"] == "same"
    assert mapped(report, "/patched.so")["executing"]["verdict"] == "differs"
    replaced = mapped(report, "/replaced.so")
    assert (replaced["identity"], replaced["row"]["deleted"]) == ("deleted", True)
    assert replaced["executing"]["verdict"] in ("same", "unverifiable")
    real = mapped(report, "/really (deleted).so")
    assert (real["identity"], real["row"]["deleted"]) == ("same", False)


def test_a_name_that_ends_in_deleted_and_one_with_a_newline(tmp_path: Path) -> None:
    plain = build(tmp_path, "x", CODE % 1)
    odd = [tmp_path / "libz.so (deleted)", tmp_path / "new\nline.so", tmp_path / "sp ace.so"]
    for path in odd:
        path.write_bytes(plain.read_bytes())
    report = observe(
        tmp_path,
        """
        for n in ("libz.so (deleted)", "new\\nline.so", "sp ace.so"):
            ctypes.CDLL(sys.argv[1] + "/" + n)
        ready()
        """,
    )
    for path in odd:
        row = mapped(report, "/" + path.name)
        assert (row["identity"], row["row"]["deleted"], row["executing"]["verdict"]) == (
            "same",
            False,
            "same",
        )


def test_the_build_id_comes_from_the_kernel_and_agrees(tmp_path: Path) -> None:
    build(tmp_path, "plain", CODE % 1, "-Wl,--build-id=sha1")
    row = mapped(observe(tmp_path, 'ctypes.CDLL(sys.argv[1] + "/plain.so"); ready()'), "/plain.so")
    if row["kernel"]["build_id"] is None:
        pytest.skip(f"PROCMAP_QUERY does not answer here: {row['kernel']['reason']}")
    assert row["kernel"]["build_id"] == row["row"]["elf"]["build_id"]


def test_a_preloaded_library_stays_visible_after_its_variable_is_gone(tmp_path: Path) -> None:
    library = build(tmp_path, "pre", CODE % 9)
    report = observe(
        tmp_path,
        'os.environ.pop("LD_PRELOAD"); ready()',
        env={"LD_PRELOAD": str(library), "SOME_API_TOKEN": "hunter2", "UNKNOWN": "hunter3"},
    )
    process = report["snapshots"][0]["processes"][0]
    values = {e["name"]: e.get("value") for e in process["environ"]}
    assert values["LD_PRELOAD"] == str(library)
    assert "LD_PRELOAD" not in {e["name"] for e in report["inside"][0]["environ"]}
    assert mapped(report, "/pre.so")["executing"]["verdict"] == "same"
    assert "hunter" not in (tmp_path / "out" / "probe.json").read_text()


def test_an_import_error_is_found_though_no_line_was_logged(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "demo").mkdir(parents=True)
    gone = build(tmp_path, "libgone", CODE % 1, "-Wl,-soname,libgone.so.1")
    extension = build(
        tmp_path,
        "ext",
        "int answer(void); int use(void) { return answer(); }",
        f"-L{tmp_path}",
        "-l:libgone.so",
    )
    extension.rename(site / "demo" / "_C.abi3.so")
    gone.unlink()
    (site / "demo" / "__init__.py").write_text("from demo import platform\n")
    (site / "demo" / "platform.py").write_text(
        "def kernels():\n    try:\n        import demo._C\n    except ImportError:\n        pass\nkernels()\n"
    )
    info = site / "demo-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: demo\nVersion: 1.0\n")
    (info / "RECORD").write_text("demo/__init__.py,,\ndemo/platform.py,,\ndemo/_C.abi3.so,,\n")
    report = observe(tmp_path, "sys.path.insert(0, sys.argv[1] + '/site'); import demo; ready()")
    (found,) = [b for b in report["imports"][0]["broken"] if b["module"] == "demo._C"]
    assert found["missing"] == [{"library": "libgone.so.1", "needed_by": str(site / "demo" / "_C.abi3.so")}]
    assert (found["importer"], found["line"], found["where"]) == ("demo.platform", 3, "function")
    assert report["imports"][0]["unloadable"][0]["tried"] is True
    assert report["worker"]["stderr"]["tail"] == []


def test_an_edited_module_differs_from_its_record(tmp_path: Path) -> None:
    import base64
    import hashlib

    site = tmp_path / "site"
    info = site / "demo-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Name: demo\nVersion: 1.0\n")
    recorded = base64.urlsafe_b64encode(hashlib.sha256(b"x = 1\n").digest()).rstrip(b"=").decode()
    (info / "RECORD").write_text(f"demo.py,sha256={recorded},6\nsame.py,sha256={recorded},6\n")
    (site / "demo.py").write_text("x = 2\n")
    (site / "same.py").write_text("x = 1\n")
    (site / "extra.py").write_text("x = 1\n")
    (site / "zz_dev.pth").write_text("import sys\n/somewhere\n")
    report = observe(tmp_path, "sys.path.insert(0, sys.argv[1] + '/site'); import demo, same, extra; ready()")
    rows = {m["name"]: m for m in report["inside"][0]["modules"]}
    assert [o["record"] for o in rows["demo"]["owners"]] == ["differs"]
    assert [o["record"] for o in rows["same"]["owners"]] == ["match"]
    assert rows["extra"]["owners"] == []
    (pth,) = [p for p in report["pth"] if p["path"].endswith("zz_dev.pth")]
    assert (pth["code_lines"], pth["added_paths"], pth["owners"]) == (["import sys"], ["/somewhere"], [])


def test_what_is_mapped_after_the_mark_is_reported_too(tmp_path: Path) -> None:
    build(tmp_path, "late", CODE % 1)
    report = observe(tmp_path, 'ready(); ctypes.CDLL(sys.argv[1] + "/late.so"); time.sleep(4.5)')
    (late,) = [r for r in report["appeared"] if report["files"][r["file"]]["path"].endswith("/late.so")]
    assert report["files"][late["file"]]["sha256"]
    assert late["seconds"] > report["worker"]["marks"]["ready"]


def test_two_marks_give_two_snapshots(tmp_path: Path) -> None:
    build(tmp_path, "late", CODE % 1)
    report = observe(
        tmp_path,
        """
        ready()
        ctypes.CDLL(sys.argv[1] + "/late.so")
        import colorsys
        agent.inside_snapshot(out, "end")
        assert agent.wait_at_mark(out, "done", 60)
        """,
    )
    assert [s["label"] for s in report["snapshots"]] == ["ready", "done"]
    assert mapped(report, "/late.so", 1)["executing"]["verdict"] == "same"
    assert [v["label"] for v in report["inside"]] == ["ready", "end"]
    assert "colorsys" in report["inside"][1]["modules_appeared"]


def test_a_first_view_gives_a_snapshot_of_the_start(tmp_path: Path) -> None:
    build(tmp_path, "late", CODE % 1)
    report = observe(
        tmp_path,
        """
        agent.inside_snapshot(out, "start")
        time.sleep(3)
        ctypes.CDLL(sys.argv[1] + "/late.so")
        ready()
        """,
    )
    start, ready = report["snapshots"]
    assert [start["label"], ready["label"]] == ["start", "ready"]
    paths = [
        {report["files"][r["file"]]["path"] for r in s["processes"][0]["mapped"]} for s in (start, ready)
    ]
    assert {p.rpartition("/")[2] for p in paths[1] - paths[0]} == {"late.so"}
    assert start["processes"][0]["holder"] is None


def test_libc_and_python_each_have_an_environment_and_symbols_are_bound(tmp_path: Path) -> None:
    body = """
        libc = ctypes.CDLL(None)
        libc.setenv(b"OMP_NUM_THREADS", b"3", 1)
        libc.setenv(b"SOME_API_KEY", b"canary-1", 1)
        os.environ["MY_TOKEN"] = "canary-2"
        os.environ["NOT_LISTED"] = "canary-3"
        ready()
        """
    report = observe(tmp_path, body)
    (view,) = report["inside"]
    python, libc = ({row["name"]: row for row in view[key]} for key in ("environ", "environ_libc"))
    assert "OMP_NUM_THREADS" not in python and libc["OMP_NUM_THREADS"]["value"] == "3"
    assert libc["SOME_API_KEY"] == {"name": "SOME_API_KEY", "secret": True}
    assert python["MY_TOKEN"] == libc["MY_TOKEN"] == {"name": "MY_TOKEN", "secret": True}
    assert set(libc["NOT_LISTED"]) == {"name", "sha256"}
    assert "canary" not in json.dumps(report["inside"])
    bound = {row["name"]: row["object"] for row in view["symbols"]}
    assert "libc" in bound["malloc"] and bound["ncclGetVersion"] is None


def test_objects_that_were_unloaded_are_counted(tmp_path: Path) -> None:
    build(tmp_path, "brief", CODE % 1)
    report = observe(
        tmp_path,
        """
        import _ctypes
        lib = ctypes.CDLL(sys.argv[1] + "/brief.so"); _ctypes.dlclose(lib._handle)
        ready()
        """,
    )
    ledger = report["inside"][0]["link_map"]
    assert ledger["subs"] >= 1 and ledger["adds"] - ledger["subs"] == ledger["count"]


def test_sixty_thousand_maps_are_read_in_bounded_time(tmp_path: Path) -> None:
    report = observe(
        tmp_path,
        """
        f = open(sys.argv[1] + "/worker.py", "rb")
        kept = []
        for i in range(60000):
            prot = mmap.PROT_READ if i % 2 else mmap.PROT_READ | mmap.PROT_WRITE
            kept.append(mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot))
        ready()
        """,
    )
    process = report["snapshots"][0]["processes"][0]
    assert process["maps"]["lines"] > 50_000 and process["maps"]["malformed"] == 0
    assert report["snapshots"][0]["took"] < 30


def test_a_broken_inside_view_is_a_note(tmp_path: Path) -> None:
    report = observe(
        tmp_path,
        """
        open(out + "/inside-evil-1.json", "w").write('{"schema": "tic/probe-agent/v1", "modules": 3}')
        open(out + "/inside-evil-2.json", "w").write("[" * 100000)
        os.mkfifo(out + "/inside-evil-3.json")
        ready()
        """,
    )
    assert len(report["notes"]) == 3
    assert [v["label"] for v in report["inside"]] == ["ready"]


def test_hostile_modules_are_not_asked(tmp_path: Path) -> None:
    report = observe(
        tmp_path,
        """
        import types
        class Lazy(types.ModuleType):
            def __getattr__(self, name):
                os._exit(99)
        sys.modules["lazy"] = Lazy("lazy")
        class Liar:
            @property
            def __class__(self):
                raise RuntimeError("asked")
            def __getattr__(self, name):
                raise SystemExit(98)
        sys.modules["liar"] = Liar()
        sys.modules["nothing"] = None
        fake = types.ModuleType("fake"); fake.__file__ = "/no/such/file.py"; sys.modules["fake"] = fake
        class Hook:
            def find_spec(self, *args):
                raise RuntimeError("hook")
        sys.meta_path.insert(0, Hook())
        ready()
        """,
    )
    rows = {m["name"]: m for m in report["inside"][0]["modules"]}
    assert {"lazy", "liar", "nothing"} <= set(rows)
    assert (rows["fake"]["on_disk"], rows["fake"]["owners"]) == (False, [])
    assert "sys" not in report["inside"][0]["agent_effect"]["modules_loaded"]
    assert "__main__.Hook" in report["inside"][0]["python"]["meta_path"]
