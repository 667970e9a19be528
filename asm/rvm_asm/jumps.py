"""Pairing jumps: which `br` and which `cf` name each other."""

from __future__ import annotations

from rvm.program import Instr
from rvm_asm.messages import Reporter, did_you_mean
from rvm_asm.nodes import Word
from rvm_asm.scope import Scope
from rvm_asm.stats import Stat


class PendingJump:
    """A written jump whose partner is still a label, or is to be inferred."""

    __slots__ = ("at", "name", "partner", "partner_at", "scope", "stat")

    def __init__(self, at: int, name: str, partner: Word | None, stat: Stat, scope: Scope) -> None:
        self.at = at
        self.name = name
        self.partner = partner
        self.stat = stat
        self.scope = scope
        self.partner_at = -1


def pair(
    jumps: list[PendingJump],
    code: list[Instr],
    first: int,
    report: Reporter,
    closed: str,
    excused: set[str],
) -> bool:
    """Set `partner_at` of all jumps; False, with messages, where that fails.

    Every jump must find its partner among `jumps`.  `closed` says what they may not leave.
    """
    by_index = {j.at: j for j in jumps}
    fine = True
    for j in jumps:
        if j.partner is None:
            continue
        target = _target(j, j.partner, by_index, code, first, report, closed, excused)
        if target is None:
            fine = False
            continue
        j.partner_at = target.at
    for j in jumps:
        if j.partner is None and not _infer(j, jumps, report):
            fine = False
    return fine and _mutual(jumps, by_index, report)


def _target(
    j: PendingJump,
    label: Word,
    by_index: dict[int, PendingJump],
    code: list[Instr],
    first: int,
    report: Reporter,
    closed: str,
    excused: set[str],
) -> PendingJump | None:
    found = j.scope.labels.get(label.text)
    other = "cf" if j.name == "br" else "br"
    if found is None:
        if closed and label.text not in excused:
            report.about(
                label,
                "A064",
                f"`{label.text}` is not a label of {closed}, which a jump does not leave",
            )
        elif label.text not in excused:
            report.about(
                label,
                "A060",
                f"there is no label `{label.text}`",
                hint=did_you_mean(label.text, j.scope.labels),
            )
        return None
    index, word = found
    target = by_index.get(index)
    if target is not None and target.name == other:
        return target
    if closed and (index < first or index >= len(code)):
        report.about(label, "A064", f"a jump leaves {closed}")
        return None
    stands = f"`{code[index].op}`" if index < len(code) else "nothing"
    if target is None and index < len(code) and code[index].op in ("br", "cf"):
        stands = "a jump that has its partner"
    report.about(
        label,
        "A020",
        f"a `{j.name}` pairs with a `{other}`, but at `{label.text}` stands {stands}",
        also=((word.start, word.end, "the label is here"),),
        hint="a jump is two instructions that name each other, `br C, L` and `L: cf D, B`",
    )
    return None


def _infer(j: PendingJump, jumps: list[PendingJump], report: Reporter) -> bool:
    """A jump that names no partner belongs to the one that names it."""
    naming = [k for k in jumps if k.partner is not None and k.partner_at == j.at]
    if len(naming) == 1:
        j.partner_at = naming[0].at
        return True
    if not naming:
        report.about(
            j.stat,
            "A020",
            f"nothing pairs with this `{j.name}`",
            hint="name its partner's label, here or at the partner",
        )
    return bool(naming)


def _mutual(jumps: list[PendingJump], by_index: dict[int, PendingJump], report: Reporter) -> bool:
    fine = True
    for j in jumps:
        partner = by_index.get(j.partner_at)
        if partner is not None and partner.partner_at != j.at and partner.partner_at >= 0:
            fine = False
            elsewhere = by_index[partner.partner_at].stat
            report.about(
                j.stat,
                "A020",
                f"this `{j.name}` names a `{partner.name}` that pairs with another one",
                also=(
                    (partner.stat.start, partner.stat.end, "named here"),
                    (elsewhere.start, elsewhere.end, "paired with this"),
                ),
                hint="every branch needs a separate come-from",
            )
    return fine
