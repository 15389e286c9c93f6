"""Addresses that others wrote, as parts: what no URL can be is None, where the standard library raises."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urljoin, urlsplit


def split_url(text: str) -> SplitResult | None:
    """The parts of a URL; None where host or port can be none."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return None
    return parts


def join_url(base: str, text: str) -> str | None:
    """`text` as seen from `base`; None where the result is no URL."""
    try:
        joined = urljoin(base, text)
    except ValueError:
        return None
    return joined if split_url(joined) is not None else None


def is_loopback(host: str) -> bool:
    """Whether a host is a literal loopback address: a name could be made to mean another host."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
