"""Codes of the area `probe`: roles beside each other, views beside each other (contract, section 7)."""

from __future__ import annotations

from tic_manifest.model.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        name="PROCESS_DIVERGENCE",
        meaning="two roles of one delivery do not run on the same thing",
        remedy="give both roles the same, or declare the name under policy.roles.declared of the role",
        source="rules/image-verify.md, S37; field report R68; issue 5, role diff",
    ),
    Code(
        name="APPEARED_BETWEEN",
        meaning="a process loaded more between two looks at it",
        remedy="nothing to do where it is expected; code that comes after the warm-up is compared at the end",
        source="issue 5, snapshots; rules/probe.md, scenario 1",
    ),
    Code(
        name="ENV_VIEWS_DIFFER",
        meaning="a variable at exec, in Python and in the C library is not one and the same",
        remedy="set it before the process starts; what is read once at the start keeps its first value",
        source="rules/probe.md, 5.7; scenario 6",
    ),
    Code(
        name="VIEWS_DISAGREE",
        meaning="a process says one thing of itself and the kernel another",
        remedy="look at both values in the finding; one of the two views was changed",
        source="issue 5, two views of one process",
    ),
    Code(
        name="HOST_INJECTED",
        meaning="a worker executes a file of the host that the policy allows",
        remedy="nothing to do; compare its hash and version between the nodes that measure",
        source="rules/image-verify.md, S40 and C16",
    ),
    Code(
        name="COMPAT_DRIVER",
        meaning="the compat copy of the driver in the image is loaded instead of the host's driver",
        remedy="take the compat folder out of the search path, or set policy.compat_driver to note",
        source="rules/image-verify.md, S40; field report R55",
    ),
    Code(
        name="LIB_ABI",
        meaning="a library could not be loaded: a symbol that it needs is defined nowhere",
        remedy="build it against the libraries of this image, or install the version that it was built for",
        source="field reports R37, R53, R58",
    ),
    Code(
        name="LIB_SYMBOL_VERSION",
        meaning="a library could not be loaded: a symbol that it needs is there in another version only",
        remedy="install the version of the other library that the finding names",
        source="field report R52",
    ),
    Code(
        name="LIB_ORDER_DEPENDENT",
        meaning="a library would be another file had its user been loaded first",
        remedy="keep one of the two files in the image",
        source="field report R51",
    ),
)
