/* The sparse Jacobian of reprojection errors, by formulas for all derivatives.

   The derivative of g R v by the rotation's vector is (v x g R) M, with one matrix M for both rows:
   by the axis a, the sine s and 1 - cosine d of the angle, (s I + (angle - s) a a^T - d [a]x) / angle.
   Source: G. Gallego and A. Yezzi, "A compact formula for the derivative of a 3-D rotation in
   exponential coordinates", Journal of Mathematical Imaging and Vision 51 (2015). */
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
        const double c = cos(angle), s = sin(angle), d = 1.0 - c, over = 1.0 / angle;
        const double a0 = cam[0] * over, a1 = cam[1] * over, a2 = cam[2] * over;
        const double v0 = at[0] - cam[3], v1 = at[1] - cam[4], v2 = at[2] - cam[5];
        const double d0 = d * a0, d1 = d * a1, d2 = d * a2;
        const double s0 = s * a0, s1 = s * a1, s2 = s * a2;
        const double d01 = d0 * a1, d02 = d0 * a2, d12 = d1 * a2;
        const double R00 = c + d0 * a0, R01 = d01 - s2, R02 = d02 + s1;
        const double R10 = d01 + s2, R11 = c + d1 * a1, R12 = d12 - s0;
        const double R20 = d02 - s1, R21 = d12 + s0, R22 = c + d2 * a2;
        const double depth = 1.0 / (R20 * v0 + R21 * v1 + R22 * v2);
        const double px = (R00 * v0 + R01 * v1 + R02 * v2) * depth;
        const double py = (R10 * v0 + R11 * v1 + R12 * v2) * depth;
        const double so = s * over, e = 1.0 - so;
        const double e0 = e * a0, e1 = e * a1, e2 = e * a2;
        const double p0 = d0 * over, p1 = d1 * over, p2 = d2 * over;
        const double e01 = e0 * a1, e02 = e0 * a2, e12 = e1 * a2;
        const double M00 = so + e0 * a0, M01 = e01 + p2, M02 = e02 - p1;
        const double M10 = e01 - p2, M11 = so + e1 * a1, M12 = e12 + p0;
        const double M20 = e02 + p1, M21 = e12 - p0, M22 = so + e2 * a2;
        const double far = px * px + py * py, f = cam[6], wi = w[i], over_depth = wi * depth;
        const double lens = 1.0 + far * (cam[9] + cam[10] * far), scale = f * lens;
        const double bend = 2.0 * f * (cam[9] + 2.0 * cam[10] * far);
        const double gxx = (scale + bend * px * px) * over_depth;
        const double gyy = (scale + bend * py * py) * over_depth;
        const double gxy = bend * px * py * over_depth;
        for (int k = 0; k < 2; k++) {
            double *restrict row = rows + 34 * i + 17 * k;
            const double p = k ? py : px, gx = k ? gxy : gxx, gy = k ? gyy : gxy;
            const double gz = -(gx * px + gy * py);
            /* g, by the turned point; g R, by the point; v x g R */
            const double g0 = R00 * gx + R10 * gy + R20 * gz;
            const double g1 = R01 * gx + R11 * gy + R21 * gz;
            const double g2 = R02 * gx + R12 * gy + R22 * gz;
            const double h0 = v1 * g2 - v2 * g1, h1 = v2 * g0 - v0 * g2, h2 = v0 * g1 - v1 * g0;
            const double by_scale = wi * p, by_lens = by_scale * f * far;
            row[0] += h0 * M00 + h1 * M10 + h2 * M20;
            row[1] += h0 * M01 + h1 * M11 + h2 * M21;
            row[2] += h0 * M02 + h1 * M12 + h2 * M22;
            row[3] -= g0;
            row[4] -= g1;
            row[5] -= g2;
            row[6] += by_scale * lens;
            row[7 + k] += wi;
            row[9] += by_lens;
            row[10] += by_lens * far;
            row[11] += g0;
            row[12] += g1;
            row[13] += g2;
            row[14] += scale * p + cam[7 + k] - seen[2 * i + k];
            row[15 + k] -= wi;
        }
    }
}
