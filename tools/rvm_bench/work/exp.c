/* y += exp x by its Taylor series with arithmetic uncomputing, and the reversible adjoint. */
#include <math.h>
#include <stdint.h>

void forward(double *restrict y, double x) {
    double total = 1, term = 1;
    for (int64_t k = 1; x != 0 && fabs(term) > 1e-16; k++) {
        term = term * x / (double)k;
        total += term;
    }
    *y += total;
}

/* Adjoints begin as zero; that of y is 1. */
void gradient(double *restrict y, double x, double *restrict xb) {
    double total = 1, term = 1, bar = 0, sum = 0;
    int64_t k = 0;
    while (x != 0 && fabs(term) > 1e-16) {
        k++;
        term = term * x / (double)k;
        total += term;
    }
    for (; k > 0; k--) {
        const double before = term * (double)k / x;
        bar += 1;                               /* of the term, from the total */
        sum += bar * before / (double)k;
        bar = bar * x / (double)k;
        term = before;
    }
    *xb += sum;
    (void)y, (void)total;
}
