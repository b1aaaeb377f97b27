/* What the fuzz targets share: checks, and an input that is read like a tape.
 *
 * A target is LLVMFuzzerTestOneInput() in a file of its own. It says in its first
 * comment what must hold for every input, and calls must() for it: an input that
 * breaks it ends the program, and libFuzzer keeps it.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <idem.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* Ends the program with the text of the condition unless it holds. */
#define must(condition)                                                        \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fuzz_fail(__FILE__, __LINE__, #condition);                         \
        }                                                                      \
    } while (0)

_Noreturn void fuzz_fail(const char *file, int line, const char *what);

bool same_bytes(struct idem_slice a, struct idem_slice b);

/* What is said to people goes to nowhere: there are millions of such lines. */
void fuzz_hush(void);

/* For a target whose code speaks to people. */
#define FUZZ_HUSHED                                                            \
    int LLVMFuzzerInitialize(int *argc, char ***argv)                          \
    {                                                                          \
        (void)argc;                                                            \
        (void)argv;                                                            \
        fuzz_hush();                                                           \
        return 0;                                                              \
    }

/* Goes to a folder of this process's own below $TMPDIR, which is empty at first,
 * and back to where it was. */
void fuzz_enter_folder(void);
void fuzz_leave_folder(void);

/* Removes the files that lie in the current folder; returns how many. */
unsigned fuzz_clean_folder(void);

/* ---- The input --------------------------------------------------------- */

/* What is left of the input. At its end it goes on with zeros. */
struct tape {
    const uint8_t *at;
    size_t left;
};

struct tape tape_of(const uint8_t *data, size_t len);

uint8_t take_u8(struct tape *tape);
uint64_t take_u64(struct tape *tape);

/* 0 to @max, from one byte. */
unsigned take_up_to(struct tape *tape, unsigned max);

bool take_bool(struct tape *tape);

/* At most @max bytes, which stay where they are in the input. */
struct idem_slice take_bytes(struct tape *tape, size_t max);

/* Likewise all that is left. */
struct idem_slice take_rest(struct tape *tape);

/* A text of its own with a NUL, to be freed. */
char *text_of(struct idem_slice bytes);

/* A time or duration of 0 to IDEM_NEVER: mostly one at which something turns. */
int64_t take_ms(struct tape *tape);

/* ---- Records ----------------------------------------------------------- */

/* Around which take_ms() chooses. */
#define FUZZ_NOW_MS 1700000000000
#define FUZZ_BOOT_MS 5000000

/* Any record that a store could hold. Its slices point into the input. */
void take_record(struct tape *tape, struct idem_record *ret_record);

/* True if the two have the same members and bytes. */
bool same_record(const struct idem_record *a, const struct idem_record *b);

/* Any moment. */
struct idem_now;
void take_now(struct tape *tape, struct idem_now *ret_now);

#endif
