"""Functions of the table compiled one by one, to be called on columns of arguments."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
import numpy as np

from rvm.isa.implementation import implementation
from rvm.leaf.llvm import symbol
from rvm.leaf.ops import LLVM_TYPES
from rvm.numbers import system
from rvm.numbers.llvm import SYMBOLS, declaration, double, register_type
from rvm.numbers.llvm_prelude import definitions

WEIGHTS = '!1 = !{!"branch_weights", i32 1, i32 2000}'
"""The metadata of branches that are rarely taken."""
PURE = "nounwind willreturn memory(none)"


def memory_type(t):
    """LLVM's type of an element in memory; a complex number takes two in a row."""
    return "i8" if t.is_bool else register_type(t)


class Lines:
    """The emitter: appends instructions, and collects the conditions of giving up."""

    def __init__(self):
        self.lines = []
        self.symbols = set()
        self.helpers = set()
        self.conditions = ["false"]

    def op(self, text):
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def pure(self, symbol, result, *args):
        assert symbol in SYMBOLS
        self.symbols.add(symbol)
        return self.op(f"call {result} @{symbol}({', '.join(map(' '.join, args))})")

    def helper(self, name, result, *args):
        self.helpers.add(name)
        return self.op(f"call {result} @{name}({', '.join(map(' '.join, args))})")

    def written(self, function, args):
        kinds = (LLVM_TYPES[p.kind] for p in function.params)
        return self.helper(symbol(function), "double", *zip(kinds, args, strict=True))

    def trouble(self, condition):
        self.conditions.append(condition)

    def do(self, text):
        self.lines.append(f"  {text}")

    # ---------------------------------------------------------------- elements of columns

    def load(self, t, column):
        if t.is_complex:
            at = self.op("mul i64 %row, 2")
            return tuple(self._load(t, column, self.op(f"add i64 {at}, {k}")) for k in (0, 1))
        return self._load(t, column, "%row")

    def _load(self, t, column, row):
        kind = memory_type(t)
        at = self.op(f"getelementptr {kind}, ptr {column}, i64 {row}")
        found = self.op(f"load {kind}, ptr {at}")
        return self.op(f"trunc i8 {found} to i1") if t.is_bool else found

    def store(self, t, value, column):
        parts = value if isinstance(value, tuple) else (value,)
        assert len(parts) == 1 + t.is_complex
        for k, part in enumerate(parts):
            if t.is_bool:
                part = self.op(f"zext i1 {part} to i8")
            at = self.op(f"mul i64 %row, {len(parts)}")
            at = self.op(f"add i64 {at}, {k}")
            at = self.op(f"getelementptr {memory_type(t)}, ptr {column}, i64 {at}")
            self.do(f"store {memory_type(t)} {part}, ptr {at}")


def constant(t, raw):
    """A raw value as an operand."""
    if t.is_complex:
        return double(raw.real), double(raw.imag)
    if t.is_bool:
        return "true" if raw else "false"
    if t.is_float or t.is_log:
        return double(raw)
    return str(int(np.array(raw).astype(f"i{t.bits // 8}")))


def function(name, fn, types, result, last=None):
    """The text of a loop over the rows of columns, and the emitter that wrote it.

    `last` is a constant in the place of the last argument.
    """
    e = Lines()
    args = [e.load(t, f"%c{k}") for k, t in enumerate(types)]
    if last is not None:
        args[-1] = constant(types[-1], last)
    e.store(result, implementation(fn, types).llvm(e, *args), "%out")
    bad = "false"
    for condition in e.conditions:
        bad = e.op(f"or i1 {bad}, {condition}")
    wide = e.op(f"zext i1 {bad} to i8")
    at = e.op("getelementptr i8, ptr %bad, i64 %row")
    e.do(f"store i8 {wide}, ptr {at}")
    columns = ", ".join(f"ptr %c{k}" for k in range(len(types)))
    body = "\n".join(e.lines)
    return (
        f"define void @{name}(i64 %n, ptr noalias %out, ptr noalias %bad, {columns}) {{\n"
        "entry:\n  br label %loop\nloop:\n"
        "  %row = phi i64 [ 0, %entry ], [ %next, %loop ]\n"
        f"{body}\n"
        "  %next = add i64 %row, 1\n  %more = icmp ult i64 %next, %n\n"
        "  br i1 %more, label %loop, label %end\nend:\n  ret void\n}\n"
    ), e


class Compiled:
    """Functions (name, argument types, result's type), compiled into one module.

    A fourth item is a constant that stands for the last argument, whatever is in its column.
    """

    def __init__(self, functions):
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.functions = list(functions)
        texts, symbols, helpers = [], set(), set()
        for k, case in enumerate(self.functions):
            text, emitter = function(f"f{k}", *case)
            texts.append(text)
            symbols |= emitter.symbols
            helpers |= emitter.helpers
        prelude, more = definitions(helpers)
        declared = [f"{declaration(s)} {PURE}" for s in sorted(symbols | more)]
        module = llvm.parse_assembly("\n".join([*declared, prelude, *texts, WEIGHTS]))
        module.verify()
        process = ctypes.CDLL(None)
        for alias, real in SYMBOLS.items():
            address = ctypes.cast(getattr(process, real), ctypes.c_void_p).value
            llvm.add_symbol(alias, address)
        target = llvm.Target.from_default_triple()
        machine = target.create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
        )
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.slp_vectorization = True
        llvm.create_pass_builder(machine, options).getModulePassManager().run(
            module, llvm.create_pass_builder(machine, options)
        )
        self.engine = llvm.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()

    def call(self, k, rows):
        """The results of function k on rows of raw arguments, and where it was given up."""
        types, result = self.functions[k][1:3]
        out = np.empty(len(rows), system(result).dtype)
        bad = np.empty(len(rows), np.bool_)
        columns = [
            np.array(column, system(t).dtype)
            for column, t in zip(zip(*rows, strict=True), types, strict=True)
        ]
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (out, bad, *columns)]
        f = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * len(pointers))
        f(self.engine.get_function_address(f"f{k}"))(len(rows), *pointers)
        return out, bad
