/* Half the sum of squares of reprojection errors, and the reversible adjoint. */
#include <math.h>
#include <stdint.h>

typedef struct {
    double angle, c, s, a[3], v[3], dot, along, r[3], p[2], far, lens, scale, q[2], e[2], ew;
} sight;

static inline sight look(const double *restrict cam, const double *restrict X, double w,
                         const double *restrict seen) {
    sight t;
    t.angle = sqrt(cam[0] * cam[0] + cam[1] * cam[1] + cam[2] * cam[2]);
    t.c = cos(t.angle);
    t.s = sin(t.angle);
    for (int k = 0; k < 3; k++) {
        t.a[k] = cam[k] / t.angle;
        t.v[k] = X[k] - cam[3 + k];
    }
    t.dot = t.a[0] * t.v[0] + t.a[1] * t.v[1] + t.a[2] * t.v[2];
    t.along = t.dot * (1.0 - t.c);
    t.r[0] = t.v[0] * t.c + (t.a[1] * t.v[2] - t.a[2] * t.v[1]) * t.s + t.a[0] * t.along;
    t.r[1] = t.v[1] * t.c + (t.a[2] * t.v[0] - t.a[0] * t.v[2]) * t.s + t.a[1] * t.along;
    t.r[2] = t.v[2] * t.c + (t.a[0] * t.v[1] - t.a[1] * t.v[0]) * t.s + t.a[2] * t.along;
    t.p[0] = t.r[0] / t.r[2];
    t.p[1] = t.r[1] / t.r[2];
    t.far = t.p[0] * t.p[0] + t.p[1] * t.p[1];
    t.lens = 1.0 + cam[9] * t.far + cam[10] * t.far * t.far;
    t.scale = cam[6] * t.lens;
    for (int k = 0; k < 2; k++) {
        t.q[k] = t.scale * t.p[k] + cam[7 + k] - seen[k];
        t.e[k] = w * t.q[k];
    }
    t.ew = 1.0 - w * w;
    return t;
}

void forward(double *restrict y, const double *restrict cams, const double *restrict X,
             const double *restrict w, const int64_t *restrict which, const double *restrict seen,
             int64_t o) {
    double sum = *y;
    for (int64_t i = 0; i < o; i++) {
        const sight t = look(cams + 11 * which[2 * i], X + 3 * which[2 * i + 1], w[i], seen + 2 * i);
        sum += 0.5 * (t.e[0] * t.e[0] + t.e[1] * t.e[1] + t.ew * t.ew);
    }
    *y = sum;
}

/* Adjoints begin as zero; that of y is 1. */
void gradient(double *restrict y, const double *restrict cams, const double *restrict X,
              const double *restrict w, const int64_t *restrict which,
              const double *restrict seen, int64_t o, double *restrict cams_bar,
              double *restrict X_bar, double *restrict w_bar, double *restrict seen_bar) {
    forward(y, cams, X, w, which, seen, o);
    double sum = *y;
    for (int64_t i = o - 1; i >= 0; i--) {
        const double *restrict cam = cams + 11 * which[2 * i];
        double *restrict cb = cams_bar + 11 * which[2 * i];
        double *restrict Xb = X_bar + 3 * which[2 * i + 1];
        const sight t = look(cam, X + 3 * which[2 * i + 1], w[i], seen + 2 * i);
        sum -= 0.5 * (t.e[0] * t.e[0] + t.e[1] * t.e[1] + t.ew * t.ew);
        double pb[2], scale_bar = 0;
        w_bar[i] += t.e[0] * t.q[0] + t.e[1] * t.q[1] - 2 * w[i] * t.ew;
        for (int k = 0; k < 2; k++) {
            const double qb = t.e[k] * w[i];
            seen_bar[2 * i + k] -= qb;
            cb[7 + k] += qb;
            scale_bar += qb * t.p[k];
            pb[k] = qb * t.scale;
        }
        cb[6] += scale_bar * t.lens;
        const double lens_bar = scale_bar * cam[6];
        cb[9] += lens_bar * t.far;
        cb[10] += lens_bar * t.far * t.far;
        const double far_bar = lens_bar * (cam[9] + 2 * cam[10] * t.far);
        pb[0] += 2 * far_bar * t.p[0];
        pb[1] += 2 * far_bar * t.p[1];
        double rb[3], ab[3], vb[3];
        rb[0] = pb[0] / t.r[2];
        rb[1] = pb[1] / t.r[2];
        rb[2] = -(rb[0] * t.p[0] + rb[1] * t.p[1]);
        const double s = t.s, *a = t.a, *v = t.v;
        const double along_bar = rb[0] * a[0] + rb[1] * a[1] + rb[2] * a[2];
        const double dot_bar = along_bar * (1.0 - t.c);
        const double c_bar = rb[0] * v[0] + rb[1] * v[1] + rb[2] * v[2] - along_bar * t.dot;
        const double s_bar = rb[0] * (a[1] * v[2] - a[2] * v[1]) + rb[1] * (a[2] * v[0] - a[0] * v[2])
                             + rb[2] * (a[0] * v[1] - a[1] * v[0]);
        ab[0] = rb[0] * t.along + s * (rb[2] * v[1] - rb[1] * v[2]) + dot_bar * v[0];
        ab[1] = rb[1] * t.along + s * (rb[0] * v[2] - rb[2] * v[0]) + dot_bar * v[1];
        ab[2] = rb[2] * t.along + s * (rb[1] * v[0] - rb[0] * v[1]) + dot_bar * v[2];
        vb[0] = rb[0] * t.c + s * (rb[1] * a[2] - rb[2] * a[1]) + dot_bar * a[0];
        vb[1] = rb[1] * t.c + s * (rb[2] * a[0] - rb[0] * a[2]) + dot_bar * a[1];
        vb[2] = rb[2] * t.c + s * (rb[0] * a[1] - rb[1] * a[0]) + dot_bar * a[2];
        const double along_axis = ab[0] * a[0] + ab[1] * a[1] + ab[2] * a[2];
        const double angle_bar = s_bar * t.c - c_bar * s - along_axis / t.angle;
        for (int k = 0; k < 3; k++) {
            cb[k] += ab[k] / t.angle + angle_bar * a[k];
            cb[3 + k] -= vb[k];
            Xb[k] += vb[k];
        }
    }
    *y = sum;
}
