/* elf.h: for which processor is an executable, and what starts it? */
#ifndef IDEM_CLI_LAMBDA_ELF_H
#define IDEM_CLI_LAMBDA_ELF_H

#include <idem.h>
#include <stdbool.h>
#include <stddef.h>

/* Lambda's names of its two processors, "x86_64" and "arm64"; ends with NULL.
 * https://docs.aws.amazon.com/lambda/latest/dg/foundation-arch.html */
extern const char *const cli_arches[];

/* The one of this program, or words for a processor that Lambda has not. */
const char *cli_arch_here(void);

struct cli_elf {
    const char *arch; /* One of cli_arches, or words for another one. */
    struct idem_slice
        loader; /* Points into the data; len 0: linked statically. */
};

/* Reads the head of an ELF file of @len bytes at @data, of 64 bits in the order of
 * both processors. False: it is not an ELF file. */
bool cli_elf_read(const char *data, size_t len, struct cli_elf *ret_elf);

#endif
