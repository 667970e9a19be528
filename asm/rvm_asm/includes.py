"""Included files: where they are searched, which may be read, and how much of them.

A policy says what an `include` may read: "any" file, those "below" the folder of the text and the
folders of the include path, or "none".  In any case only regular files are read, and depth, number
and size have limits.  Forbidden files are not opened, and it is not revealed whether they exist.
The library's files, `std/…`, may be included under every policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from rvm.codes.words import instead
from rvm.faults import UsageError
from rvm.host.read import IrregularError, open_regular

_Policy = Literal["any", "below", "none"]

MAX_DEPTH = 64
"""The largest depth of includes."""
MAX_FILES = 1000
"""The largest number of files in a program."""
MAX_BYTES = 64 << 20
"""The largest total size of a program's texts in bytes."""


STD = Path(__file__).parent / "std"
"""The library's files."""
TOO_LARGE = f"the texts of the program have more than {MAX_BYTES >> 20} MiB"


class Refused(Exception):
    """An include that can't be followed: its code, the message, notes and a hint."""

    def __init__(self, code: str, message: str, hint: str = "", *notes: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.notes = notes


@cache
def library() -> tuple[str, ...]:
    """The names by which the library's files are included: `std/fold.rasm`."""
    return tuple(sorted(f"std/{p.name}" for p in STD.glob("*.rasm")))


def policy_named(word: str) -> _Policy:
    """The policy of that name; UsageError U004 if there is none."""
    for known in get_args(_Policy):
        if word == known:
            return known  # type: ignore[no-any-return]
    raise UsageError(
        "U004",
        f"includes={word!r} is not a policy",
        hint=instead(word, get_args(_Policy), 'one of "any", "below" and "none"'),
    )


class Includes:
    """The files that an assembly has read, and those it may still read."""

    def __init__(self, policy: _Policy, folders: Sequence[Path], path: Path | None) -> None:
        self.policy = policy
        self.folders = tuple(folders)
        roots = [*folders] if path is None else [path.parent, *folders]
        self._roots = [r for f in roots if (r := _resolved(f)) is not None]
        self._read: set[Path] = set()
        self._depth = 0
        self._files = 1
        self._bytes = 0

    def enter(self, path: Path | None, size: int) -> None:
        """Count a text in, which is being read from here to `leave`."""
        self._depth += 1
        self._bytes += size
        if path is not None and (found := _resolved(path)) is not None:
            self._read.add(found)

    def leave(self) -> None:
        self._depth -= 1

    def find(self, name: str, beside: Path | None) -> tuple[Path | None, str] | None:
        """The path and text of an included file, None if it has been read already; or Refused.

        `beside` is the file that includes it.  The library's files have no path.
        """
        if name in library():
            if STD.parent / name in self._read:
                return None
            self._read.add(STD.parent / name)
            self._files += 1
            return None, (STD.parent / name).read_text(encoding="utf-8")
        if self.policy == "none":
            raise Refused(
                "A069",
                "this text may not include files",
                'includes="below" allows those of its folder, includes="any" every file',
            )
        folders = [*([] if beside is None else [beside.parent]), *self.folders]
        if Path(name).is_absolute():
            folders = folders[:1] or [Path()]
        outside = False
        for folder in folders:
            target = folder / name
            found = _resolved(target)
            if found is None:
                continue
            if self.policy == "below" and not any(found.is_relative_to(r) for r in self._roots):
                outside = True
                continue
            if found in self._read:
                return None
            data = self._contents(found, name)
            if data is None:
                continue
            self._files += 1
            try:
                return target, data.decode("utf-8-sig")
            except UnicodeDecodeError:
                raise Refused("A012", f"the file {name!r} is not UTF-8 text") from None
        if outside:
            raise Refused(
                "A069",
                f"the file {name!r} is not below the folder of the text",
                'includes="any" allows every file',
            )
        looked = ", ".join(str(f) for f in folders) or "nowhere: a text alone has no folder"
        hint = "paths are relative to the including file, then to the include path"
        if name.startswith("std/"):
            hint = f"the library has {', '.join(library())}"
        raise Refused("A012", f"the file {name!r} can't be read", hint, f"looked in {looked}")

    def _contents(self, path: Path, name: str) -> bytes | None:
        """The bytes of a regular file; None if it is not there."""
        if self._depth >= MAX_DEPTH:
            raise Refused("A046", f"includes nest deeper than {MAX_DEPTH} levels")
        if self._files >= MAX_FILES:
            raise Refused("A046", f"the program consists of more than {MAX_FILES} files")
        room = MAX_BYTES - self._bytes
        try:
            # A link put there by now is not followed.
            with open_regular(path) as file:
                data = file.read(room + 1)
        except IrregularError:
            raise Refused("A012", f"{name!r} is not a regular file") from None
        except OSError:
            return None
        if data is None or len(data) > room:
            raise Refused("A046", TOO_LARGE)
        return data


def _resolved(path: Path) -> Path | None:
    """The target of a path with links resolved; None if it does not exist."""
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):
        return None
