"""`np.einsum` of traced arrays: a product of two matrices if it is one, or sums of products."""

from __future__ import annotations

import re
from functools import reduce
from typing import Any

from rvm_pure.axes import built, lengths, transposed
from rvm_pure.combinators import recorder_of
from rvm_pure.recorder import refused
from rvm_pure.terms import Index, Term
from rvm_pure.traced import Traced, term_of


def einsum(subscripts: Any, *given: Any, **named: Any) -> Any:
    """Sums over the letters that the result lacks of the products of elements, as in NumPy."""
    text = subscripts.replace(" ", "") if isinstance(subscripts, str) else ""
    if named or not re.fullmatch(r"[A-Za-z]*(,[A-Za-z]*)*(->[A-Za-z]*)?", text):
        raise refused("`np.einsum` is traced with subscripts such as 'ij,jk->ik', and arrays")
    left, arrow, result = text.partition("->")
    letters = left.split(",")
    if not arrow:
        result = "".join(sorted(c for c in set(left) - {","} if left.count(c) == 1))
    recorder = recorder_of(*given)
    arrays = [Traced(recorder, recorder.typed(term_of(x))) for x in given]
    if len(arrays) != len(letters) or any(
        len(own) != x.ndim for own, x in zip(letters, arrays, strict=False)
    ):
        raise refused(f"the subscripts '{text}' are not one letter for each dimension")
    if not set(result) <= set(left) or len(set(result)) < len(result):
        raise refused(f"the subscripts '{text}' give a letter of the result twice, or none of it")
    if len(arrays) == 2:
        out = _product(letters, arrays, result)
        if out is not None:
            return out
    sizes: dict[str, Term] = {}
    for own, x in zip(letters, arrays, strict=True):
        sizes.update(zip(own, lengths(x), strict=True))
    summed = [c for c in dict.fromkeys(left) if c not in (*result, ",")]

    def element(at: dict[str, Term]) -> Any:
        one = [
            Traced(recorder, recorder.typed(Index(x.term, tuple(at[c] for c in own)))) if own else x
            for own, x in zip(letters, arrays, strict=True)
        ]
        return reduce(lambda a, b: a.apply("*", a, b), one)

    def total(rest: list[str], at: dict[str, Term]) -> Any:
        if not rest:
            return element(at)
        c, *more = rest
        rows = built(arrays[0], [sizes[c]], lambda ks: term_of(total(more, {**at, c: ks[0]})))
        return rows.sum()

    if not result:
        return total(summed, {})
    return built(
        arrays[0],
        [sizes[c] for c in result],
        lambda ks: term_of(total(summed, dict(zip(result, ks, strict=True)))),
    )


def _product(letters: list[str], arrays: list[Any], result: str) -> Any:
    """The product of two vectors or matrices with one letter in common, or None."""
    a, b = letters
    both = set(a) & set(b)
    rest = [c for c in a + b if c not in both]
    if len(both) != 1 or both & set(result) or sorted(rest) != sorted(result):
        return None
    if max(len(a), len(b)) > 2 or len(set(a)) < len(a) or len(set(b)) < len(b):
        return None
    (c,) = both
    x = arrays[0] if a[-1] == c else transposed(arrays[0])
    y = arrays[1] if b[0] == c else transposed(arrays[1])
    out = x @ y
    return out if "".join(rest) == result else transposed(out)
