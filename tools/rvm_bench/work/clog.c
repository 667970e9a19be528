/* y += log x of complex numbers, and the reversible adjoint of a seed for y. */
#include <math.h>
#include <stdint.h>

void forward(double *restrict y, const double *restrict x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const double a = x[2 * i], b = x[2 * i + 1];
        y[2 * i] += log(sqrt(a * a + b * b));
        y[2 * i + 1] += atan2(b, a);
    }
}

void gradient(double *restrict y, const double *restrict x, int64_t n, const double *restrict yb,
              double *restrict xb) {
    forward(y, x, n);
    for (int64_t i = n - 1; i >= 0; i--) {
        const double a = x[2 * i], b = x[2 * i + 1], square = a * a + b * b;
        y[2 * i] -= log(sqrt(square));
        y[2 * i + 1] -= atan2(b, a);
        const double u = yb[2 * i] / square, v = yb[2 * i + 1] / square;
        xb[2 * i] += u * a - v * b;
        xb[2 * i + 1] += u * b + v * a;
    }
}
