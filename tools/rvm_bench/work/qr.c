/* A = QR by Gram and Schmidt, and the reversible adjoint of seeds for Q and R. */
#include <math.h>
#include <stdint.h>

/* Columns are contiguous here: q, r and a hold the transposed matrices. */
void forward(double *restrict q, double *restrict r, const double *restrict a, int64_t m,
             int64_t n, double *restrict v) {
    for (int64_t c = 0; c < n; c++) {
        for (int64_t i = 0; i < m; i++) v[i] = a[c * m + i];
        for (int64_t k = 0; k < c; k++) {
            double s = 0;
            for (int64_t i = 0; i < m; i++) s += q[k * m + i] * v[i];
            r[c * n + k] += s;
            for (int64_t i = 0; i < m; i++) v[i] -= s * q[k * m + i];
        }
        double s = 0;
        for (int64_t i = 0; i < m; i++) s += v[i] * v[i];
        r[c * n + c] += sqrt(s);
        for (int64_t i = 0; i < m; i++) q[c * m + i] += v[i] / r[c * n + c];
    }
}
