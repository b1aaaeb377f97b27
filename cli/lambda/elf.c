/* The head of an executable: for which processor it is, and which loader it names. */
#include "lambda/elf.h"

#include <elf.h>
#include <string.h>

const char *const cli_arches[] = {"x86_64", "arm64", NULL};

static const Elf64_Half machines[] = {EM_X86_64, EM_AARCH64};

const char *cli_arch_here(void)
{
#if defined(__x86_64__)
    return cli_arches[0];
#elif defined(__aarch64__)
    return cli_arches[1];
#else
    return "another processor";
#endif
}

/* The path that the program header PT_INTERP of @data names; len 0: none. */
static struct idem_slice find_loader(const char *data, size_t len,
                                     const Elf64_Ehdr *head)
{
    size_t i;

    for (i = 0; i < head->e_phnum; i++) {
        Elf64_Phdr part;
        size_t at = i * sizeof(part);

        if (head->e_phoff > len || at > len - head->e_phoff ||
            sizeof(part) > len - head->e_phoff - at) {
            break;
        }
        memcpy(&part, data + head->e_phoff + at, sizeof(part));
        if (part.p_type == PT_INTERP && part.p_offset < len &&
            part.p_filesz <= len - part.p_offset) {
            const char *path = data + part.p_offset;

            return idem_bytes(path, strnlen(path, part.p_filesz));
        }
    }
    return idem_bytes(NULL, 0);
}

bool cli_elf_read(const char *data, size_t len, struct cli_elf *ret_elf)
{
    Elf64_Ehdr head;
    size_t i;

    memset(ret_elf, 0, sizeof(*ret_elf));
    ret_elf->arch = "another processor";
    if (len < SELFMAG || memcmp(data, ELFMAG, SELFMAG) != 0) {
        return false;
    }
    if (len < sizeof(head)) {
        return true;
    }
    memcpy(&head, data, sizeof(head));
    if (head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_ident[EI_DATA] != ELFDATA2LSB ||
        head.e_phentsize != sizeof(Elf64_Phdr)) {
        return true;
    }
    for (i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        if (head.e_machine == machines[i]) {
            ret_elf->arch = cli_arches[i];
        }
    }
    ret_elf->loader = find_loader(data, len, &head);
    return true;
}
