/* What the files hold: every word is a function of (seed, dataset, step, index), so that any reader can tell a word
 * that was lost, moved or changed. Index: the word's position in its dataset, row-major over all ranks. */
#ifndef IOGAUGE_CONTENT_H
#define IOGAUGE_CONTENT_H

#include <stdint.h>

/* The odd step from one index to the next: 2^64 over the golden ratio, so that every index has a word of its own. */
#define CONTENT_STEP UINT64_C(0x9e3779b97f4a7c15)

/* Key of a dataset: its words are content_word64(key, index). Source of the mixer: Steele, Lea, Flood, "Fast splittable
 * pseudorandom number generators", OOPSLA 2014 (SplitMix64). */
uint64_t content_key(uint64_t seed, uint64_t dataset, uint64_t step);

static inline uint64_t content_word64(uint64_t key, uint64_t index)
{
    return key + index * CONTENT_STEP;
}

/* Four-byte words are finite floats as well: the top exponent bit is clear, so no NaN whose bits a conversion could
 * change. */
static inline uint32_t content_word32(uint64_t key, uint64_t index)
{
    return (uint32_t)(content_word64(key, index) >> 32) & UINT32_C(0xbfffffff);
}

void content_fill64(uint64_t *words, uint64_t count, uint64_t key, uint64_t first_index);

/* Bytes: the words' own, lowest first, so that byte I is one of word I / 8. */
void content_fill8(uint8_t *bytes, uint64_t count, uint64_t key, uint64_t first_index);

/* WORDS at every STRIDE-th place (1 for an array, 8 for a member of a particle). */
void content_fill32(uint32_t *words, uint64_t count, uint64_t stride, uint64_t key, uint64_t first_index);

/* The first word that differs, and how many do. */
struct content_mismatch {
    uint64_t count;
    uint64_t index;
    uint64_t expected;
    uint64_t found;
};

void content_check64(const uint64_t *words, uint64_t count, uint64_t key, uint64_t first_index,
                     struct content_mismatch *mismatch);
void content_check8(const uint8_t *bytes, uint64_t count, uint64_t key, uint64_t first_index,
                    struct content_mismatch *mismatch);
void content_check32(const uint32_t *words, uint64_t count, uint64_t stride, uint64_t key, uint64_t first_index,
                     struct content_mismatch *mismatch);

#endif
