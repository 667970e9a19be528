/* x += one, n times, and its reversible adjoint: forwards, then back undoing. */
#include <stdint.h>

void forward(double *x, int64_t n, double one) {
    double s = *x;
    for (int64_t i = 0; i < n; i++) s += one;
    *x = s;
}

/* `bar` holds the adjoints of x and of one; that of x begins as the loss's. */
void gradient(double *x, int64_t n, double one, double *bar) {
    forward(x, n, one);
    double s = *x, xb = bar[0], ob = bar[1];
    for (int64_t i = 0; i < n; i++) {
        s -= one;
        ob += xb;
    }
    *x = s;
    bar[1] = ob;
}
