"""What profiles and machine code show where a target is missed, by the target's key."""

from __future__ import annotations

NOTES: dict[str, str] = {}
