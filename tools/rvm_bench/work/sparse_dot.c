/* The dot product of two sparse vectors by a merge, and the reversible adjoint, which merges back. */
#include <stdint.h>

void forward(double *restrict s, const int64_t *restrict p, const double *restrict x, int64_t m,
             const int64_t *restrict q, const double *restrict y, int64_t n) {
    double sum = *s;
    int64_t i = 0, j = 0;
    while (i < m && j < n) {
        if (p[i] == q[j]) sum += x[i++] * y[j++];
        else if (p[i] < q[j]) i++;
        else j++;
    }
    *s = sum;
}

void gradient(double *restrict s, const int64_t *restrict p, const double *restrict x, int64_t m,
              const int64_t *restrict q, const double *restrict y, int64_t n,
              double *restrict xb, double *restrict yb) {
    forward(s, p, x, m, q, y, n);
    double sum = *s;
    int64_t i = m, j = n;
    while (i > 0 && j > 0) {
        if (p[i - 1] == q[j - 1]) {
            i--, j--;
            sum -= x[i] * y[j];
            xb[i] += y[j];
            yb[j] += x[i];
        } else if (p[i - 1] > q[j - 1]) i--;
        else j--;
    }
    *s = sum;
}
