"""Janus programs give what an interpreter of their own gives, there and back, on every engine."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rvm_janus
from click.testing import CliRunner
from janus.interpreter import Failed, Janus
from janus.programs import GLOBALS, LETTERS, PROGRAMS
from janus.writer import Writer
from rvm_asm import assemble as assemble_text
from rvm_tools.cli import cli
from sizes import thin
from tools.running import rvm as command

import rvm
from rvm.codec import encode
from rvm.engines import executing
from rvm.faults import AssemblyError, RvmError, UsageError
from rvm.library.handle import Library


def library(text: str, **options: Any) -> Library:
    return Library(rvm_janus.assemble(text, "p.ja", **options))


def store(result: Any) -> dict[str, Any]:
    """The variables as the interpreter holds them: lists, stacks with the top first."""
    plain = {}
    for name, value in dict(result).items():
        if isinstance(value, list):
            plain[name] = value[::-1]
        else:
            plain[name] = value.tolist() if isinstance(value, np.ndarray) else value
    return plain


def nothing(result: Any) -> bool:
    return all(v == [] if isinstance(v, list) else not np.any(v) for v in dict(result).values())


@thin
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("engine", executing())
def test_programs_end_as_they_must_and_come_back(name: str, engine: str) -> None:
    text, ends = PROGRAMS[name]
    janus = Janus(text)
    lib = library(text)
    entry = lib.program.entry
    f = lib[entry].with_options(engine=engine)
    out = f()
    assert store(out) == ends == janus.run(entry)
    assert nothing((~f)(**out))


EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "janus").iterdir())


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda p: p.stem)
def test_examples_end_as_the_interpreter_says(file: Path) -> None:
    lib = rvm.load(file)
    f = lib[lib.program.entry]
    out = f()
    assert store(out) == Janus(file.read_text()).run(lib.program.entry)
    assert nothing((~f)(**out))


def agree(seeds: range) -> None:
    engines = executing()
    for seed in seeds:
        text = Writer(seed).program()
        try:
            want = Janus(text).run()
        except Failed:
            with pytest.raises(RvmError):
                library(text).main()
            continue
        f = library(text).main.with_options(engine=engines[seed % len(engines)])
        out = f()
        assert store(out) == want, text
        assert nothing((~f)(**out)), text


@thin
@pytest.mark.parametrize("part", range(4))
def test_random_programs_agree_with_the_interpreter(part: int) -> None:
    agree(range(10 * part, 10 * part + 10))


@pytest.mark.deep
def test_many_random_programs_agree_with_the_interpreter() -> None:
    agree(range(100, 1000))


@pytest.mark.parametrize("text", [p[0] for p in PROGRAMS.values()] + [Writer(3).program()])
def test_the_text_in_the_assembly_language_makes_the_same_bytes(text: str) -> None:
    program = rvm_janus.assemble(text, "p.ja")
    assert encode(assemble_text(rvm_janus.rasm(text, "p.ja"))) == encode(program)


def test_a_classic_program_begins_with_the_procedure_that_is_not_called() -> None:
    assert rvm_janus.assemble(GLOBALS).entry == "main_fwd"
    back = library(GLOBALS)["main_bwd"]()
    assert store(back) == {"n": 10, "x1": 0, "x2": 0}


def test_the_signs_of_1982_mean_what_those_of_today_do() -> None:
    old = "x[2] y procedure main x[0] += 7 \\ 4 if y # 1 then x[0] : x[1] y != x[1] fi y # 1"
    new = "x[2] y procedure main x[0] += 7 % 4 if y != 1 then x[0] <=> x[1] y ^= x[1] fi y != 1"
    assert store(library(old).main()) == {"x": [0, 3], "y": 3}
    code = (rvm_janus.assemble(text).functions[0].code for text in (old, new))
    assert next(code) == next(code)


def test_numbers_wrap_at_the_width_that_is_asked_for() -> None:
    text = "procedure main() int x = 2147483647 u8 y = 255 i16 z = -32768 x += 1 y += 2 z -= 1"
    assert store(library(text).main()) == {"x": -(1 << 31), "y": 1, "z": 32767}
    assert store(library(text, width=64).main())["x"] == 1 << 31


def test_numbers_are_cast_modulo_the_size_of_the_type() -> None:
    types = [*(f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64)), "int"]
    for number in (70_000, 255, -130, 2**40 + 3, 2**63 + 5):
        made = " ".join(f"{t} x_{t}" for t in types)
        lines = " ".join(f"x_{t} += ({t}) {number}" for t in types)
        found = store(library(f"procedure main() {made} {lines}").main())
        for t in types:
            bits = int(t[1:]) if t != "int" else 32
            want = number % 2**bits
            assert found[f"x_{t}"] == want - 2**bits * (t[0] == "i" and 2 * want >= 2**bits)


def test_the_classic_truth_is_what_is_not_zero() -> None:
    text = "x y\nprocedure main\n  x += 6\n  if x & 4 then y += x > 3 fi y\n  x -= 6\n"
    assert store(library(text).main()) == {"x": 0, "y": 1}


def test_the_high_product_is_the_upper_half() -> None:
    text = "x y z\nprocedure main\n  x += 2000000000\n  y -= 1500000000\n  z += x */ y\n"
    assert store(library(text).main())["z"] == (2000000000 * -1500000000) >> 32


def test_elements_of_one_array_are_told_apart_when_it_runs() -> None:
    text = """
procedure main()
    int a[3] = {1, 2, 3}
    int i = 1 int k = 1
    a[i] += a[i + 1]
    a[i] += a[k]
"""
    with pytest.raises(RvmError) as failed:
        library(text).main()
    assert failed.value.code == "R004" and failed.value.where.line == 6


def test_procedures_that_are_not_reached_may_be_wrong() -> None:
    text = "procedure p(int x)\n  x += y\nprocedure main()\n  int x\n  x += 1\n"
    assert [f.name for f in rvm_janus.assemble(text).functions] == ["main"]
    with pytest.raises(AssemblyError, match="nothing here is called `y`"):
        rvm_janus.assemble(text.replace("x += 1", "call p(x)"))


WRONG = {
    "procedure main()\n  int x\n  x = 3\n": ("A002", 3, "a change is `+=`"),
    "procedure main()\n  int x\n  x += x\n": ("A013", 3, "`local int t = x`"),
    "procedure main()\n  int x\n  x *= 2\n": ("A002", 3, "prime"),
    "procedure main()\n  local int i = 0\n  skip\n  delocal int j = 0\n": ("A002", 4, "`j`"),
    "procedure main()\n  int x\n  int x\n  skip\n": ("A006", 3, "twice"),
    "procedure main()\n  if true then skip else skip\n": ("A002", 3, "`fi`"),
    "procedure main()\n  call p(3)\n": ("A045", 2, "`p`"),
    "procedure p(int a, int b)\n  a += b\nprocedure main()\n  int x\n  call p(x, x)\n": (
        "A014",
        5,
        "`local int t = …`",
    ),
    "": ("A010", 1, "`procedure main()`"),
    "procedure p(int a)\n  a += 1\nprocedure main()\n  int x[3]\n  call p(x)\n": ("A042", 5, "`a`"),
    "procedure main()\n  int x[3]\n  int y\n  x <=> y\n": ("A042", 4, "dimensions"),
    "procedure main()\n  int i\n  int x[3]\n  x[i] <=> i\n": ("A015", 4, "`local int "),
    "procedure main()\n  int x\n  x += z\n": ("A005", 3, "declare it: `int z`"),
    "procedure main()\n  int x[2]\n  x[0] += x[x[0]] + x[0]\n": ("A013", 3, "local"),
    "procedure main()\n  int x\n  int y\n  if x then y += 1 fi x\n": ("A040", 4, "compare it"),
    "procedure main()\n  constant int n = 3\n  n += 1\n": ("A034", 3, "constant"),
    "procedure main()\n  int x\n  push(x, x)\n": ("A040", 3, "not a stack"),
    "procedure main()\n  int a[2] = {1, 2, 3}\n  skip\n": ("A040", 2, "3 values"),
    'procedure main()\n  int x\n  printf("%a", x)\n': ("A044", 3, "array"),
    "procedure main()\n  /* never closed\n": ("A001", 2, "comment"),
    "procedure main()\n  int x;\n": ("A001", 2, "separator"),
    "x\nprocedure main\n  read x\n": ("A002", 3, "x=3"),
    "x y\nprocedure main()\n  x += 1\n": (
        "A002",
        1,
        "in the classic dialect variables are declared before",
    ),
    "x\nprocedure main\n  local int t = 0\n  delocal int t = 0\n": (
        "A002",
        3,
        "`local` is of the dialect of jana",
    ),
    "procedure main()\n  int x\n  stack s = {1, x}\n  x += 1\n": (
        "A040",
        3,
        "`s` begins with numbers",
    ),
    'procedure main()\n  int a[2]\n  printf("%a", a[0])\n': ("A044", 3, "which `a[0]` is not"),
    "procedure main()\n  int x\n  read x\n": ("A002", 3, "`x=3`"),
    "procedure main()\n  int x\n  x += 1\n  write x\n": ("A002", 4, "`printf`"),
    "procedure main()\n  int x\n  for i = 0 to 3 do\n": ("A002", 3, "iterate"),
    "procedure main()\n  int x\n  if x == 0 then": ("A002", 3, "`=` compares"),
    "procedure main()\n  int x\n  external call f(x)\n": ("A002", 3, "in C cannot be called"),
    "procedure main()\n  int x\n  call external f(x)\n": ("A002", 3, "in C cannot be called"),
    "procedure main()\n  local int t = 0\n  delocal int t = 0\n": ("A002", 3, "`skip`"),
    "#define N 3\nprocedure main()\n  int x\n  x += 3\n": ("A002", 1, "no preprocessor"),
    "struct p { int a }\nprocedure main()\n  int x\n  x += 3\n": ("A002", 1, "no records"),
    "void main() { int x }\n": ("A002", 1, "without braces"),
    "procedure main()\n  int x\n  x += 1\n  int y\n": ("A002", 4, "`local int x = 0`"),
    "procedure p()\n  stack s\nprocedure main()\n  call p()\n": ("A002", 2, "`local stack x"),
    "procedure main()\n  int x\n  print(x)\n": ("A002", 3, "`show(x)`"),
    "procedure p(int a[], int x)\n  a[0] += x\nprocedure main()\n  int n\n  call p(n, n)\n": (
        "A042",
        5,
        "`a`",
    ),
}


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_wrong_texts_are_reported_at_their_place(text: str) -> None:
    code, line, says = WRONG[text]
    with pytest.raises(AssemblyError) as failed:
        rvm_janus.assemble(text, "p.ja")
    found = next(d for d in failed.value.diagnostics if d.code == code)
    assert found.where.line == line and found.where.source == "p.ja"
    assert says in str(failed.value)
    assert not re.search(FOREIGN, str(failed.value)), str(failed.value)


def test_an_if_that_ends_in_another_word_is_told_its_own() -> None:
    with pytest.raises(AssemblyError, match="an `if` ends in `fi CONDITION`"):
        rvm_janus.assemble("procedure main()\n  int x\n  if x = 0 then\n    x += 1\n  end\n")


FAILING = {
    "procedure main()\n  int x\n  if x = 0 then x += 1 fi x = 0\n": ("R002", 3),
    "procedure main()\n  int x\n  from x = 1 do x += 1 until x = 3\n": ("R002", 3),
    "procedure main()\n  local int t = 3\n  t += 1\n  delocal int t = 3\n": ("R001", 4),
    "procedure main()\n  stack s\n  local int t = 0\n  pop(t, s)\n  delocal int t = 0\n": (
        "R006",
        4,
    ),
    'procedure main()\n  error("no further")\n': ("R013", 2),
    "procedure main()\n  int x\n  assert x = 1\n": ("R013", 3),
    "procedure main()\n  int x\n  int y\n  x += 3 / y\n": ("R005", 4),
    "procedure main()\n  int x\n  if\n  x = 0 then x += 1 fi\n  x = 0\n": ("R002", 5),
    "procedure main()\n  int x\n  if x = 1 then skip else x += 1 fi x = 1\n": ("R002", 3),
    "procedure main()\n  int x\n  from x = 0 loop x += 0 until x = 3\n": ("R002", 3),
    "procedure main()\n  int x\n  local int t = x\n  x += 1\n  delocal int t = x\n": ("R001", 5),
    "procedure main()\n  local int a[2]\n  a[1] += 1\n  delocal int a[2]\n": ("R001", 4),
    "procedure p(int x)\n  x += 1\nprocedure main()\n  int x\n  call p(x + 1)\n": ("R001", 5),
    "procedure main()\n  int x = 1\n  local stack s\n  push(x, s)\n  delocal stack s\n": (
        "R001",
        5,
    ),
    "procedure main()\n  stack s = {1}\n  int x = 1\n  pop(x, s)\n": ("R006", 4),
    "procedure main()\n  stack s = {1}\n  pop(2, s)\n": ("R001", 3),
    "procedure main()\n  int a[2]\n  int i\n  a[i] += a[0]\n": ("R004", 4),
    "procedure main()\n  int a[2]\n  int i = 2\n  a[i] += 1\n": ("R003", 4),
}
FOREIGN = (
    r"\b(alloc|ancilla|uncompute|register|free|freed|arm|come-from|instruction)\b|`(func|add|end)\b"
)
"""Words of the assembly language that are not of Janus."""


@pytest.mark.parametrize("text", FAILING, ids=range(len(FAILING)))
def test_failed_assertions_name_the_line(text: str) -> None:
    code, line = FAILING[text]
    with pytest.raises(RvmError) as failed:
        library(text).main()
    assert (failed.value.code, failed.value.where.line) == (code, line)
    assert not re.search(FOREIGN, str(failed.value)), str(failed.value)
    kept = pickle.loads(pickle.dumps(library(text)))
    with pytest.raises(RvmError) as again:
        kept.main()
    assert str(again.value) == str(failed.value)


BACK = {
    "procedure main()\n  int x\n  if x = 0 then x += 1 else skip fi x > 0\n": (5, "R002"),
    "procedure main()\n  int x\n  from x = 0 loop x += 1 until x = 3\n": (5, "R002"),
    "procedure main()\n  int x\n  local int t = 1\n  x += t\n  t += x\n  delocal int t = 4\n": (
        5,
        "R001",
    ),
    "procedure main()\n  int x\n  stack s\n  x += 1\n  push(x, s)\n": (5, "R006"),
}


@pytest.mark.parametrize("text", BACK, ids=range(len(BACK)))
def test_failures_of_runs_back_are_in_words_of_janus(text: str) -> None:
    x, code = BACK[text]
    with pytest.raises(RvmError) as failed:
        (~library(text).main)(x=x)
    assert failed.value.code == code
    assert not re.search(FOREIGN, str(failed.value)), str(failed.value)


RANKS = """
procedure shifted(int a[], int b[], int n)
  call added(a, b, n)
  b[n - 1][n - 1] += size(a)

procedure added(int a[], int b[], int n)
  iterate int i = 0 to n - 1
    iterate int j = 0 to n - 1
      b[j][i] += a[i][j]
    end
  end

procedure passed(int a[], int b[], int n)
  call shifted(a, b, n)

procedure main()
  int a[][] = {{1, 2}, {3, 4}}
  int k = size(a) + 1
  int b[size(a)][size(a)]
  int c[k]
  c[2] += 7
  call passed(a, b, 2)
"""


def test_parameters_take_arrays_of_any_number_of_dimensions() -> None:
    """As many as are used with them, here or in a procedure that they are passed on to."""
    lib = library(RANKS)
    out = lib.main()
    assert out.b.tolist() == [[1, 3], [2, 6]] and out.c.tolist() == [0, 0, 7]
    back = (~lib.main)(**out)
    assert not any(np.any(v) for v in back.values())
    with pytest.raises(AssemblyError, match="2 indices for 1 dimension"):
        library(
            "procedure p(int a[3])\n  a[0][1] += 1\nprocedure main()\n  int a[3]\n  call p(a)\n"
        )


FOLLOWED = """
procedure follow(int next[], int at, int n, int seen[])
  seen[at] += n + 1
  if next[at] != 0 then
    next[at] += 10
    next[at] -= 10
    call follow(next, next[at], n + 1, seen)
  fi next[at] != 0

procedure spoil(int x[], int at)
  x[1] += at

procedure main()
  int next[4] = {2, 3, 1, 0}
  int seen[4]
  call follow(next, next[3], 0, seen)
"""


def test_an_element_is_passed_beside_its_array_by_its_value() -> None:
    """Which it must have again when the call ends."""
    lib = library(FOLLOWED)
    out = lib.main()
    assert out.seen.tolist() == [1, 3, 2, 4]
    assert not np.any((~lib.main)(**out).seen)
    with pytest.raises(RvmError, match="R001"):
        library(FOLLOWED + "  call spoil(next, next[1])\n").main()


def test_the_command_line_prints_the_store(tmp_path: Path) -> None:
    file = tmp_path / "letters.ja"
    file.write_text(LETTERS + '    show(text, pairs)\n    printf("100%% of %t", pairs)\n')
    printed = command("run", str(file)).stdout
    assert printed == (
        "text = nil, pairs = <2, 7, 3, 5, 1, 7]\n100% of <2, 7, 3, 5, 1, 7]\n"
        "pairs = <2, 7, 3, 5, 1, 7]\ntext = nil\n"
    )
    back = command("run", str(file), "--back", "pairs=[7,1,5,3,7,2]").stdout
    assert back.endswith("pairs = nil\ntext = nil\n")


def test_kinds_of_failure_have_exits_of_their_own(tmp_path: Path) -> None:
    exits = []
    for text in (next(iter(WRONG)), *FAILING):
        file = tmp_path / "p.ja"
        file.write_text(text)
        exits.append(CliRunner().invoke(cli, ["run", str(file)]).exit_code)
    wrong, if_, from_, delocal, pop, error, assertion, division, *_ = exits
    assert if_ == from_ == delocal == pop == assertion and error == division
    assert len({0, wrong, if_, error}) == 4


DECLARED = """
procedure p(int a, int b)
  local int s = a, t = b, stack k, l
  s <=> t
  s += 0
  delocal int s = b, t = a, stack k, l
procedure main()
  int x, y = 3, a[2] = {4, y}
  u8 b = 200, c, int d
  constant int n = 2, m = n
  stack s, t = {1}
  int e[n + m]
  call p(x, y)
"""


def test_declarations_may_share_a_type() -> None:
    one_by_one = DECLARED
    for many, single in {
        "int x, y = 3, a[2]": "int x int y = 3 int a[2]",
        "u8 b = 200, c, int d": "u8 b = 200 u8 c int d",
        "constant int n = 2, m": "constant int n = 2 constant int m",
        "stack s, t": "stack s stack t",
        "= a, t": "= a, int t",
        "= b, t": "= b, int t",
        "stack k, l": "stack k, stack l",
    }.items():
        assert many in one_by_one
        one_by_one = one_by_one.replace(many, single)
    text = rvm_janus.rasm(DECLARED, positions=False)
    assert text == rvm_janus.rasm(one_by_one, positions=False)
    assert store(library(DECLARED).main())["y"] == 3
    with pytest.raises(AssemblyError, match="`m` is a constant"):
        library(DECLARED + "  m += 1\n")
    assert store(library("x, y int z[2], w procedure main x += 1 z[1] += x").main()) == {
        "x": 1,
        "y": 0,
        "z": [0, 1],
        "w": 0,
    }


def test_options_are_those_of_the_front_end(tmp_path: Path) -> None:
    file = tmp_path / "wide.ja"
    file.write_text("procedure main()\n  int x = 4294967296\n  skip\n")
    assert command("run", str(file), "--width", "64").stdout == "x = 4294967296\n"
    assert rvm.load(file, width=64).main().x == 1 << 32
    with pytest.raises(UsageError):
        rvm.load(file, height=3)
    with pytest.raises(UsageError):
        rvm.load(file, width=16)


@pytest.mark.parametrize(
    "rest",
    [
        "procedure g()\n    skip\n",
        "procedure g(int a)\n    a += 1\n",
        "procedure g()\n    xx += 1\n",
    ],
)
def test_a_fault_in_main_is_reported_whatever_else_there_is(rest: str) -> None:
    main = "procedure main()\n    int x\n    xx += 1\n\n"
    for text in (main + rest, rest + main, main + rest.replace("g(", "helper(")):
        with pytest.raises(rvm.AssemblyError, match="`xx`"):
            rvm_janus.assemble(text)


def test_a_fault_where_nothing_goes_is_left_alone() -> None:
    program = rvm_janus.assemble(
        "procedure main()\n    int x\n    x += 1\n\nprocedure g()\n    xx += 1\n"
    )
    assert list(program) == ["main"]


def test_stacks_begin_with_values_and_elements_are_printed(tmp_path: Path) -> None:
    file = tmp_path / "values.ja"
    file.write_text("""procedure main()
    stack s = {1, 2, 3}
    int a[2][3] = {{1, 2, 3}, {4, 5, 6}}
    int i = 1
    local stack t = {7, i + 7}
    local int x = 0
    pop(x, t)
    a[0][0] += x
    push(x, t)
    delocal int x = 0
    printf("%d %a %d%%", a[i][2], a[0], i)
    delocal stack t = {7, i + 7}
""")
    printed = "6 {8, 2, 3} 1%\n"
    store = "a[2][3] = {{8, 2, 3}, {4, 5, 6}}\ni = 1\ns = <1, 2, 3]\n"
    assert command("run", str(file)).stdout == printed + store
    given = ("a=[[8,2,3],[4,5,6]]", "i=1", "s=[3,2,1]")
    back = command("run", str(file), "--back", *given).stdout
    assert back == printed + "a[2][3] = {{0, 0, 0}, {0, 0, 0}}\ni = 0\ns = nil\n"
    file.write_text(file.read_text().replace("delocal stack t = {7", "delocal stack t = {6"))
    assert command("run", str(file), code=4).exit_code == 4
