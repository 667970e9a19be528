/* A string that swings, and the reversible adjoint of a seed for u. */
#include <stdint.h>

void forward(double *restrict u, double *restrict v, int64_t n, int64_t steps, double k) {
    for (int64_t t = 0; t < steps; t++) {
        for (int64_t i = 1; i < n - 1; i++) v[i] += k * (u[i - 1] - 2.0 * u[i] + u[i + 1]);
        for (int64_t i = 0; i < n; i++) u[i] += v[i];
    }
}

/* `ub` holds the seed; the adjoint of v begins as zero. */
void gradient(double *restrict u, double *restrict v, int64_t n, int64_t steps, double k,
              double *restrict ub, double *restrict vb, double *restrict kb) {
    forward(u, v, n, steps, k);
    double sum = 0;
    for (int64_t t = 0; t < steps; t++) {
        for (int64_t i = 0; i < n; i++) {
            u[i] -= v[i];
            vb[i] += ub[i];
        }
        for (int64_t i = 1; i < n - 1; i++) {
            const double w = u[i - 1] - 2.0 * u[i] + u[i + 1];
            v[i] -= k * w;
            sum += vb[i] * w;
        }
        for (int64_t i = 1; i < n - 1; i++) {
            const double g = k * vb[i];
            ub[i - 1] += g;
            ub[i] -= 2.0 * g;
            ub[i + 1] += g;
        }
    }
    *kb += sum;
}
