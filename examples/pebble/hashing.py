"""One-time passwords from a chain of hashes, given out from its end, with few links in memory.

    python examples/pebble/hashing.py
    python examples/pebble/hashing.py --links 1000000

Link i is the hash of link i - 1.  Whoever knows the last one can check the one before it, and
nobody can compute that but the owner of the first: so links are given out backwards, one a login or
one a message (S/KEY, TESLA).  The owner keeps some of them, and computes the others again.

The way back from the end is that of a gradient without adjoints, and Revolve's schedule is the
shortest for the links that are kept.  The pebbles of Jakobsson and of Coppersmith keep log2 n links
and hash log2(n)/2 times for each link given out, which is the same at every link; here it is less
on average, and more at some.

Sources: L. Lamport, "Password authentication with insecure communication" (1981); M. Jakobsson,
"Fractal hash sequence representation and traversal" (2002); D. Coppersmith and M. Jakobsson,
"Almost optimal hash sequence traversal" (2002).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from hashlib import sha256
from math import log2
from time import perf_counter
from typing import Any

from measuring import size, table

import rvm.pebble

SECRET = sha256(b"nobody knows this").digest()


def link(x: bytes) -> bytes:
    """The link after x."""
    return sha256(x).digest()


def passwords(links: int, **budget: Any) -> Any:
    """The links from the last to the secret: pairs of a number and a link."""
    return rvm.pebble.iterate(link, links, **budget).back(SECRET)


def checked(given: Iterator[tuple[int, bytes]]) -> int:
    """Check each link against the one before it, as a server does, which keeps one; how many."""
    _, known = next(given)
    count = 0
    for i, found in given:
        if link(found) != known:
            raise ValueError(f"link {i} is not the one that was promised")
        known, count = found, count + 1
    return count


def preimage(image: bytes, links: int, **budget: Any) -> tuple[int, bytes]:
    """The number and the value of the link whose hash is the given one, somewhere in the chain."""
    with passwords(links, **budget) as walk:
        for i, found in walk:
            if link(found) == image:
                return i, found
    raise ValueError("the chain has no such link")


def report(links: int) -> None:
    """Print what it takes to give out all links of a chain."""
    least = max(1, round(log2(links)))
    rows = []
    for kept in (least // 2, least, 4 * least, 20 * least):
        walk = passwords(links, pebbles=kept)
        began = perf_counter()
        count = checked(walk)
        seconds = perf_counter() - began
        assert count == links
        moves = walk.played.moves
        memory = size(kept * len(SECRET))
        rows.append([kept, memory, int(moves), moves / links, 1e6 * seconds / links])
    print(f"a chain of {links:,} links; all of them are {size(links * len(SECRET))}\n")
    print(table(["kept", "memory", "hashes", "for each link", "us for each link"], rows))
    print(f"\nfor comparison, log2(n)/2 = {log2(links) / 2:.1f} with {least} kept")
    i, found = preimage(link(link(link(SECRET))), min(links, 10_000), pebbles=least)
    print(f"link {i}, found from its hash: {found.hex()[:32]}...")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--links", type=int, default=50_000, help="of the chain (50000)")
    report(parser.parse_args().links)
