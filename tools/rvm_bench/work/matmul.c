/* C += A B by three loops, and the reversible adjoint of a seed for C. */
#include <stdint.h>

void forward(double *restrict c, const double *restrict a, const double *restrict b, int64_t m,
             int64_t n, int64_t p) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = 0; j < p; j++) c[i * p + j] += a[i * n + k] * b[k * p + j];
}

void gradient(double *restrict c, const double *restrict a, const double *restrict b, int64_t m,
              int64_t n, int64_t p, const double *restrict cb, double *restrict ab,
              double *restrict bb) {
    forward(c, a, b, m, n, p);
    for (int64_t i = m - 1; i >= 0; i--)
        for (int64_t k = n - 1; k >= 0; k--) {
            for (int64_t j = 0; j < p; j++) {
                c[i * p + j] -= a[i * n + k] * b[k * p + j];
                bb[k * p + j] += cb[i * p + j] * a[i * n + k];
            }
            double s = 0;
            for (int64_t j = 0; j < p; j++) s += cb[i * p + j] * b[k * p + j];
            ab[i * n + k] += s;
        }
}
