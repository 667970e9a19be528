"""Reading a Janus text: its procedures, in one of the two dialects."""

from __future__ import annotations

from collections.abc import Collection

from rvm_asm.cursor import Bad
from rvm_asm.lexer import END, NAME
from rvm_asm.nodes import Declared, Ref, Word
from rvm_asm.stats import Func, Stat

from rvm.faults import Diagnostic
from rvm_janus.declarations import Initial
from rvm_janus.expressions import TYPE_WORDS
from rvm_janus.messages import ELSEWHERE
from rvm_janus.names import Procedure, Variable, plain_name
from rvm_janus.statements import StatementParser
from rvm_janus.values import Value, literal, wrapped


class ProgramParser(StatementParser):
    """Reads the procedures of a file."""

    def functions(self, *, whole: bool) -> list[Func]:
        """The procedures as functions of the assembly language; the entry comes first.

        What cannot be read is reported.  Unless the text is to be read as a whole, procedures that
        the entry does not reach are left out, with what is wrong in them.
        """
        found: list[tuple[Procedure, Func]] = []
        faults: dict[str, list[Diagnostic]] = {}
        try:
            shared = self._globals() if self.classic else []
        except Bad:
            return []
        while self.kinds[self.i] != END:
            before, first = len(self.report.found), self.i
            try:
                if not self.at_word("procedure"):
                    hint = "a procedure is `procedure name`, and what it does"
                    if self.texts[self.i] in ELSEWHERE:
                        hint = ""
                    elif not self.classic and self.kinds[self.i] == NAME and not found:
                        hint = (
                            "in the classic dialect variables are declared before the procedures, "
                            "after whose names there are no brackets; here `main` declares them"
                        )
                    self.fail("`procedure`", hint)
                found.append(self._procedure(shared))
            except Bad:
                self._recover(first)
            if self.report.found[before:]:
                faults[self.procedure.word.text] = self.report.found[before:]
        self._told_once(found)
        if not whole:
            kept = self._reached(found, faults)
            found = [(p, f) for p, f in found if p.word.text in kept]
            syntax = ("A001", "A002", "A046")
            self.report.found = [
                d
                for d in self.report.found
                if d.code in (*syntax, "A006") or any(d in faults.get(name, ()) for name in kept)
            ]
        if self.report.failed:
            return []
        by_name = {p.word.text: p for p, _ in found}
        if self.classic:
            self._pass_globals(found, by_name)
        else:
            self._join(by_name)
        self.elements.settle(self.word_type)
        entry = self._entry(found)
        return sorted((f for _, f in found), key=lambda f: f.name.text != entry)

    def _told_once(self, found: list[tuple[Procedure, Func]]) -> None:
        """Report duplicate procedures."""
        seen: dict[str, Word] = {}
        for p, _ in found:
            first = seen.setdefault(p.word.text, p.word)
            if first is not p.word:
                self.twice(p.word, first)

    def _recover(self, first: int) -> None:
        """Continue at the next procedure after token `first`."""
        self.depth = self.level = 0
        self.in_length, self.arms = False, 0
        self.i += self.i == first
        while self.kinds[self.i] != END and not self.at_word("procedure"):
            self.i += 1

    def _reached(self, found: list[tuple[Procedure, Func]], faults: Collection[str]) -> set[str]:
        """The names of procedures that the entry reaches, those with faults among them."""
        by_name = {p.word.text: p for p, _ in found}
        entry = "main" if "main" in faults else self._entry(found).strip("`")
        todo, seen = [entry], set[str]()
        while todo:
            name = todo.pop()
            if name not in seen and (name in by_name or name in faults):
                seen.add(name)
                todo += [c.callee.text for c in by_name[name].calls] if name in by_name else []
        return seen

    def _entry(self, found: list[tuple[Procedure, Func]]) -> str:
        """The procedure to begin with: `main`, else one that is called so, else one uncalled."""
        names = [p.word.text for p, _ in found]
        called = {c.callee.text for p, _ in found for c in p.calls}
        likely: list[str] = [n for n in ("main", "main_fwd") if n in names]
        likely += [p.word.text for p, _ in found if p.calls and p.word.text not in called]
        return plain_name([*likely, *names, ""][0])

    # The dialect of jana: parameters.

    def _procedure(self, shared: list[Variable]) -> tuple[Procedure, Func]:
        start = self.starts[self.i]
        self.i += 1
        word = self.identifier("the procedure's name")
        p = self.procedure = Procedure(word)
        body: list[Stat] = []
        if self.classic:
            p.names = {v.word.text: v for v in shared}
        else:
            self.expect("(")
            if word.text != "main":
                self._parameters(p)
            elif self.kinds[self.i] != ")":
                self.fail("`)`", "`main` has no parameters; it declares its variables")
            self.expect(")")
            if word.text == "main":
                body = self._main(p)
        end = self.last_end()
        if body and (self.kinds[self.i] == END or self.at_word("procedure")):
            return p, self._func(p, body, start, end)
        return p, self._func(p, body + self.statements(), start, end)

    def _func(self, p: Procedure, body: list[Stat], start: int, end: int) -> Func:
        name = Word(plain_name(p.word.text), p.word.start, p.word.end)
        return Func(name, [], p.params, body, start, end)

    def _declare(self, p: Procedure, v: Variable, lengths: list[Value | None], zero: bool) -> None:
        ref = self.type_ref(v, lengths)
        word = v.word
        p.params.append(
            Declared(plain_name(word.text), ref, word.start, word.end, "", zero and not v.is_stack)
        )
        p.variables.append(v)

    def _parameters(self, p: Procedure) -> None:
        while self.kinds[self.i] != ")":
            v, lengths, _ = self._head()
            # A length that is not a literal is only a comment.
            known = [n if n is not None and n.is_literal else None for n in lengths]
            v.is_open = lengths == [None]
            self._declare(p, self.enter(v), known, False)
            if not self.accept(","):
                return

    def _head(
        self, like: Variable | None = None
    ) -> tuple[Variable, list[Value | None], Initial | None]:
        constant = self.accept_word("constant")
        if not constant:
            self.accept_word("ancilla")
        v, lengths, initial = self.declared(like)
        v.constant = constant or (like is not None and like.constant)
        return v, lengths, initial

    def _main(self, p: Procedure) -> list[Stat]:
        """The variables of `main`, which are its parameters here and begin as zero."""
        body: list[Stat] = []
        self.known = {}
        like: Variable | None = None
        while like is not None or self._at_declaration():
            first, start = self.i, self.starts[self.i]
            v, lengths, initial = self._head(like)
            if v.rank > 0:
                sizes = self.sizes(v, lengths)
                if not all(n is not None and n.is_literal for n in sizes):
                    self._wrong(f"the length of `{v.word.text}` is not a constant", v.word)
                lengths = sizes
            self._declare(p, self.enter(v), lengths, True)
            if initial is not None:
                body += self.filled("add", v, initial, start, self.last_end())
            if v.rank == 0:
                self._know(v, first, initial)
            like = v if self.accept(",") else None
        self.known = {}
        return body

    def _know(self, v: Variable, first: int, initial: Initial | None) -> None:
        """Record the initial value of a number, on which lengths after it may depend."""
        value = literal(0, 0, 0)
        if initial is not None:
            last, self.i = self.i, self.kinds.index("=", first) + 1
            self.in_length = True
            value = self.expression()
            self.in_length = False
            self.i = last
        if value.is_literal:
            self.known[v.word.text] = wrapped(value.number, v.type)

    def _at_declaration(self) -> bool:
        i = self.i + (self.texts[self.i] in ("ancilla", "constant"))
        return self.kinds[i] == NAME and self.texts[i] in TYPE_WORDS

    def _join(self, by_name: dict[str, Procedure]) -> None:
        """Stacks that are passed are of one type with the parameters, arrays of one rank."""
        pairs = [
            (callee.variables[k], given)
            for p in by_name.values()
            for call in p.calls
            if (callee := by_name.get(call.callee.text)) is not None
            for k, given in call.whole.items()
            if k < len(callee.variables)
        ]
        for parameter, given in pairs:
            if parameter.is_stack and given.is_stack:
                self.elements.join(parameter, given)
        changed = True
        while changed:
            changed = False
            for a, b in (x for pair in pairs for x in (pair, pair[::-1])):
                if a.is_open and a.rank < b.rank:
                    a.rank, changed = b.rank, True
        for p in by_name.values():
            for declared, v in zip(p.params, p.variables, strict=True):
                if v.is_open and declared.type is not None:
                    declared.type.dims = [None] * v.rank

    # The classic dialect: globals.

    def _globals(self) -> list[Variable]:
        found: list[Variable] = []
        while not self.at_word("procedure") and self.kinds[self.i] != END:
            if found:
                self.accept(",")
            self.accept_word("int")
            word = self.identifier("the name of a variable, or `procedure`")
            v = Variable(word, self.word_type)
            if self.accept("["):
                size = self.expression()
                self.expect("]")
                if not size.is_literal:
                    self._wrong(f"the length of `{word.text}` is not a constant", word)
                v.rank, v.lengths = 1, (size.number,)
            first = next((f for f in found if f.word.text == word.text), None)
            if first is not None:
                self.twice(word, first.word)
                raise Bad
            found.append(v)
        return found

    def _pass_globals(
        self, found: list[tuple[Procedure, Func]], by_name: dict[str, Procedure]
    ) -> None:
        """Make the variables that a procedure and its callees name its parameters."""
        reached = {p.word.text: set(p.used) for p, _ in found}
        changed = True
        while changed:
            changed = False
            for p, _ in found:
                mine = reached[p.word.text]
                before = len(mine)
                for call in p.calls:
                    mine |= reached.get(call.callee.text, set())
                changed |= len(mine) != before
        called = {c.callee.text for p, _ in found for c in p.calls}
        for p, func in found:
            # A run of a procedure alone shows all variables.
            mine = reached[p.word.text] if p.word.text in called else set(p.names)
            for v in p.names.values():
                if v.word.text in mine:
                    sizes: list[Value | None] = [
                        literal(n or 0, v.word.start, v.word.end) for n in v.lengths
                    ]
                    self._declare(p, v, sizes, True)
            func.params = p.params
        for p, _ in found:
            for call in p.calls:
                callee = by_name.get(call.callee.text)
                for v in callee.variables if callee is not None else ():
                    a, b = call.callee.start, call.callee.end
                    call.args.append(Ref(plain_name(v.word.text), (), a, b))


def is_classic(kinds: list[str], texts: list[str]) -> bool:
    """Whether a text is of the classic dialect, whose procedures have no parameters."""
    for i, text in enumerate(texts):
        if text == "procedure":
            return kinds[i + 2 : i + 3] != ["("]
    return False
