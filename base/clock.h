/* Time, replaceable by tests. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

int64_t clock_wall_us(void); /* microseconds since 1970 UTC */
int64_t clock_mono_us(void); /* never goes back; no meaning across boots */
/* Tests: both clocks then give this value plus what clock_test_advance added. */
void clock_test_set(int64_t us);
void clock_test_advance(int64_t us);
void clock_test_off(void);

#endif
