"""Codes of the area `probe` (contract, section 7)."""

from __future__ import annotations

from tic_manifest.model.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        name="WORKER_EXIT",
        meaning="a worker died, hung, or left no output",
        remedy="read its last log lines in the finding, mend the worker and run the same command again",
        source="issue 2, bad input; contract, section 2",
    ),
    Code(
        name="LEDGER_INCOMPLETE",
        meaning="the probe says that it could not see everything that was loaded",
        remedy="remove what the finding names and probe again; what was not seen is not judged",
        source="rules/probe.md, 5.3; scenarios 1, 2",
    ),
    Code(
        name="MAPPED_NOT_DISK",
        meaning="the code that executes is not the code in the file",
        remedy="do not change files under a running worker; start it again in the clean image",
        source="rules/probe.md, finding 1; scenarios 10, 11",
    ),
    Code(
        name="MAPPED_DELETED",
        meaning="a process executes a file that is no longer there under its name",
        remedy="do not install into a running container; start the worker again in the clean image",
        source="rules/probe.md, scenario 8",
    ),
    Code(
        name="MOUNT_COVERS_SOURCE",
        meaning="a mount lies over code that the image ships, so that other code runs",
        remedy="run the image with nothing mounted but inputs and an output folder",
        source="rules/probe.md, scenarios 11, 17; field report R42",
    ),
    Code(
        name="PKG_STILL_EDITABLE",
        meaning="a package is installed as a pointer to a source folder, not as files of the image",
        remedy="install the wheel that was built from the head",
        source="rules/probe.md, scenario 21",
    ),
    Code(
        name="PKG_SILENT_FALLBACK",
        meaning="an import failed, the failure was swallowed, and the program went another way",
        remedy="add what the finding names as missing to the image, or take the package out",
        source="field reports R49, R75; real-inputs.md: libnuma1",
    ),
    Code(
        name="PTH_UNOWNED",
        meaning="a .pth file that no package ships changes how Python finds code",
        remedy="remove it from the image, or ship it in a wheel",
        source="rules/probe.md, scenario 27",
    ),
    Code(
        name="PRELOAD",
        meaning="a library is forced into every process before its own libraries",
        remedy="unset LD_PRELOAD and remove /etc/ld.so.preload, or ship the library and declare it",
        source="rules/probe.md, scenarios 6, 7",
    ),
    Code(
        name="LIB_DUP",
        meaning="one process maps two files that answer to the same library name",
        remedy="keep one of the two in the image",
        source="rules/probe.md, scenario 4; field report R50",
    ),
    Code(
        name="LIB_FAMILY_MIXED",
        meaning="libraries of one family come from different places or versions",
        remedy="install the family from one source",
        source="field reports R50, R52, R54",
    ),
    Code(
        name="LIB_CUDA_MAJOR_MIX",
        meaning="one process maps CUDA libraries of two major versions",
        remedy="install every CUDA package for one major version",
        source="rules/probe.md, scenario 4; field report R56",
    ),
    Code(
        name="JIT_REBUILT_AT_RUN",
        meaning="code was compiled while the worker ran",
        remedy="nothing to do where the policy allows it; else ship the artifacts in the image",
        source="rules/probe.md, scenario 31; field report R65",
    ),
    Code(
        name="JIT_FOREIGN",
        meaning="compiled code lies in, or was made from, a place outside this worker's caches",
        remedy="delete the cache and let this image fill it, or ship one that was filled in place",
        source="rules/probe.md, finding 6; scenario 32",
    ),
    Code(
        name="JIT_MISMATCH",
        meaning="compiled code is not what its own recorded input compiles to",
        remedy="delete the entry; look for an override, another compiler or a patched compiler stage",
        source="rules/probe.md, finding 5; scenario 33",
    ),
    Code(
        name="JIT_STALE",
        meaning="the source changed after the compiled code that is loaded was made",
        remedy="delete the artifact and start the worker again",
        source="rules/probe.md, section 2: cpp_extension, FlashInfer, numba",
    ),
    Code(
        name="EDIT_NO_EFFECT",
        meaning="a shipped source was edited, and the code that is loaded was made without the edit",
        remedy="build the wheel again from the edited source, or remove what was compiled ahead of time",
        source="rules/probe.md, section 5.6; scenario 35",
    ),
    Code(
        name="PROCESS_GONE",
        meaning="there is no running process or container of that name",
        remedy="name a process or container that runs on this machine",
        source="issue 5: `--pid`, `--container`",
    ),
    Code(
        name="PROCESS_DENIED",
        meaning="the process may not be read by this user",
        remedy="run as the user and group of the process, or as root",
        source="rules/probe.md, section 4: permissions",
    ),
    Code(
        name="PROBE_AGENT_MISSING",
        meaning="the file of the probe agent is not where it was looked for",
        remedy="run in the project's checkout, or name the file by --agent",
        source="issue 5: one file copied to a node",
    ),
    Code(
        name="MAPPED_CHANGED_SINCE",
        meaning="a file whose code executes was written after the process started",
        remedy="do not change files under a running worker; start it again in the clean image",
        source="rules/probe.md, scenario 9",
    ),
    Code(
        name="PKG_PATH_SHADOW",
        meaning="a module comes from a folder of the search path that lies before the installed package",
        remedy="take the folder out of PYTHONPATH and sys.path",
        source="rules/probe.md, scenario 19; field reports R43, R45",
    ),
    Code(
        name="PKG_CWD_SHADOW",
        meaning="a module comes from the working folder instead of the installed package",
        remedy="start the worker in an empty folder, or with python -P",
        source="rules/probe.md, scenario 19",
    ),
    Code(
        name="PKG_NAMESPACE_SHADOW",
        meaning="two folders of a namespace package hold a module of one name",
        remedy="keep one of the two in the image",
        source="rules/probe.md, scenario 26",
    ),
    Code(
        name="RAY_WORKING_DIR",
        meaning="code comes from a folder that Ray put before the shipped packages",
        remedy="submit the job without working_dir and py_modules",
        source="rules/probe.md, scenario 20; field report R45",
    ),
    Code(
        name="CODE_NOT_SOURCE",
        meaning="the byte code that runs is not that of the source beside it",
        remedy="delete the __pycache__ folder, or install the wheel again",
        source="rules/probe.md, finding 10; scenario 24",
    ),
    Code(
        name="CODE_PATCHED",
        meaning="a name of a loaded module holds code from elsewhere, put there while the process ran",
        remedy="bring the change into the package's own pull request, or ship the file that makes it",
        source="rules/probe.md, finding 10; issue 5",
    ),
    Code(
        name="OP_OVERRIDE",
        meaning="an operator of torch runs a kernel that Python code registered over the built-in one",
        remedy="take the registration out, or ship the file that makes it in a package of the image",
        source="rules/probe.md, scenario 30",
    ),
)
