/* The logarithm of a mixture's posterior density, without constants, and its reversible adjoint:
   what is accumulated in y is taken out again point by point, and nothing else is kept. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define MOST_D 64
#define MOST_K 256

static inline void centred(double *restrict z, double *restrict dx, const double *restrict x,
                           const double *restrict mean, const double *restrict diagonal,
                           const double *restrict below, int64_t d) {
    for (int64_t a = 0; a < d; a++) {
        dx[a] = x[a] - mean[a];
        z[a] = diagonal[a] * dx[a];
    }
    for (int64_t b = 0; b < d - 1; b++) {
        const double *restrict column = below + b * (2 * d - b - 1) / 2 - b - 1;
        for (int64_t a = b + 1; a < d; a++) z[a] += column[a] * dx[b];
    }
}

static inline double log_sum(const double *restrict t, int64_t k, double *restrict weight) {
    double top = t[0], s = 0;
    for (int64_t j = 1; j < k; j++) top = t[j] > top ? t[j] : top;
    for (int64_t j = 0; j < k; j++) s += weight[j] = exp(t[j] - top);
    for (int64_t j = 0; j < k; j++) weight[j] /= s;
    return top + log(s);
}

static void prepare(double *restrict diagonal, double *restrict total, const double *restrict icf,
                    int64_t k, int64_t d, int64_t c) {
    for (int64_t j = 0; j < k; j++) {
        total[j] = 0;
        for (int64_t a = 0; a < d; a++) {
            diagonal[j * d + a] = exp(icf[j * c + a]);
            total[j] += icf[j * c + a];
        }
    }
}

void forward(double *restrict y, const double *restrict alphas, const double *restrict means,
             const double *restrict icf, const double *restrict x, int64_t n, int64_t k,
             int64_t d) {
    const int64_t c = d * (d + 1) / 2;
    double diagonal[MOST_K * MOST_D], total[MOST_K], t[MOST_K], w[MOST_K], z[MOST_D], dx[MOST_D];
    double sum = *y;
    prepare(diagonal, total, icf, k, d, c);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < k; j++) {
            centred(z, dx, x + i * d, means + j * d, diagonal + j * d, icf + j * c + d, d);
            double s = alphas[j] + total[j];
            for (int64_t a = 0; a < d; a++) s -= 0.5 * z[a] * z[a];
            t[j] = s;
        }
        sum += log_sum(t, k, w);
    }
    sum -= (double)n * log_sum(alphas, k, w);
    for (int64_t j = 0; j < k; j++) {
        for (int64_t a = 0; a < d; a++) sum += 0.5 * diagonal[j * d + a] * diagonal[j * d + a];
        for (int64_t a = d; a < c; a++) sum += 0.5 * icf[j * c + a] * icf[j * c + a];
    }
    *y = sum;
}

/* Adjoints begin as zero; that of y is 1. */
void gradient(double *restrict y, const double *restrict alphas, const double *restrict means,
              const double *restrict icf, const double *restrict x, int64_t n, int64_t k,
              int64_t d, double *restrict alphas_bar, double *restrict means_bar,
              double *restrict icf_bar, double *restrict x_bar) {
    const int64_t c = d * (d + 1) / 2;
    double diagonal[MOST_K * MOST_D], bar[MOST_K * MOST_D], total[MOST_K], t[MOST_K], w[MOST_K];
    double z[MOST_K * MOST_D], dx[MOST_K * MOST_D], total_bar[MOST_K], dx_bar[MOST_D];
    forward(y, alphas, means, icf, x, n, k, d);
    double sum = *y;
    prepare(diagonal, total, icf, k, d, c);
    memset(bar, 0, sizeof(double) * k * d);
    memset(total_bar, 0, sizeof(double) * k);
    for (int64_t j = 0; j < k; j++) {
        for (int64_t a = d; a < c; a++) {
            sum -= 0.5 * icf[j * c + a] * icf[j * c + a];
            icf_bar[j * c + a] += icf[j * c + a];
        }
        for (int64_t a = 0; a < d; a++) {
            sum -= 0.5 * diagonal[j * d + a] * diagonal[j * d + a];
            bar[j * d + a] += diagonal[j * d + a];
        }
    }
    sum += (double)n * log_sum(alphas, k, w);
    for (int64_t j = 0; j < k; j++) alphas_bar[j] -= (double)n * w[j];
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t j = 0; j < k; j++) {
            centred(z + j * d, dx + j * d, x + i * d, means + j * d, diagonal + j * d,
                    icf + j * c + d, d);
            double s = alphas[j] + total[j];
            for (int64_t a = 0; a < d; a++) s -= 0.5 * z[j * d + a] * z[j * d + a];
            t[j] = s;
        }
        sum -= log_sum(t, k, w);
        for (int64_t j = 0; j < k; j++) {
            double *restrict zj = z + j * d, *restrict dxj = dx + j * d;
            alphas_bar[j] += w[j];
            total_bar[j] += w[j];
            for (int64_t a = 0; a < d; a++) zj[a] *= -w[j];          /* the adjoint of z */
            for (int64_t a = 0; a < d; a++) {
                bar[j * d + a] += zj[a] * dxj[a];
                dx_bar[a] = zj[a] * diagonal[j * d + a];
            }
            for (int64_t b = 0; b < d - 1; b++) {
                const int64_t at = j * c + d + b * (2 * d - b - 1) / 2 - b - 1;
                double s = 0;
                for (int64_t a = b + 1; a < d; a++) {
                    icf_bar[at + a] += zj[a] * dxj[b];
                    s += icf[at + a] * zj[a];
                }
                dx_bar[b] += s;
            }
            for (int64_t a = 0; a < d; a++) {
                x_bar[i * d + a] += dx_bar[a];
                means_bar[j * d + a] -= dx_bar[a];
            }
        }
    }
    for (int64_t j = 0; j < k; j++)
        for (int64_t a = 0; a < d; a++)
            icf_bar[j * c + a] += total_bar[j] + bar[j * d + a] * diagonal[j * d + a];
    *y = sum;
}
