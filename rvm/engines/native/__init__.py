"""The native engine: functions compiled by LLVM through llvmlite."""
