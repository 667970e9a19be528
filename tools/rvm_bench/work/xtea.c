/* XTEA, 32 rounds, over the blocks of a message. */
#include <stdint.h>

void forward(uint32_t *restrict v, const uint32_t *restrict k, int64_t n) {
    for (int64_t b = 0; b < n - 1; b += 2) {
        uint32_t p = v[b], q = v[b + 1], s = 0;
        for (int r = 0; r < 32; r++) {
            p += (((q << 4) ^ (q >> 5)) + q) ^ (s + k[s & 3]);
            s += 0x9E3779B9;
            q += (((p << 4) ^ (p >> 5)) + p) ^ (s + k[(s >> 11) & 3]);
        }
        v[b] = p;
        v[b + 1] = q;
    }
}
