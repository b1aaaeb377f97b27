/* The state of a check of the whole file, as bytes that are kept.
 *
 *        0  4  "idc1", checksum of all after it (4), length of the key (4), phase (4),
 *              index (4), indexes (4)
 *       24 32  the file: id, device, inode
 *       56 56  began_ms, first_seq, last_seq, at_seq, rows, corrupt, entries
 *      112  .  for each of IDEM__SCAN_INDEXES_MAX: checksum of its name, wrong,
 *              wrong_seq, disorder
 *        .  .  the key; then the sums of the indexes */
#include "base/bytes.h"
#include "base/crc32.h"
#include "base/heap.h"
#include "core/error.h"
#include "store/sqlite/scan.h"

#include <idem/check.h>

enum {
    MAGIC = 0x69646331,
    HEAD_LEN = 24 + 32 + 56,
    EACH_LEN = 4 + 3 * 8,
    FIXED_LEN = HEAD_LEN + IDEM__SCAN_INDEXES_MAX * EACH_LEN,
    SUMS_LEN = IDEM__SCAN_BUCKETS * 8,
};

_Static_assert(FIXED_LEN + IDEM__SCAN_KEY_MAX +
                       IDEM__SCAN_INDEXES_MAX * SUMS_LEN <=
                   IDEM_CHECK_STATE_MAX,
               "IDEM_CHECK_STATE_MAX");
_Static_assert(IDEM__STORE_ID_LEN == 16, "layout");

static uint32_t checksum(const uint8_t *bytes, size_t len)
{
    return idem__crc32(0, idem_bytes(bytes + 8, len - 8));
}

static uint8_t *put(uint8_t *to, uint64_t number)
{
    idem__put_u64(to, number);
    return to + 8;
}

static uint8_t *put_file(uint8_t *to, const struct idem__scan_file *file)
{
    memcpy(to, file->id, sizeof(file->id));
    return put(put(to + sizeof(file->id), file->device), file->inode);
}

static void put_head(uint8_t *to, const struct idem__scan_state *state,
                     const struct idem__scan_file *file)
{
    int i;

    idem__put_u32(to, MAGIC);
    idem__put_u32(to + 8, (uint32_t)state->at.len);
    idem__put_u32(to + 12, (uint32_t)state->phase);
    idem__put_u32(to + 16, (uint32_t)state->index);
    idem__put_u32(to + 20, (uint32_t)state->indexes);
    to = put_file(to + 24, file);
    to = put(to, (uint64_t)state->began_ms);
    to = put(to, (uint64_t)state->first_seq);
    to = put(to, (uint64_t)state->last_seq);
    to = put(to, (uint64_t)state->at_seq);
    to = put(to, state->rows);
    to = put(to, state->corrupt);
    to = put(to, state->entries);
    for (i = 0; i < IDEM__SCAN_INDEXES_MAX; i++) {
        idem__put_u32(to, state->names[i]);
        to = put(to + 4, state->wrong[i]);
        to = put(to, (uint64_t)state->wrong_seq[i]);
        to = put(to, state->disorder[i]);
    }
}

static size_t len_of(const struct idem__scan_state *state)
{
    return FIXED_LEN + state->at.len + (size_t)state->indexes * SUMS_LEN;
}

uint8_t *idem__scan_state_write(const struct idem__scan_state *state,
                                const struct idem__scan_file *file,
                                size_t *ret_len)
{
    size_t len = len_of(state);
    uint8_t *bytes = idem__alloc(len);
    uint8_t *to;
    size_t i;

    if (bytes == NULL) {
        return NULL;
    }
    put_head(bytes, state, file);
    memcpy(bytes + FIXED_LEN, state->at.bytes, state->at.len);
    to = bytes + FIXED_LEN + state->at.len;
    for (i = 0; i < (size_t)state->indexes * IDEM__SCAN_BUCKETS; i++) {
        to = put(to, state->sums[i]);
    }
    idem__put_u32(bytes + 4, checksum(bytes, len));
    *ret_len = len;
    return bytes;
}

static const uint8_t *get(const uint8_t *from, uint64_t *ret)
{
    *ret = idem__get_u64(from);
    return from + 8;
}

static const uint8_t *get_signed(const uint8_t *from, int64_t *ret)
{
    *ret = (int64_t)idem__get_u64(from);
    return from + 8;
}

static void get_head(const uint8_t *from, struct idem__scan_state *state)
{
    int i;

    state->at.len = idem__get_u32(from + 8);
    state->phase = (enum idem__scan_phase)idem__get_u32(from + 12);
    state->index = (int)idem__get_u32(from + 16);
    state->indexes = (int)idem__get_u32(from + 20);
    from = get_signed(from + 24 + 32, &state->began_ms);
    from = get_signed(from, &state->first_seq);
    from = get_signed(from, &state->last_seq);
    from = get_signed(from, &state->at_seq);
    from = get(from, &state->rows);
    from = get(from, &state->corrupt);
    from = get(from, &state->entries);
    for (i = 0; i < IDEM__SCAN_INDEXES_MAX; i++) {
        state->names[i] = idem__get_u32(from);
        from = get(from + 4, &state->wrong[i]);
        from = get_signed(from, &state->wrong_seq[i]);
        from = get(from, &state->disorder[i]);
    }
}

/* The checksum holds, so only a state that was made on purpose is refused here. */
static bool is_sound(const struct idem__scan_state *state, size_t len)
{
    return state->at.len <= IDEM__SCAN_KEY_MAX &&
           state->phase >= IDEM__SCAN_ROWS &&
           state->phase <= IDEM__SCAN_PAGES && state->index >= 0 &&
           state->indexes >= 0 && state->indexes <= IDEM__SCAN_INDEXES_MAX &&
           state->index <= state->indexes && state->last_seq >= 0 &&
           state->first_seq >= 0 && len == len_of(state);
}

int idem__scan_state_read(struct idem_slice bytes,
                          const struct idem__scan_file *file,
                          struct idem__scan_state *ret_state,
                          struct idem_error *error)
{
    const uint8_t *from = bytes.base;
    uint8_t wanted[32];
    size_t i;

    if (bytes.len < FIXED_LEN || bytes.len > IDEM_CHECK_STATE_MAX ||
        idem__get_u32(from) != MAGIC ||
        idem__get_u32(from + 4) != checksum(from, bytes.len)) {
        return idem__error(error, IDEM_EINVALID,
                           "the state of the check is damaged: begin anew");
    }
    (void)put_file(wanted, file);
    if (memcmp(from + 24, wanted, sizeof(wanted)) != 0) {
        return idem__error(error, IDEM_EINVALID,
                           "the state is of a check of another file: begin "
                           "anew");
    }
    get_head(from, ret_state);
    if (!is_sound(ret_state, bytes.len)) {
        return idem__error(error, IDEM_EINVALID,
                           "the state of the check is damaged: begin anew");
    }
    memcpy(ret_state->at.bytes, from + FIXED_LEN, ret_state->at.len);
    from += FIXED_LEN + ret_state->at.len;
    for (i = 0; i < (size_t)ret_state->indexes * IDEM__SCAN_BUCKETS; i++) {
        from = get(from, &ret_state->sums[i]);
    }
    return 0;
}
