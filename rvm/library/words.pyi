"""The words of reversible functions, for type checkers: tests/python/test_door.py writes this."""

from typing import Any

__all__ = [  # noqa: RUF022
    "abs",
    "abs2",
    "acos",
    "acosh",
    "add",
    "adjoint_of",
    "amax",
    "amin",
    "ancilla",
    "angle",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bool",
    "c128",
    "cbrt",
    "checked_add",
    "checked_sub",
    "choose",
    "cis",
    "complex",
    "compute",
    "conj",
    "cos",
    "cosh",
    "cswap",
    "dec",
    "detach",
    "digamma",
    "dim",
    "div",
    "dot",
    "empty",
    "erf",
    "erfc",
    "exch",
    "exp",
    "exp2",
    "exp_log64",
    "expm1",
    "f32",
    "f64",
    "first_max",
    "fixed",
    "floor",
    "for_end",
    "gather",
    "gradient_of",
    "hadamard",
    "high_product",
    "hypot",
    "i16",
    "i32",
    "i64",
    "i8",
    "identity",
    "imag",
    "inc",
    "irot",
    "iterate",
    "last_min",
    "leg",
    "len",
    "lgamma",
    "lift_odd",
    "lift_sin",
    "lift_tan",
    "log",
    "log10",
    "log1p",
    "log2",
    "log64",
    "logsumexp",
    "loop",
    "map",
    "matmul",
    "matvec",
    "max",
    "min",
    "mul",
    "neg",
    "odd_product",
    "odd_quotient",
    "outer",
    "polygamma",
    "pop",
    "prod",
    "prod_others",
    "prod_others_1",
    "prod_others_2",
    "push",
    "real",
    "relu",
    "rol",
    "ror",
    "rot",
    "rotl",
    "rotr",
    "scaled",
    "scan_left",
    "scan_right",
    "scatter",
    "sech",
    "select",
    "shear",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "softplus",
    "spread_like",
    "sqrt",
    "square",
    "sub",
    "sum",
    "sum_like",
    "swap",
    "tan",
    "tangent_of",
    "tanh",
    "top",
    "transpose",
    "turned",
    "u16",
    "u32",
    "u64",
    "u8",
    "unmul",
    "versor",
    "xor",
]

_any: Any
bool = _any.bool
c128 = _any.c128
f32 = _any.f32
f64 = _any.f64
fixed = _any.fixed
i16 = _any.i16
i32 = _any.i32
i64 = _any.i64
i8 = _any.i8
log64 = _any.log64
u16 = _any.u16
u32 = _any.u32
u64 = _any.u64
u8 = _any.u8
abs: Any
abs2: Any
acos: Any
acosh: Any
add: Any
adjoint_of: Any
amax: Any
amin: Any
ancilla: Any
angle: Any
asin: Any
asinh: Any
atan: Any
atan2: Any
atanh: Any
cbrt: Any
checked_add: Any
checked_sub: Any
choose: Any
cis: Any
complex: Any
compute: Any
conj: Any
cos: Any
cosh: Any
cswap: Any
dec: Any
detach: Any
digamma: Any
dim: Any
div: Any
dot: Any
empty: Any
erf: Any
erfc: Any
exch: Any
exp: Any
exp2: Any
exp_log64: Any
expm1: Any
first_max: Any
floor: Any
for_end: Any
gather: Any
gradient_of: Any
hadamard: Any
high_product: Any
hypot: Any
identity: Any
imag: Any
inc: Any
irot: Any
iterate: Any
last_min: Any
leg: Any
len: Any
lgamma: Any
lift_odd: Any
lift_sin: Any
lift_tan: Any
log: Any
log10: Any
log1p: Any
log2: Any
logsumexp: Any
loop: Any
map: Any
matmul: Any
matvec: Any
max: Any
min: Any
mul: Any
neg: Any
odd_product: Any
odd_quotient: Any
outer: Any
polygamma: Any
pop: Any
prod: Any
prod_others: Any
prod_others_1: Any
prod_others_2: Any
push: Any
real: Any
relu: Any
rol: Any
ror: Any
rot: Any
rotl: Any
rotr: Any
scaled: Any
scan_left: Any
scan_right: Any
scatter: Any
sech: Any
select: Any
shear: Any
sigmoid: Any
sign: Any
sin: Any
sinh: Any
softplus: Any
spread_like: Any
sqrt: Any
square: Any
sub: Any
sum: Any
sum_like: Any
swap: Any
tan: Any
tangent_of: Any
tanh: Any
top: Any
transpose: Any
turned: Any
unmul: Any
versor: Any
xor: Any
