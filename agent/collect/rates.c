/* Counters over time: how much one grew within a window, whatever it does in between. */
#include "agent/collect/rates.h"

#include <string.h>

#define WRAP (UINT64_C(1) << 32)
/* As close to the wrap as a counter may come between two looks. */
#define NEAR (UINT64_C(1) << 28)

uint64_t counter_grown(uint64_t before, uint64_t now)
{
    if (now >= before) {
        return now - before;
    }
    if (before < WRAP && before >= WRAP - NEAR && now < NEAR) {
        return WRAP - before + now;
    }
    return now;
}

static int64_t piece_of(uint32_t window_s, int64_t now_us)
{
    int64_t length_us = (int64_t)window_s * 1000000 / RATE_PIECES;

    return now_us / (length_us > 0 ? length_us : 1);
}

void rate_begin(struct rate *rate, uint64_t value, uint32_t window_s, int64_t now_us)
{
    *rate = (struct rate){.last = value, .piece = piece_of(window_s, now_us)};
}

uint64_t rate_add(struct rate *rate, uint64_t value, uint32_t window_s, int64_t now_us)
{
    int64_t piece = piece_of(window_s, now_us);
    uint64_t grown = counter_grown(rate->last, value);
    uint64_t sum = 0;

    if (piece < rate->piece || piece - rate->piece >= RATE_PIECES) {
        (void)memset(rate->grown, 0, sizeof(rate->grown));
        rate->piece = piece;
    }
    for (; rate->piece < piece; rate->piece++) {
        rate->grown[(rate->piece + 1) % RATE_PIECES] = 0;
    }
    uint32_t *present = &rate->grown[piece % RATE_PIECES];
    *present = grown > UINT32_MAX - *present ? UINT32_MAX : *present + (uint32_t)grown;
    rate->last = value;
    for (unsigned i = 0; i < RATE_PIECES; i++) {
        sum += rate->grown[i];
    }
    return sum;
}

void rate_write(const struct rate *rate, struct buf *out)
{
    buf_printf(out, "%llu %lld", (unsigned long long)rate->last, (long long)rate->piece);
    for (unsigned i = 0; i < RATE_PIECES; i++) {
        buf_printf(out, " %u", rate->grown[i]);
    }
}

bool rate_read(struct str text, struct rate *ret_rate)
{
    struct str part;
    uint64_t value;

    if (!str_split(&text, ' ', &part) || !str_parse_u64(part, 0, UINT64_MAX, &ret_rate->last) ||
        !str_split(&text, ' ', &part) || !str_parse_i64(part, 0, INT64_MAX, &ret_rate->piece)) {
        return false;
    }
    for (unsigned i = 0; i < RATE_PIECES; i++) {
        if (!str_split(&text, ' ', &part) || !str_parse_u64(part, 0, UINT32_MAX, &value)) {
            return false;
        }
        ret_rate->grown[i] = (uint32_t)value;
    }
    return text.len == 0;
}
