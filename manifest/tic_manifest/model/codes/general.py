"""Codes that every command may give: bad command lines and files, and what is not there."""

from __future__ import annotations

from tic_manifest.model.codes import Code

CODES = (
    Code(
        name="USAGE",
        meaning="the command line is wrong",
        remedy="run the command with --help",
        source="contract, section 2",
    ),
    Code(
        name="RECIPE",
        meaning="a recipe, or a record that a person writes, is wrong",
        remedy="mend the line that the message names",
        source="contract, section 5",
    ),
    Code(
        name="POLICY",
        meaning="a policy file is wrong",
        remedy="mend the line that the message names; tic-manifest verify --show-policy prints one",
        source="contract, section 3",
    ),
    Code(
        name="TOOL_MISSING",
        meaning="a tool that this command needs is not installed or too old",
        remedy="install the tool that the message names",
        source="contract, section 2",
    ),
    Code(
        name="ENGINE_MISSING",
        meaning="no container engine with BuildKit 0.13 or newer answers",
        remedy="run scripts/engine up, or start your engine and set DOCKER_HOST",
        source="contract, section 2",
    ),
    Code(
        name="ENGINE_FAILED",
        meaning="the container engine answered with an error",
        remedy="read the log lines in the message",
        source="contract, section 2",
    ),
    Code(
        name="DISK_FULL",
        meaning="there is less free disk than the command needs",
        remedy="free the number of bytes that the message names, or run tic-manifest clean",
        source="rules/image-verify.md AC-19",
    ),
    Code(
        name="NETWORK",
        meaning="a host could not be reached",
        remedy="check the network and run the same command again",
        source="contract, section 2",
    ),
    Code(
        name="RIGHTS",
        meaning="a right that this command needs is missing",
        remedy="run as a user that has the right that the message names",
        source="contract, section 2",
    ),
    Code(
        name="WORK_BUSY",
        meaning="another tic-manifest writes to this work folder",
        remedy="wait for the process that the message names, or use another --work",
        source="contract, section 3",
    ),
    Code(
        name="STAGE_MISSING",
        meaning="an earlier stage has left no receipt for this lock",
        remedy="run the stage that the message names first",
        source="contract, section 3",
    ),
    Code(
        name="LOCK_STALE",
        meaning="the recipe, Dockerfile, agent or schema changed since the lock was made",
        remedy="run tic-manifest lock again",
        source="contract, section 3",
    ),
    Code(
        name="UNPINNED",
        meaning="an input is named by something that can move",
        remedy="name it by its full commit, digest or sha256",
        source="rules/image-verify.md AC-3, S27",
    ),
    Code(
        name="RESOLVE",
        meaning="the requirements of the recipe have no solution on the indexes that answer",
        remedy="read the resolver's words in the message",
        source="contract, section 3",
    ),
)
