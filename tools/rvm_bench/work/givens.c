/* A vector rotated n (n - 1) / 2 times, and the reversible adjoint of a seed for x. */
#include <math.h>
#include <stdint.h>

void forward(double *restrict x, const double *restrict t, int64_t n) {
    int64_t k = 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = n - 2; i >= j; i--, k++) {
            const double c = cos(t[k]), s = sin(t[k]), a = x[i], b = x[i + 1];
            x[i] = a * c - b * s;
            x[i + 1] = a * s + b * c;
        }
}

void gradient(double *restrict x, const double *restrict t, int64_t n, double *restrict xb,
              double *restrict tb) {
    forward(x, t, n);
    int64_t k = n * (n - 1) / 2 - 1;
    for (int64_t j = n - 1; j >= 0; j--)
        for (int64_t i = j; i <= n - 2; i++, k--) {
            const double c = cos(t[k]), s = sin(t[k]), a = x[i], b = x[i + 1];
            const double ab = xb[i], bb = xb[i + 1];
            tb[k] += bb * a - ab * b;
            x[i] = a * c + b * s;
            x[i + 1] = b * c - a * s;
            xb[i] = ab * c + bb * s;
            xb[i + 1] = bb * c - ab * s;
        }
}
