/* The sparse Jacobian of reprojection errors, by a formula for each derivative. */
#include <math.h>
#include <stdint.h>

/* rows[i][k] += by the camera (11), the point (3), the weight, and what was seen (2) */
void forward(double *restrict rows, const double *restrict cams, const double *restrict X,
             const double *restrict w, const int64_t *restrict which, const double *restrict seen,
             int64_t o) {
    for (int64_t i = 0; i < o; i++) {
        const double *restrict cam = cams + 11 * which[2 * i];
        const double *restrict at = X + 3 * which[2 * i + 1];
        const double angle = sqrt(cam[0] * cam[0] + cam[1] * cam[1] + cam[2] * cam[2]);
        const double c = cos(angle), s = sin(angle), over = 1.0 / angle;
        const double a0 = cam[0] * over, a1 = cam[1] * over, a2 = cam[2] * over;
        const double v0 = at[0] - cam[3], v1 = at[1] - cam[4], v2 = at[2] - cam[5];
        const double x0 = a1 * v2 - a2 * v1, x1 = a2 * v0 - a0 * v2, x2 = a0 * v1 - a1 * v0;
        const double dot = a0 * v0 + a1 * v1 + a2 * v2, along = dot * (1.0 - c);
        const double r0 = v0 * c + x0 * s + a0 * along;
        const double r1 = v1 * c + x1 * s + a1 * along;
        const double r2 = v2 * c + x2 * s + a2 * along;
        /* the derivative by the angle */
        const double t0 = x0 * c + (a0 * dot - v0) * s;
        const double t1 = x1 * c + (a1 * dot - v1) * s;
        const double t2 = x2 * c + (a2 * dot - v2) * s;
        const double depth = 1.0 / r2, px = r0 * depth, py = r1 * depth;
        const double far = px * px + py * py;
        const double lens = 1.0 + far * (cam[9] + cam[10] * far);
        const double scale = cam[6] * lens, bend = 2.0 * cam[6] * (cam[9] + 2.0 * cam[10] * far);
        const double wi = w[i];
        for (int k = 0; k < 2; k++) {
            double *restrict row = rows + 34 * i + 17 * k;
            const double p = k ? py : px, by_scale = wi * p;
            const double gx = (by_scale * bend * px + (k ? 0.0 : wi * scale)) * depth;
            const double gy = (by_scale * bend * py + (k ? wi * scale : 0.0)) * depth;
            const double gz = -(gx * px + gy * py);
            /* v x g, and the derivatives by v, by a and by the angle */
            const double y0 = v1 * gz - v2 * gy, y1 = v2 * gx - v0 * gz, y2 = v0 * gy - v1 * gx;
            const double ga = (a0 * gx + a1 * gy + a2 * gz) * (1.0 - c), dotc = dot * (1.0 - c);
            const double g0 = gx * c - (a1 * gz - a2 * gy) * s + a0 * ga;
            const double g1 = gy * c - (a2 * gx - a0 * gz) * s + a1 * ga;
            const double g2 = gz * c - (a0 * gy - a1 * gx) * s + a2 * ga;
            const double b0 = s * y0 + dotc * gx + ga * v0;
            const double b1 = s * y1 + dotc * gy + ga * v1;
            const double b2 = s * y2 + dotc * gz + ga * v2;
            const double turn = gx * t0 + gy * t1 + gz * t2;
            const double rest = turn - (a0 * b0 + a1 * b1 + a2 * b2) * over;
            row[0] += b0 * over + a0 * rest;
            row[1] += b1 * over + a1 * rest;
            row[2] += b2 * over + a2 * rest;
            row[3] -= g0;
            row[4] -= g1;
            row[5] -= g2;
            row[6] += by_scale * lens;
            row[7 + k] += wi;
            row[9] += by_scale * cam[6] * far;
            row[10] += by_scale * cam[6] * far * far;
            row[11] += g0;
            row[12] += g1;
            row[13] += g2;
            row[14] += scale * p + cam[7 + k] - seen[2 * i + k];
            row[15 + k] -= wi;
        }
    }
}
