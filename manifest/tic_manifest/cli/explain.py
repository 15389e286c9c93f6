"""`tic-manifest explain CODE | --list`: what a finding code says and what to do."""

from __future__ import annotations

import difflib

import click

from tic_manifest.errors import PersonError
from tic_manifest.model.codes import lookup, registry


@click.command("explain")
@click.argument("code", required=False)
@click.option("--list", "everything", is_flag=True, help="print every code and what it says")
def command(code: str | None, everything: bool) -> int:
    """Say what CODE means, what to do, and which rule it comes from.

    CODE is a finding code as reports print it, a variant after a slash included.
    """
    from tic_manifest.render import code_page

    if everything == bool(code):
        raise click.UsageError("give a code, or --list")
    if code:
        click.echo(_explained(code), nl=False)
    else:
        click.echo(code_page.listing(registry()), nl=False)
    return 0


def _explained(asked: str) -> str:
    from tic_manifest.render import code_page

    name, _, variant = asked.strip().partition("/")
    try:
        return code_page.text(lookup(f"{name.upper()}/{variant}" if variant else name.upper()), variant)
    except KeyError as error:
        raise _unknown(asked) from error


def _unknown(asked: str) -> PersonError:
    known = [f"{name}/{one}" for name, code in registry().items() for one in code.variants]
    near = difflib.get_close_matches(asked.upper(), [*registry(), *known], n=3)
    remedy = f"try {' or '.join(near)}" if near else "tic-manifest explain --list prints every code"
    return PersonError("USAGE", "no finding has this code", where=asked, remedy=remedy)
