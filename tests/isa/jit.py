"""Functions of the table compiled one by one, to be called on columns of arguments."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
import numpy as np

from rvm.emit.llvm.functions import Definitions
from rvm.emit.llvm.module import ATTRIBUTES
from rvm.emit.llvm.prelude import SYMBOLS, declaration
from rvm.emit.llvm.printer import TYPES, Printer
from rvm.ir.items import Operations, parts_of, raw_constant, value_of
from rvm.ir.node import BIT, Argument, Node
from rvm.isa.implementation import implementation
from rvm.leaf.ops import C128, F64, NATIVE
from rvm.numbers import system
from rvm.numbers.code import kind_of


class Row(Operations):
    """What is done for one row: the operations, and the conditions of giving up."""

    def __init__(self):
        super().__init__()
        self.conditions = []

    def trouble(self, condition):
        self.conditions.append(condition)


def kinds_of(t):
    """The kinds of a value's parts in machine code."""
    kind = kind_of(t)
    return [F64, F64] if kind == C128 else [NATIVE[kind]]


def memory_type(kind):
    """LLVM's type of a value in memory."""
    return "i8" if kind == BIT else TYPES[kind]


def places(p, t, column):
    """Pointers to the parts of a row's element; a complex number has two in a row."""
    kinds = kinds_of(t)
    first = p.op(f"mul i64 %row, {len(kinds)}")
    for k, kind in enumerate(kinds):
        at = p.op(f"add i64 {first}, {k}")
        yield kind, p.op(f"getelementptr {memory_type(kind)}, ptr {column}, i64 {at}")


def function(name, fn, types, result, last=None):
    """The text of a loop over the rows of columns, and its printer.

    `last` is a constant in the place of the last argument.
    """
    b, code = Row(), implementation(fn, types)
    p = Printer(b)
    args = []
    for k, t in enumerate(types):
        given = []
        for j, (kind, pointer) in enumerate(places(p, t, f"%c{k}")):
            p.line(f"%a{k}_{j} = load {memory_type(kind)}, ptr {pointer}")
            title = f"a{k}_{j}"
            if kind == BIT:
                p.line(f"%{title}b = trunc i8 %{title} to i1")
                title += "b"
            given.append(Node("argument", kind, (), Argument(title, kind)))
        args.append(value_of(given))
    if last is not None:
        args[-1] = raw_constant(last, kind_of(types[-1]))
    found = b.put(code.body, *args)
    p.print_items(b.items)
    for part, (kind, pointer) in zip(parts_of(found), places(p, result, "%out"), strict=True):
        p.keep(kind, p.operand(part), pointer)
    bad = "false"
    for condition in b.conditions:
        bad = p.op(f"or i1 {bad}, {p.operand(condition)}")
    at = p.op("getelementptr i8, ptr %bad, i64 %row")
    p.keep(BIT, bad, at)
    columns = ", ".join(f"ptr %c{k}" for k in range(len(types)))
    body = "\n".join(p.lines)
    return (
        f"define void @{name}(i64 %n, ptr noalias %out, ptr noalias %bad, {columns}) {{\n"
        "entry:\n  br label %loop\nloop:\n"
        "  %row = phi i64 [ 0, %entry ], [ %next, %loop ]\n"
        f"{body}\n"
        "  %next = add i64 %row, 1\n  %more = icmp ult i64 %next, %n\n"
        "  br i1 %more, label %loop, label %end\nend:\n  ret void\n}\n"
    ), p


class Compiled:
    """Functions (name, argument types, result's type), compiled into one module.

    A fourth item is a constant that stands for the last argument, whatever is in its column.
    """

    def __init__(self, functions):
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.functions = list(functions)
        texts, symbols, helpers, called = [], set(), set(), set()
        for k, case in enumerate(self.functions):
            text, printer = function(f"f{k}", *case)
            texts.append(text)
            symbols |= printer.symbols
            helpers |= printer.helpers
            called |= printer.functions
        prelude = Definitions(called, helpers)
        declared = [declaration(s) for s in sorted(symbols | prelude.symbols)]
        module = llvm.parse_assembly("\n".join([*declared, prelude.text(), *texts, ATTRIBUTES]))
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
