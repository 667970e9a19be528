"""LLVM at work: from a module's text to machine code, and that linked where we can't do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from rvm.emit.llvm.prelude import TURN
from rvm.emit.llvm.rooms import POOL
from rvm.engines.native.aside import aside
from rvm.engines.native.host import Llvm, library
from rvm.engines.native.memory import PROTOTYPE, Run, address
from rvm.faults import UsageError
from rvm.host.signals import listen

LEVELS = ((4_000, 3), (40_000, 2))
"""Up to how many lines a module is optimised how much; longer ones least: LLVM's time grows faster
than the text.  Loops are vectorised at levels 2 and 3, with several vectors an iteration at 3."""
OPTIONS = ("-slp-max-reg-size=128", "-memdep-block-scan-limit=1000")
"""Options of LLVM: straight-line code is vectorised with at most two elements, since wider vectors
would be gathered from scattered values, which costs more than it saves. And loads are tracked over
long distances, since an inlined call is a long piece of straight-line code."""

VECTORS = ((True, True), (False, True), (False, False))
"""Whether straight-line code and loops are vectorised: at first, and where that goes wrong."""

MOST_TURNS = 8
"""The largest number of calls of `TURN` that are inlined, each some hundred instructions."""


class Compiler:
    """LLVM for this machine."""

    def __init__(self) -> None:
        library()
        try:
            import llvmlite.binding as llvm

            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
        except (ImportError, OSError, RuntimeError, AttributeError) as error:
            Llvm.error = UsageError(
                "U002",
                f"llvmlite is installed, but cannot be loaded: {error}",
                hint="if its memory is limited (ulimit -v), it needs more; or use another engine",
            )
            raise Llvm.error from None

        self.llvm = llvm
        self.cpu = llvm.get_host_cpu_name()
        self.features = llvm.get_host_cpu_features().flatten()
        self.triple = llvm.get_process_triple()
        self.machine = self._machine(3)
        self.layout = str(self.machine.target_data)
        self._jit: Any = None
        self._kept: list[Any] = []
        """Objects that must stay alive for machine code that LLVM has linked."""
        self.version = f"{llvm.llvm_version_info} {self.cpu} {self.features} {self.triple}"

    def _machine(self, level: int) -> Any:
        target = self.llvm.Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=level, reloc="pic", codemodel="small"
        )

    def function(
        self, data: bytes, name: str, symbols: Sequence[str], memory: Mapping[str, int]
    ) -> Run:
        """A function of object code, linked by LLVM; `memory` are addresses of its globals."""
        return PROTOTYPE(aside(lambda: self._linked(data, name, symbols, memory)))

    def _linked(
        self, data: bytes, name: str, symbols: Sequence[str], memory: Mapping[str, int]
    ) -> int:
        if self._jit is None:
            self._jit = self.llvm.create_lljit_compiler(self.machine)
        builder = self.llvm.JITLibraryBuilder()
        builder.add_object_img(data).add_current_process().export_symbol(name)
        for alias in (*symbols, POOL):
            builder.import_symbol(alias, address(alias))
        for alias, at in memory.items():
            builder.import_symbol(alias, at)
        library = builder.link(self._jit, f"m{len(self._kept)}")
        self._kept.append(library)
        found: int = library[name]
        return found

    def compiled(self, text: str) -> bytes:
        """The object code of a module."""

        def work() -> bytes:
            data: bytes = self.machine.emit_object(self.optimised(text))
            return data

        return aside(work)

    def optimised(self, text: str) -> Any:
        """A module of LLVM's after its optimisations, and verified.

        Code generation aborts the process at an ill-formed module, and LLVM's optimisations can
        make one of a correct one.  Known of LLVM 22: an array in pieces that straight-line code
        stores as vectors, which a vectorised loop loads as one, is merged where the last piece is
        stored, though another may be computed later (llvm-project, pull request 189680).  So what
        is ill-formed is optimised again with less vectorisation.
        """
        lines = text.count("\n")
        level = next((level for most, level in LEVELS if lines <= most), 1)
        for vectors in VECTORS if level > 1 else VECTORS[-1:]:
            module = self._optimised(text, level, *vectors)
            try:
                module.verify()
                break
            except RuntimeError:
                if vectors == VECTORS[-1]:
                    raise
        return module

    def _optimised(self, text: str, level: int, straight: bool, loops: bool) -> Any:
        """A module after optimisations, with straight-line code and loops as vectors or not."""
        llvm = self.llvm
        for option in OPTIONS:
            llvm.set_option("", option)
        listen()
        # In a context of its own: what a shared one holds of a module's constants stays in it.
        module = llvm.parse_assembly(text, llvm.create_context())
        listen()
        options = llvm.create_pipeline_tuning_options(speed_level=level)
        options.slp_vectorization, options.loop_vectorization = straight, loops
        options.loop_interleaving = level > 2
        passes = llvm.create_pass_builder(self.machine, options)
        self._run(passes.getModulePassManager(), module, passes)
        listen()
        self._put_in(module, passes)
        return module

    def _run(self, manager: Any, module: Any, passes: Any) -> None:
        """Run a pass manager, and free it.

        llvmlite does not: of the two methods that its class inherits for this, the first is empty.
        """
        try:
            manager.run(module, passes)
        finally:
            self.llvm.newpassmanagers.NewPassManager._dispose(manager)
            manager.detach()

    def _put_in(self, module: Any, passes: Any) -> None:
        """Inline `TURN` into its callers, after equal calls of it have been merged.

        Around a call all vector registers would have to be saved.
        """
        if 0 < str(module).count(f"@{TURN}(") - 1 <= MOST_TURNS:
            module.get_function(TURN).add_function_attribute("alwaysinline")
            last = self.llvm.create_new_module_pass_manager()
            last.add_always_inliner_pass()
            self._run(last, module, passes)
            listen()

    def assembly(self, text: str) -> str:
        """The machine code of a module, to be read."""
        result: str = self.machine.emit_assembly(self.optimised(text))
        return result


@cache
def compiler() -> Compiler:
    """The only compiler; UsageError U002 if it is not available."""
    return aside(Compiler)
