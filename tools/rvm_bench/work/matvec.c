/* A sparse matrix in compressed rows times a vector, and the reversible adjoint of a seed for y. */
#include <stdint.h>

void forward(double *restrict y, const int64_t *restrict start, const int64_t *restrict column,
             const double *restrict value, const double *restrict x, int64_t m) {
    for (int64_t i = 0; i < m; i++) {
        double s = y[i];
        for (int64_t k = start[i]; k < start[i + 1]; k++) s += value[k] * x[column[k]];
        y[i] = s;
    }
}

void gradient(double *restrict y, const int64_t *restrict start, const int64_t *restrict column,
              const double *restrict value, const double *restrict x, int64_t m,
              const double *restrict yb, double *restrict vb, double *restrict xb) {
    forward(y, start, column, value, x, m);
    for (int64_t i = m - 1; i >= 0; i--) {
        double s = y[i];
        const double g = yb[i];
        for (int64_t k = start[i + 1] - 1; k >= start[i]; k--) {
            s -= value[k] * x[column[k]];
            vb[k] += g * x[column[k]];
            xb[column[k]] += g * value[k];
        }
        y[i] = s;
    }
}
