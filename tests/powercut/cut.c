/* Power cuts: what a disk may hold after one. */
#include "cut.h"

#include <string.h>

enum {
    SECTOR = 512
};

uint64_t cut_random(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

void cut_init(struct cut *cut, const struct disk_log *log,
              const struct disk_image *start, enum cut_trust trust)
{
    memset(cut, 0, sizeof(*cut));
    cut->log = log;
    cut->trust = trust;
    disk_copy(&cut->kept, start);
}

void cut_finish(struct cut *cut)
{
    disk_image_free(&cut->kept);
}

static void apply_whole(struct disk_bytes *bytes,
                        const struct disk_event *event)
{
    disk_apply(bytes, event, 0, event->len);
}

/* All events of @file before @end are on the disk now. */
static void keep(struct cut *cut, enum disk_file file, size_t end)
{
    size_t i;

    for (i = cut->done[file]; i < end; i++) {
        if (cut->log->events[i].file == file) {
            apply_whole(&cut->kept.files[file], &cut->log->events[i]);
        }
    }
    if (end > cut->done[file]) {
        cut->done[file] = end;
    }
}

/* Moves on to @moment: a flush keeps what was written before it began. */
static void advance(struct cut *cut, size_t moment)
{
    for (; cut->at < moment; cut->at++) {
        const struct disk_event *event = &cut->log->events[cut->at];

        if (event->kind == DISK_SYNC_BEGIN) {
            cut->begun[event->file] = cut->at;
        }
        if (event->kind == DISK_SYNC_END && cut->trust != CUT_NO_SYNC) {
            keep(cut, event->file, cut->begun[event->file]);
        }
    }
}

static void apply_some(struct disk_bytes *bytes, const struct disk_event *event,
                       bool whole, uint64_t *seed)
{
    size_t from;

    if (whole || event->kind == DISK_TRUNCATE) {
        if ((cut_random(seed) & 1) != 0) {
            apply_whole(bytes, event);
        }
        return;
    }
    for (from = 0; from < event->len;) {
        size_t to =
            from + SECTOR - (size_t)(event->at + (int64_t)from) % SECTOR;

        if (to > event->len) {
            to = event->len;
        }
        if ((cut_random(seed) & 1) != 0) {
            disk_apply(bytes, event, from, to - from);
        }
        from = to;
    }
}

void cut_take(struct cut *cut, size_t moment, uint64_t *seed,
              struct disk_image *ret_image)
{
    uint64_t how = cut_random(seed) % 4;
    size_t i;

    advance(cut, moment);
    disk_copy(ret_image, &cut->kept);
    for (i = 0; i < moment && how != 0; i++) {
        const struct disk_event *event = &cut->log->events[i];
        struct disk_bytes *bytes = &ret_image->files[event->file];

        if (i < cut->done[event->file]) {
            continue;
        }
        if (how == 1) {
            apply_whole(bytes, event);
        } else {
            apply_some(bytes, event, cut->trust == CUT_WHOLE, seed);
        }
    }
}
