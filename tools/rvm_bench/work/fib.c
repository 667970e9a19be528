/* n steps along the Fibonacci numbers, modulo 2**64. */
#include <stdint.h>

void forward(uint64_t *restrict pair, int64_t n) {
    uint64_t a = pair[0], b = pair[1];
    for (int64_t k = 0; k < n; k++) {
        const uint64_t c = a + b;
        a = b;
        b = c;
    }
    pair[0] = a;
    pair[1] = b;
}
