/* A planet about a sun at rest, and the reversible adjoint: no tape, every step is undone. */
#include <math.h>
#include <stdint.h>

typedef struct { double x, y, u, v; } state;

static inline state run(state s, int64_t n, double h) {
    const double half = 0.5 * h;
    for (int64_t k = 0; k < n; k++) {
        s.x += half * s.u;
        s.y += half * s.v;
        const double r = s.x * s.x + s.y * s.y;
        const double g = h / (r * sqrt(r));
        s.u -= g * s.x;
        s.v -= g * s.y;
        s.x += half * s.u;
        s.y += half * s.v;
    }
    return s;
}

void forward(double *restrict q, int64_t n, double h) {
    const state s = run((state){q[0], q[1], q[2], q[3]}, n, h);
    q[0] = s.x; q[1] = s.y; q[2] = s.u; q[3] = s.v;
}

/* `bar`: the adjoints of x, y, u, v and h. */
void gradient(double *restrict q, int64_t n, double h, double *restrict bar) {
    state s = run((state){q[0], q[1], q[2], q[3]}, n, h);
    double xb = bar[0], yb = bar[1], ub = bar[2], vb = bar[3], hb = bar[4], halfb = 0;
    const double half = 0.5 * h;
    for (int64_t k = 0; k < n; k++) {
        s.x -= half * s.u;
        s.y -= half * s.v;
        halfb += xb * s.u + yb * s.v;
        ub += half * xb;
        vb += half * yb;
        const double r = s.x * s.x + s.y * s.y;
        const double d = r * sqrt(r);
        const double g = h / d;
        s.u += g * s.x;
        s.v += g * s.y;
        const double gb = -(ub * s.x + vb * s.y);
        hb += gb / d;
        const double rb = -3 * gb * g / r;       /* twice the adjoint of r */
        xb += rb * s.x - g * ub;
        yb += rb * s.y - g * vb;
        s.x -= half * s.u;
        s.y -= half * s.v;
        halfb += xb * s.u + yb * s.v;
        ub += half * xb;
        vb += half * yb;
    }
    q[0] = s.x; q[1] = s.y; q[2] = s.u; q[3] = s.v;
    bar[0] = xb; bar[1] = yb; bar[2] = ub; bar[3] = vb; bar[4] = hb + 0.5 * halfb;
}
