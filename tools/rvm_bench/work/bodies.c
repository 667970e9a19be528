/* Bodies that pull at each other, and the reversible adjoint. */
#include <math.h>
#include <stdint.h>

static inline void kick(double *restrict v, const double *restrict x, const double *restrict m,
                        double h, int64_t n) {
    for (int64_t i = 0; i < n - 1; i++)
        for (int64_t j = i + 1; j < n; j++) {
            const double dx = x[3 * i] - x[3 * j];
            const double dy = x[3 * i + 1] - x[3 * j + 1];
            const double dz = x[3 * i + 2] - x[3 * j + 2];
            const double r = dx * dx + dy * dy + dz * dz;
            const double g = h / (r * sqrt(r));
            const double gi = m[i] * g, gj = m[j] * g;
            v[3 * i] -= gj * dx;
            v[3 * i + 1] -= gj * dy;
            v[3 * i + 2] -= gj * dz;
            v[3 * j] += gi * dx;
            v[3 * j + 1] += gi * dy;
            v[3 * j + 2] += gi * dz;
        }
}

static inline void drift(double *restrict x, const double *restrict v, double h, int64_t n) {
    for (int64_t i = 0; i < 3 * n; i++) x[i] += h * v[i];
}

void forward(double *restrict e, double *restrict x, double *restrict v, const double *restrict m,
             int64_t steps, double h, int64_t n) {
    for (int64_t t = 0; t < steps; t++) {
        drift(x, v, 0.5 * h, n);
        kick(v, x, m, h, n);
        drift(x, v, 0.5 * h, n);
    }
    for (int64_t i = 0; i < n; i++)
        *e += 0.5 * m[i] * (v[3 * i] * v[3 * i] + v[3 * i + 1] * v[3 * i + 1]
                            + v[3 * i + 2] * v[3 * i + 2]);
}

static inline double undrift(double *restrict x, const double *restrict v, double h, int64_t n,
                             const double *restrict xb, double *restrict vb) {
    double hb = 0;
    for (int64_t i = 0; i < 3 * n; i++) {
        x[i] -= h * v[i];
        hb += xb[i] * v[i];
        vb[i] += h * xb[i];
    }
    return hb;
}

static inline double unkick(double *restrict v, const double *restrict x, const double *restrict m,
                            double h, int64_t n, double *restrict xb, const double *restrict vb,
                            double *restrict mb) {
    double hb = 0;
    for (int64_t i = n - 2; i >= 0; i--)
        for (int64_t j = n - 1; j > i; j--) {
            const double dx = x[3 * i] - x[3 * j];
            const double dy = x[3 * i + 1] - x[3 * j + 1];
            const double dz = x[3 * i + 2] - x[3 * j + 2];
            const double r = dx * dx + dy * dy + dz * dz;
            const double d = r * sqrt(r);
            const double g = h / d;
            const double gi = m[i] * g, gj = m[j] * g;
            v[3 * i] += gj * dx;
            v[3 * i + 1] += gj * dy;
            v[3 * i + 2] += gj * dz;
            v[3 * j] -= gi * dx;
            v[3 * j + 1] -= gi * dy;
            v[3 * j + 2] -= gi * dz;
            const double wi = vb[3 * i] * dx + vb[3 * i + 1] * dy + vb[3 * i + 2] * dz;
            const double wj = vb[3 * j] * dx + vb[3 * j + 1] * dy + vb[3 * j + 2] * dz;
            mb[i] += wj * g;
            mb[j] -= wi * g;
            const double gb = m[i] * wj - m[j] * wi;
            hb += gb / d;
            const double rb = -3 * gb * g / r;
            const double bx = gi * vb[3 * j] - gj * vb[3 * i] + rb * dx;
            const double by = gi * vb[3 * j + 1] - gj * vb[3 * i + 1] + rb * dy;
            const double bz = gi * vb[3 * j + 2] - gj * vb[3 * i + 2] + rb * dz;
            xb[3 * i] += bx;
            xb[3 * i + 1] += by;
            xb[3 * i + 2] += bz;
            xb[3 * j] -= bx;
            xb[3 * j + 1] -= by;
            xb[3 * j + 2] -= bz;
        }
    return hb;
}

/* Adjoints begin as zero; that of e is 1.  The adjoint of h is added to `hb`. */
void gradient(double *restrict e, double *restrict x, double *restrict v, const double *restrict m,
              int64_t steps, double h, int64_t n, double *restrict xb, double *restrict vb,
              double *restrict mb, double *restrict hb) {
    forward(e, x, v, m, steps, h, n);
    for (int64_t i = 0; i < n; i++) {
        const double w = v[3 * i] * v[3 * i] + v[3 * i + 1] * v[3 * i + 1]
                         + v[3 * i + 2] * v[3 * i + 2];
        *e -= 0.5 * m[i] * w;
        mb[i] += 0.5 * w;
        for (int64_t k = 0; k < 3; k++) vb[3 * i + k] += m[i] * v[3 * i + k];
    }
    double whole = 0, half = 0;
    for (int64_t t = 0; t < steps; t++) {
        half += undrift(x, v, 0.5 * h, n, xb, vb);
        whole += unkick(v, x, m, h, n, xb, vb, mb);
        half += undrift(x, v, 0.5 * h, n, xb, vb);
    }
    *hb += whole + 0.5 * half;
}
