/* Parameters in binary: bytea, int8, and arrays of one dimension.
 *
 *     an array:  0  4  dimensions, 1 (0: it is empty)
 *                4  4  1 if an element may be NULL
 *                8  4  type of the elements
 *               12  4  how many
 *               16  4  the number of the first, 1
 *               20  .  each: length (4, -1: NULL), bytes
 */
#include "postgres/params.h"

#include "base/bytes.h"

enum {
    ARRAY_HEAD = 20,
    KEEP_BYTES = 64 * 1024,
};

void idem__pg_params_reset(struct idem__pg_params *params)
{
    size_t i;

    for (i = 0; i < params->len; i++) {
        idem__buffer_reset(&params->memory[i], KEEP_BYTES);
        params->counts[i] = 0;
        params->nulls[i] = false;
    }
    params->len = 0;
}

void idem__pg_params_free(struct idem__pg_params *params)
{
    size_t i;

    for (i = 0; i < IDEM__PG_PARAMS_MAX; i++) {
        idem__buffer_free(&params->memory[i]);
    }
}

static size_t begin(struct idem__pg_params *params, Oid type)
{
    params->types[params->len] = type;
    return params->len++;
}

static void add_u32(struct idem__buffer *to, uint32_t number)
{
    uint8_t bytes[4];

    idem__put_u32(bytes, number);
    idem__buffer_add(to, bytes, sizeof(bytes));
}

static void add_u64(struct idem__buffer *to, uint64_t number)
{
    uint8_t bytes[8];

    idem__put_u64(bytes, number);
    idem__buffer_add(to, bytes, sizeof(bytes));
}

size_t idem__pg_params_bytes(struct idem__pg_params *params,
                             struct idem_slice bytes)
{
    size_t place = begin(params, IDEM__PG_BYTEA);

    idem__buffer_add(&params->memory[place], bytes.base, bytes.len);
    return place;
}

size_t idem__pg_params_null(struct idem__pg_params *params, Oid type)
{
    size_t place = begin(params, type);

    params->nulls[place] = true;
    return place;
}

size_t idem__pg_params_number(struct idem__pg_params *params, int64_t number)
{
    size_t place = begin(params, IDEM__PG_INT8);

    add_u64(&params->memory[place], (uint64_t)number);
    return place;
}

size_t idem__pg_params_array(struct idem__pg_params *params, Oid type)
{
    size_t place = begin(params, type);
    struct idem__buffer *to = &params->memory[place];

    add_u32(to, 1);
    add_u32(to, 1);
    add_u32(to, type == IDEM__PG_BYTEAS ? IDEM__PG_BYTEA : IDEM__PG_INT8);
    add_u32(to, 0);
    add_u32(to, 1);
    return place;
}

void idem__pg_params_add_bytes(struct idem__pg_params *params, size_t place,
                               struct idem_slice bytes)
{
    add_u32(&params->memory[place], (uint32_t)bytes.len);
    idem__buffer_add(&params->memory[place], bytes.base, bytes.len);
    params->counts[place]++;
}

void idem__pg_params_add_null(struct idem__pg_params *params, size_t place)
{
    add_u32(&params->memory[place], UINT32_MAX);
    params->counts[place]++;
}

void idem__pg_params_add_number(struct idem__pg_params *params, size_t place,
                                int64_t number)
{
    add_u32(&params->memory[place], 8);
    add_u64(&params->memory[place], (uint64_t)number);
    params->counts[place]++;
}

bool idem__pg_params_finish(struct idem__pg_params *params,
                            const char *ret_values[IDEM__PG_PARAMS_MAX],
                            int ret_lengths[IDEM__PG_PARAMS_MAX],
                            int ret_formats[IDEM__PG_PARAMS_MAX])
{
    size_t i;

    for (i = 0; i < params->len; i++) {
        struct idem__buffer *memory = &params->memory[i];
        bool is_array = params->types[i] == IDEM__PG_BYTEAS ||
                        params->types[i] == IDEM__PG_INT8S;

        if (memory->failed) {
            params->failed = true;
            return false;
        }
        if (is_array) {
            if (params->counts[i] == 0) {
                idem__put_u32(memory->base, 0);
                memory->len = ARRAY_HEAD - 8;
            } else {
                idem__put_u32(memory->base + 12, (uint32_t)params->counts[i]);
            }
        }
        /* libpq takes a null pointer for NULL, but an empty value is a value. */
        ret_values[i] = memory->base == NULL ? "" : (const char *)memory->base;
        ret_values[i] = params->nulls[i] ? NULL : ret_values[i];
        ret_lengths[i] = (int)memory->len;
        ret_formats[i] = 1;
    }
    return true;
}
