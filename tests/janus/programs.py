"""Janus programs with what their variables are at the end."""

FIBONACCI = """
procedure fib(int x1, int x2, int n)
    if n = 0 then
        x1 += 1   x2 += 1
    else
        n -= 1
        call fib(x1, x2, n)
        x1 += x2
        x1 <=> x2
    fi x1 = x2

procedure main()
    int x1  int x2  int n = 10
    call fib(x1, x2, n)
"""
GLOBALS = """
// the same without parameters
n x1 x2
procedure fib
  if n=0 then x1 += 1  x2 += 1
  else n -= 1  call fib  x1 += x2  x1 <=> x2
  fi x1=x2
procedure main_fwd
  n += 10
  call fib
procedure main_bwd
  x1 += 89  x2 += 144
  uncall fib
"""
LETTERS = """
/* pairs of a letter and how often it comes, from the top of one stack to another */
procedure pack(stack text, stack pairs)
    from !empty(text) && empty(pairs) do
        local int letter = top(text), int n = 0
        from n = 0 do
            local int one = 0
            pop(one, text)
            delocal int one = letter
            n += 1
        until empty(text) || top(text) != letter
        push(letter, pairs)
        push(n, pairs)
        delocal int letter = 0, int n = 0
    until empty(text)

procedure main()
    stack text
    stack pairs
    push(7, text) push(7, text) push(5, text) push(5, text) push(5, text) push(7, text)
    call pack(text, pairs)
"""
MATRIX = """
procedure times(int c[][], int a[][], int b[][], int n)
    iterate int i = 0 to n - 1
        iterate int j = n - 1 by -1 to 0
            iterate int k = 0 to n - 1
                c[i][j] += a[i][k] * b[k][j]
            end
        end
    end

procedure main()
    int a[2][2] = {{1, 2}, {3, 4}}
    int b[2][2] = {{5, 6}, {7}}
    int c[2][2]
    call times(c, a, b, 2)
"""
PROGRAMS = {
    "fibonacci": (FIBONACCI, {"n": 0, "x1": 89, "x2": 144}),
    "globals": (GLOBALS, {"n": 0, "x1": 89, "x2": 144}),
    "letters": (LETTERS, {"text": [], "pairs": [2, 7, 3, 5, 1, 7]}),
    "matrix": (
        MATRIX,
        {"a": [[1, 2], [3, 4]], "b": [[5, 6], [7, 0]], "c": [[19, 6], [43, 18]]},
    ),
}
