"""`rvm grad`: gradients, Hessians, the check against differences, and what can go wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rvm_asm import assemble
from rvm_tools.derivatives import labelled, matrix, rounded, table
from sizes import thin, wide
from tools.running import NORM, golden, rvm, rvm_json

from rvm.engines import executing

FOUR = """\
func four(a: f64, b: f64, c: f64, d: f64)
    add a, b * c
    add a, b ** d
    add c, b / d
    rot a, c, d
    add b, d ** 2
    add a, c * d
"""
KINDS = """\
record Body
    pos: f64
    spin: i64
end

func kinds(y: f64, z: c128, q: fixed, g: log64, p: Body, s: stack[f64], A: f64[m, n])
    add y, abs2(z) + f64(q) * p.pos + f64(g) + 3 * A[1, 0]
    alloc t: f64
    pop t, s
    add y, 5 * t
    push t, s
    free t
"""
GIVEN = ("y=0", "z=1-2j", "q=0.5", "g=2'log64", "p={pos: 4, spin: 2}", "s=[7, 8]",
         "A=[[1, 2], [3, 4]]")  # fmt: skip
NORM_AT = ("grad", "norm.rasm", "r=0", "y=0", "x=[1,2,3]")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("norm", NORM), ("four", FOUR), ("kinds", KINDS)):
        (tmp_path / f"{name}.rasm").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class TestWhatPeopleRead:
    def test_a_table(self) -> None:
        golden("grad", rvm(*NORM_AT, "--loss", "r").stdout)

    def test_a_hessian(self) -> None:
        given = ("a=0", "b=2", "c=1", "d=3", "--loss", "a", "--hessian")
        golden("grad_hessian", rvm("grad", "four.rasm", *given).stdout)

    def test_every_kind_of_value(self) -> None:
        golden("grad_kinds", rvm("grad", "kinds.rasm", *GIVEN, "--loss", "y", "--hessian").stdout)

    def test_long_arrays_are_abbreviated(self) -> None:
        given = ("r=0", "y=0", "x=range(1000)", "--loss", "r")
        out = rvm("grad", "norm.rasm", *given).stdout
        assert len(out.splitlines()) < 10 and "..." in out and "f64[1000]" in out
        assert max(map(len, out.splitlines())) <= 100

    def test_the_gradient_program(self) -> None:
        out = rvm("grad", "norm.rasm", "--emit").stdout
        golden("grad_emit", out)
        assert "norm_gradient" in assemble(out)
        assert rvm_json("grad", "norm.rasm", "--emit")["gradient_program"] == out


class TestAnswers:
    def test_of_the_root_of_a_sum_of_squares(self) -> None:
        found = rvm_json(*NORM_AT, "--loss", "r")
        assert found["value"] == 14**0.5
        assert found["gradient"]["x"] == pytest.approx([k / 14**0.5 for k in (1, 2, 3)])
        assert found["gradient"]["y"] == pytest.approx(0.5 / 14**0.5)
        assert found["gradient"]["r"] == 1.0
        assert found["inputs"] == {"r": 0.0, "y": 0.0, "x": [1.0, 2.0, 3.0]}
        assert 0 < found["steps"] < found["gradient_steps"] < 3 * found["steps"]

    def test_hessian_as_published(self) -> None:
        # NiLang 0.9.4's test of second order gives these six numbers.
        given = ("a=0", "b=2", "c=1", "d=3", "--loss", "a", "--hessian")
        h = rvm_json("grad", "four.rasm", *given)["hessian"]
        expected = {
            ("b", "b"): -6.799590, ("b", "c"): -0.566632, ("b", "d"): -45.384796,
            ("a", "d"): -2.969977, ("c", "d"): -6.363315, ("d", "d"): -44.807533,
        }  # fmt: skip
        for (i, j), value in expected.items():
            assert h[i][j] == pytest.approx(value, abs=1e-6)
            assert h[j][i] == pytest.approx(value, abs=1e-6)

    def test_every_kind_of_value(self) -> None:
        found = rvm_json("grad", "kinds.rasm", *GIVEN, "--loss", "y", "--hessian")
        gradient = found["gradient"]
        # L = |z|² + q p + g + 3 A[1, 0] + 5 (the top of s); by log g for g = e²
        assert gradient["z"] == "2-4j"
        assert gradient["q"] == pytest.approx(4.0) and gradient["p"] == {"pos": 0.5}
        assert gradient["g"] == pytest.approx(np.exp(2))
        assert gradient["s"] == [0.0, 5.0]
        assert gradient["A"] == [[0.0, 0.0], [3.0, 0.0]]
        assert found["hessian"]["g"]["g"] == pytest.approx(np.exp(2))
        # |z|² bends by 2 both ways, q p by both; the stack and the array not at all
        h = found["hessian"]
        assert h["z"]["z"] == [[2.0, 0.0], [0.0, 2.0]] and h["z"]["q"] == [0.0, 0.0]
        assert h["q"]["p"]["pos"] == h["p"]["pos"]["q"] == 1.0
        assert h["p"]["pos"]["p"]["pos"] == 0.0
        assert h["s"]["s"] == [[0.0, 0.0], [0.0, 0.0]]
        assert np.shape(h["A"]["z"]) == (2, 2, 2)

    def test_only_some_parameters(self) -> None:
        found = rvm_json(*NORM_AT, "--loss", "r", "--wrt", "x, r", "--hessian")
        assert set(found["gradient"]) == set(found["hessian"]) == {"r", "x"}

    @pytest.mark.parametrize("place", ["x[2]", "z.im", "p.pos"])
    def test_a_loss_may_be_any_real_place(self, place: str) -> None:
        Path("places.rasm").write_text(
            "record P\n    pos: f64\nend\n"
            "func f(t: f64, x: f64[n], z: c128, p: P)\n"
            "    add x[2], 3 * t\n    add z, 3j * c128(t)\n    add p.pos, 3 * t\n"
        )
        given = ("t=1", "x=zeros(3)", "z=0j", "p={pos: 0}", "--loss", place)
        assert rvm_json("grad", "places.rasm", *given)["gradient"]["t"] == 3.0

    def test_of_the_inverse(self) -> None:
        Path("e.rasm").write_text("func f(y: f64, x: f64)\n    add y, exp(x)\n")
        given = ("y=0", "x=1", "--loss", "y")
        there = rvm_json("grad", "e.rasm", *given)
        back = rvm_json("grad", "e.rasm", *given, "--back")
        assert there["gradient"]["x"] == pytest.approx(np.e)
        assert back["gradient"]["x"] == pytest.approx(-np.e)
        assert back["value"] == pytest.approx(-np.e) and back["direction"] == "backwards"

    @pytest.mark.parametrize("engine", executing())
    def test_engines_agree(self, engine: str) -> None:
        found = rvm_json(*NORM_AT, "--loss", "r", "--engine", engine)
        assert found == rvm_json(*NORM_AT, "--loss", "r")

    def test_lost_bits_are_reported(self) -> None:
        Path("big.rasm").write_text("func f(y: f64, x: f64)\n    add y, 1e6 * x\n")
        given = ("grad", "big.rasm", "y=0.1", "x=3", "--loss", "y")
        assert rvm_json(*given)["lost_bits"]["y"] > 20
        assert "came back with lost bits: y: " in rvm(*given).stdout

    def test_arrays_are_written(self, here: Path) -> None:
        rvm(*NORM_AT, "--loss", "r", "--hessian", "--out", "g.npz")
        with np.load(here / "g.npz") as kept:
            assert kept["x"] == pytest.approx(np.array([1, 2, 3]) / 14**0.5)
            expected = np.eye(3) / 14**0.5 - np.outer([1, 2, 3], [1, 2, 3]) / 14**1.5
            assert kept["x,x"] == pytest.approx(expected)
            assert kept["y,x"].shape == (3,)

    def test_prints_of_the_program(self) -> None:
        Path("p.rasm").write_text(
            'func f(x: f64)\n    extern forward\n        print "x is {}", x\n    end\n    neg x\n'
        )
        assert rvm_json("grad", "p.rasm", "x=4", "--loss", "x")["output"] == ["x is 4.0"]


class TestChecks:
    def test_the_estimated_error(self) -> None:
        given = ("grad", "norm.rasm", "r=0", "y=0.1", "x=[1,2.1,3]", "--loss", "r", "--error")
        found = rvm_json(*given)
        error = found["info"]["error"]
        assert set(error) == set(found["gradient"]) and len(error["x"]) == 3
        assert all(0 < e < 1e-14 for e in error["x"])
        text = rvm(*given).stdout
        assert "estimated error of the adjoints" in text
        assert "error" not in rvm_json(*given[:-1])["info"]

    def test_agreement(self) -> None:
        assert "5 numbers agree with" in rvm(*NORM_AT, "--loss", "r", "--check").stdout
        found = rvm_json(*NORM_AT, "--loss", "r", "--check")["check"]
        assert found["ok"] is True
        assert [row["place"] for row in found["rows"]] == ["r", "y", "x[0]", "x[1]", "x[2]"]
        assert all(row["error"] < 1e-9 for row in found["rows"])

    def test_many_rows_are_not_all_shown(self) -> None:
        given = ("r=0", "y=0", "x=range(30)", "--loss", "r", "--check")
        out = rvm("grad", "norm.rasm", *given).stdout
        assert "the 12 of 32 that differ most:" in out and "32 numbers agree with" in out
        assert len(out.splitlines()) < 25

    def test_where_they_part_the_exit_code_is_1(self) -> None:
        # At a kink a central difference is the mean of both sides, and the gradient is one of them.
        Path("kink.rasm").write_text("func f(y: f64, a: f64, b: f64)\n    add y, max(a, b)\n")
        given = ("grad", "kink.rasm", "y=0", "a=1", "b=1", "--loss", "y", "--check")
        result = rvm(*given, code=1)
        assert "2 of 3 differ from central differences" in result.stdout
        assert "D013" in result.stderr
        found = rvm_json(*given, code=1)
        assert found["check"]["ok"] is False and found["errors"][0]["code"] == "D013"

    @wide
    def test_a_place_that_must_be_zero_is_not_a_disagreement(self) -> None:
        Path("steps.rasm").write_text(
            "func step(y: f64, x: f64)\n    add y, 0.5 * x\n\n"
            "func main(y: f64, x: f64)\n    iterate step(y, x) times 20 with pebbles = 8\n"
        )
        given = ("grad", "steps.rasm", "y=0", "x=0.5", "--loss", "y", "--check")
        out = rvm(*given).stdout
        assert "1 number agrees with" in out
        assert "1 not comparable (?): the function takes no other value there" in out
        found = rvm_json(*given)["check"]
        assert found["ok"] is True
        assert [row["comparable"] for row in found["rows"]] == [False, True]

    def test_single_precision_is_given_room(self) -> None:
        Path("s.rasm").write_text("func f(y: f32, x: f32)\n    add y, exp(x)\n")
        found = rvm_json("grad", "s.rasm", "y=0", "x=1", "--loss", "y", "--check")["check"]
        assert found["ok"] is True and found["tolerance"] == 1e-3

    def test_every_kind_of_value(self) -> None:
        found = rvm_json("grad", "kinds.rasm", *GIVEN, "--loss", "y", "--check")["check"]
        assert found["ok"] is True
        assert {"z.re", "z.im", "q", "g", "p.pos", "A[1, 0]"} < {r["place"] for r in found["rows"]}


class TestErrors:
    @thin
    @pytest.mark.parametrize(
        ("args", "code", "says"),
        [
            (["norm.rasm", "r=0", "y=0", "x=[1]"], 2, "--loss r or --loss y or --loss 'x[0]'"),
            (["norm.rasm", "r=0", "y=0", "x=[1]", "--loss", "q"], 1, "no parameter `q`"),
            (["norm.rasm", "r=0", "y=0", "x=[1]", "--loss", "x"], 1, "name one element"),
            (["norm.rasm", "r=0", "y=0", "x=[1]", "--loss", "x[1]"], 1, "outside the array"),
            (["norm.rasm", "r=0", "y=0", "x=[1]", "--loss", "r", "--wrt", "q"], 1, "`q`"),
            (["norm.rasm", "r=0", "y=0", "--loss", "r"], 1, "needs a value for `x`"),
            (["norm.rasm", "r=0", "y=0", "x=[1]", "--loss", "r", "--out", "g"], 2, "--out g.npz"),
            (["kinds.rasm", *GIVEN, "--loss", "z"], 1, "`z.re` or `z.im`"),
            (["kinds.rasm", *GIVEN, "--loss", "p.spin"], 1, "has no adjoint"),
        ],
    )
    def test_each_has_its_exit_code_and_goes_to_standard_error(
        self, args: list[str], code: int, says: str
    ) -> None:
        result = rvm("grad", *args, code=code)
        assert says in result.stderr and result.stdout == ""

    def test_json_has_errors_as_an_object(self) -> None:
        found = rvm_json(*NORM_AT, "--loss", "q", code=1)
        assert [e["code"] for e in found["errors"]] == ["I008"]

    def test_values_that_go_astray_end_with_4(self) -> None:
        # Undoing a halving doubles every error, so that 100 of them leave nothing of the start.
        Path("relax.rasm").write_text(
            "func relax(y: f64, x: f64, n: i64)\n    for i = 1 to n\n        mul x, 0.5\n"
            "        add x, 0.3\n        add y, x ** 2\n    end\n"
        )
        given = ("grad", "relax.rasm", "y=0", "x=1.1", "--loss", "y")
        for more in ([], ["--check"], ["--hessian"], ["--error"], ["--cost"]):
            shown = rvm(*given, "n=100", *more, code=4)
            assert "R017" in shown.stderr
            assert "relax: y = " in shown.stdout and "adjoint" in shown.stdout
            found = rvm_json(*given, "n=100", *more, code=4)
            assert found["errors"][0]["code"] == "R017" and found["gradient"]["x"] > 1e6
        # dy/dx = Σ 2 x_k / 2ᵏ with x_k = 0.6 + 0.5 / 2ᵏ, which is 23/15 in the limit
        assert rvm_json(*given, "n=20")["gradient"]["x"] == pytest.approx(23 / 15, abs=1e-5)

    def test_limits_hold_in_both_runs(self) -> None:
        steps = rvm_json(*NORM_AT, "--loss", "r")["steps"]
        assert "R010" in rvm(*NORM_AT, "--loss", "r", "--max-steps", str(steps), code=3).stderr


class TestTexts:
    def test_numbers_are_rounded_and_read_back(self) -> None:
        assert rounded(0.1) == "0.1" and rounded(1 / 3) == "0.3333333333"
        assert rounded(-1e-300) == "-1e-300" and rounded(float("nan")) == "nan"

    def test_blocks_make_one_matrix(self) -> None:
        f = assemble("func f(a: f64, x: f64[n])\n").function("f")
        block = np.arange(4.0).reshape(2, 2)
        h: dict[str, dict[str, Any]] = {"a": {"a": 9.0, "x": np.array([7.0, 8.0])},
             "x": {"a": np.array([7.0, 8.0]), "x": block}}  # fmt: skip
        labels, numbers = labelled(f, h)
        assert labels == ["a", "x[0]", "x[1]"]
        assert numbers.tolist() == [[9, 7, 8], [7, 0, 1], [8, 2, 3]]

    def test_a_wide_matrix_goes_on_below(self) -> None:
        f = assemble("func f(x: f64[n])\n").function("f")
        lines = matrix(f, {"x": {"x": np.full((10, 10), 1 / 3)}}, 60)
        assert max(map(len, lines)) <= 60 and lines.count("") == 2
        assert sum(line.startswith("  x[9]") for line in lines) == 3

    def test_a_function_without_derivatives_has_a_table(self) -> None:
        f = assemble("func f(k: i64)\n    inc k\n").function("f")
        assert table(f, [3], {})[1].split() == ["k", "i64", "3", "-"]


def test_costs_of_both_runs_are_those_of_the_lines(tmp_path: Path) -> None:
    """By figure 11, a function of k numbers reads k and writes one; `add` is one of two."""
    (tmp_path / "f.rasm").write_text("func f(y: f64, a: f64, b: f64)\n    add y, a * b + sin(a)\n")
    given = ("grad", str(tmp_path / "f.rasm"), "y=0", "a=1", "b=2", "--loss", "y", "--cost")
    classes = ("MOVES", "ADDS", "MULTS", "NLOPS")
    found = rvm_json(*given, "--json")["cost"]
    there = (3 + 2 + 3 + 3, 2, 1, 1)
    # The line undone, and y' b and y' a and y' cos(a) added.
    back = (there[0] + 6 + 6 + 8, 2 + 3, 1 + 3, 1 + 1)
    for way, want in (("forwards", there), ("back", back)):
        assert found[way]["work"] == dict(zip(classes, want, strict=True))
        assert found[way]["counted"] == found[way]["work"] | {"MOVES": 0}
    assert f"{sum(back) / sum(there):.2f} times that of the run forwards" in rvm(*given).stdout
