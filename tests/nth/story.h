/* What a program does with a store while a call below it fails, what it was
 * told, and what must be true of the store afterwards. */
#ifndef NTH_STORY_H
#define NTH_STORY_H

#include <idem.h>

/* Where an answer stands that is none yet; a code is 0 or negative. */
enum {
    STORY_NOT_ASKED = 1,
    STORY_ASKED = 2, /* Whoever died here was given no answer. */
};

/* What the program was told; in memory that outlives it. */
struct told {
    int open;
    int begin;
    int end;     /* Of the verb that ended the attempt, or of any other verb. */
    int after;   /* Of the same handle, when nothing failed any more. */
    int verdict; /* Of a begin that answered 0. */
    bool wrong;  /* What it was shown was not what is on record. */
    uint64_t fence;
    int64_t lease_end_ms;
    int64_t blocks; /* Of memory that it did not give back. */
    char text[252]; /* Of the newest error. */
};

struct story {
    const char *name;
    /* Makes what must be there before; everything succeeds. May be NULL. */
    void (*prepare)(const char *path);
    /* Calls happen between nth_use() and its end, and some of them fail. */
    void (*live)(const char *path, struct told *told);
    /* What is wrong with the store, which is opened anew, or with what was told;
     * NULL: nothing. */
    const char *(*judge)(struct idem_store *store, const struct told *told);
    /* The same, for a file that is no store of ours. */
    const char *(*judge_file)(const char *path, const struct told *told);
    /* Instead of live() and judge(): "k" is claimed and ended in this status;
     * IN_PROGRESS: its lease is ended. */
    enum idem_status ends;
    /* The status that "k" had before; 0: it was not there. */
    int before;
};

/* The last of each has no name. */
extern const struct story stories_claims[];
extern const struct story stories_owners[];
extern const struct story stories_operator[];

/* Faults begin and end; library.c. */
void story_arm(void);
void story_disarm(void);

/* ---- What the stories share; story.c ---- */

#define STORY_RESULT "receipt 7"
#define STORY_DAY_MS ((int64_t)86400000)

enum {
    STORY_LARGE = 200 * 1000,
};

/* The newest error. */
extern struct idem_error story_why;

/* All clocks are ahead by this, so that a retention can be over. */
extern int64_t story_shift_ms;

/* The wall clock is, in another boot, ahead by this, too. */
extern int64_t story_ahead_ms;

/* Options with these clocks. */
struct idem_open_options story_options(unsigned flags, int64_t timeout_ms);

/* Aborts unless @rc is 0. */
void story_must(int rc);

/* A store in the file @path, with short patience: what fails for ever is soon
 * given up. */
int story_open_at(const char *path, unsigned flags,
                  struct idem_store **ret_store);

/* The same when nothing fails any more, with as much as a busy machine needs. */
int story_open_after(const char *path, struct idem_store **ret_store);
struct idem_store *story_open(const char *path);

struct idem_request story_request(const char *key);

/* A claim that must be STARTED. */
struct idem_attempt *story_begun(struct idem_store *store, const char *key);

/* Makes @key, which must be new, and ends it in @status. Returns its fence. */
uint64_t story_had(struct idem_store *store, const char *key,
                   enum idem_status status);

/* Claims "k" and ends it in @status, and notes both answers. */
void story_claim(struct idem_store *store, struct told *told,
                 enum idem_status status);

/* Lives through @story, or judges it. */
void story_live(const struct story *story, const char *path, struct told *told);
const char *story_verdict(const struct story *story, struct idem_store *store,
                          const struct told *told);

/* When nothing fails any more: the store still works. Closes it. */
void story_close(struct idem_store *store, struct told *told);

/* One life of a key from begin to completion. 0 or a code. */
int story_once(struct idem_store *store, const char *key);

/* Makes "done", which is completed, and "held", which is not. */
void story_prepare(const char *path);

/* Makes "k", too, which ended in @status. */
void story_prepare_k(const char *path, enum idem_status status);

/* For idem_list(): @ctx is int[2], the good and the bad. */
int story_count(void *ctx, int code, const struct idem_record *record);

/* The status of a key, 0: absent, or a code. */
int story_status(struct idem_store *store, const char *key, uint64_t *ret_fence,
                 bool *ret_whole);

/* What must be true whatever happened. */
const char *story_judge(struct idem_store *store);

/* What was shown must be what is on record. */
const char *story_judge_shown(struct idem_store *store,
                              const struct told *told);

#endif
