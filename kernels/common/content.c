#include "content.h"

#include <string.h>

static uint64_t mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

uint64_t content_key(uint64_t seed, uint64_t dataset, uint64_t step)
{
    return mix(mix(mix(seed + CONTENT_STEP) + dataset + CONTENT_STEP) + step + CONTENT_STEP);
}

void content_fill64(uint64_t *words, uint64_t count, uint64_t key, uint64_t first_index)
{
    const uint64_t first = content_word64(key, first_index);
    for (uint64_t i = 0; i < count; i++)
        words[i] = first + i * CONTENT_STEP;
}

static uint8_t content_byte(uint64_t key, uint64_t index)
{
    return (uint8_t)(content_word64(key, index / 8) >> index % 8 * 8);
}

void content_fill8(uint8_t *bytes, uint64_t count, uint64_t key, uint64_t first_index)
{
    uint64_t i = 0;
    while (i < count) {
        const uint64_t index = first_index + i;
        if (index % 8 == 0 && count - i >= 8) {
            uint8_t word[8];
            for (unsigned b = 0; b < 8; b++)
                word[b] = (uint8_t)(content_word64(key, index / 8) >> b * 8);
            memcpy(bytes + i, word, sizeof word);
            i += sizeof word;
        } else {
            bytes[i++] = content_byte(key, index);
        }
    }
}

void content_fill32(uint32_t *words, uint64_t count, uint64_t stride, uint64_t key, uint64_t first_index)
{
    for (uint64_t i = 0; i < count; i++)
        words[i * stride] = content_word32(key, first_index + i);
}

static void note(struct content_mismatch *mismatch, uint64_t index, uint64_t expected, uint64_t found)
{
    if (mismatch->count++ == 0) {
        mismatch->index = index;
        mismatch->expected = expected;
        mismatch->found = found;
    }
}

void content_check64(const uint64_t *words, uint64_t count, uint64_t key, uint64_t first_index,
                     struct content_mismatch *mismatch)
{
    uint64_t differing = 0;
    for (uint64_t i = 0; i < count; i++)
        differing |= words[i] ^ content_word64(key, first_index + i);
    if (differing == 0)
        return;
    for (uint64_t i = 0; i < count; i++)
        if (words[i] != content_word64(key, first_index + i))
            note(mismatch, first_index + i, content_word64(key, first_index + i), words[i]);
}

void content_check8(const uint8_t *bytes, uint64_t count, uint64_t key, uint64_t first_index,
                    struct content_mismatch *mismatch)
{
    uint8_t expected[1024];
    for (uint64_t first = 0; first < count; first += sizeof expected) {
        const uint64_t left = count - first;
        const uint64_t part = left < sizeof expected ? left : sizeof expected;
        content_fill8(expected, part, key, first_index + first);
        if (memcmp(bytes + first, expected, part) == 0)
            continue;
        for (uint64_t i = 0; i < part; i++)
            if (bytes[first + i] != expected[i])
                note(mismatch, first_index + first + i, expected[i], bytes[first + i]);
    }
}

void content_check32(const uint32_t *words, uint64_t count, uint64_t stride, uint64_t key, uint64_t first_index,
                     struct content_mismatch *mismatch)
{
    uint32_t differing = 0;
    for (uint64_t i = 0; i < count; i++)
        differing |= words[i * stride] ^ content_word32(key, first_index + i);
    if (differing == 0)
        return;
    for (uint64_t i = 0; i < count; i++)
        if (words[i * stride] != content_word32(key, first_index + i))
            note(mismatch, first_index + i, content_word32(key, first_index + i), words[i * stride]);
}
