"""Printers from statements to LLVM's assembly language."""
