"""What travels of every wheel that an image was installed from: its RECORD, and what scripts follow from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from tic_manifest.model.base import Sha256Hex, Value


class WheelRecord(Value):
    """One wheel by the sha256 that the lock or the build's receipt names it by.

    `record` is the text of its RECORD, `entry_points` that of its entry_points.txt ("" where it has none);
    `scripts` the text of those of its scripts whose first line an installer replaces, by path in the wheel.
    """

    file: Annotated[str, StringConstraints(max_length=512)]
    sha256: Sha256Hex
    record: str
    entry_points: str = ""
    scripts: dict[str, str] = {}


class WheelRecords(Value):
    """The wheels of one delivery, sorted by sha256, each once."""

    schema_: Literal["tic/wheel-records/v1"] = Field(alias="schema")
    wheels: tuple[WheelRecord, ...]
