/* For which processor an executable is, whatever the bytes are. */
#include "lambda/elf.h"

#include "test.h"

#include <elf.h>
#include <string.h>

struct program {
    Elf64_Ehdr head;
    Elf64_Phdr parts[2];
    char loader[16];
};

static struct program a_program(Elf64_Half machine)
{
    struct program p;

    memset(&p, 0, sizeof(p));
    memcpy(p.head.e_ident, ELFMAG, SELFMAG);
    p.head.e_ident[EI_CLASS] = ELFCLASS64;
    p.head.e_ident[EI_DATA] = ELFDATA2LSB;
    p.head.e_machine = machine;
    p.head.e_phoff = offsetof(struct program, parts);
    p.head.e_phentsize = sizeof(p.parts[0]);
    p.head.e_phnum = COUNT(p.parts);
    p.parts[0].p_type = PT_LOAD;
    p.parts[1].p_type = PT_INTERP;
    p.parts[1].p_offset = offsetof(struct program, loader);
    p.parts[1].p_filesz = sizeof(p.loader);
    strcpy(p.loader, "/lib/ld.so");
    return p;
}

static void assert_is(const struct program *p, size_t len, const char *arch,
                      const char *loader)
{
    struct cli_elf elf;

    assert_true(cli_elf_read((const char *)p, len, &elf));
    assert_string_equal(elf.arch, arch);
    assert_text(elf.loader, loader);
}

TEST(elf, saysForWhichProcessor)
{
    struct program p = a_program(EM_X86_64);

    assert_is(&p, sizeof(p), "x86_64", "/lib/ld.so");
    p = a_program(EM_AARCH64);
    assert_is(&p, sizeof(p), "arm64", "/lib/ld.so");
    p = a_program(EM_RISCV);
    assert_is(&p, sizeof(p), "another processor", "/lib/ld.so");
    p = a_program(EM_X86_64);
    p.head.e_ident[EI_CLASS] = ELFCLASS32;
    assert_is(&p, sizeof(p), "another processor", "");
    p = a_program(EM_X86_64);
    p.parts[1].p_type = PT_LOAD;
    assert_is(&p, sizeof(p), "x86_64", "");
}

/* Offsets that lead out of the file, as they are or when they are added up. */
TEST(elf, believesNoOffset)
{
    struct program p = a_program(EM_X86_64);
    struct cli_elf elf;
    size_t len;

    for (len = 0; len < SELFMAG; len++) {
        assert_false(cli_elf_read((const char *)&p, len, &elf));
    }
    assert_is(&p, sizeof(p.head) - 1, "another processor", "");
    for (len = sizeof(p.head); len < sizeof(p); len++) {
        assert_is(&p, len, "x86_64", "");
    }
    p.head.e_phoff = UINT64_MAX;
    assert_is(&p, sizeof(p), "x86_64", "");
    p.head.e_phoff = UINT64_MAX - sizeof(p.parts[0]) + 1;
    assert_is(&p, sizeof(p), "x86_64", "");
    p = a_program(EM_X86_64);
    p.parts[1].p_offset = UINT64_MAX;
    assert_is(&p, sizeof(p), "x86_64", "");
    p = a_program(EM_X86_64);
    p.parts[1].p_filesz = UINT64_MAX;
    assert_is(&p, sizeof(p), "x86_64", "");
    p = a_program(EM_X86_64);
    p.head.e_phnum = UINT16_MAX;
    p.parts[1].p_type = PT_LOAD;
    assert_is(&p, sizeof(p), "x86_64", "");
}

TEST(elf, isNotAScript)
{
    struct cli_elf elf;

    assert_false(cli_elf_read("#!/bin/sh\n", 10, &elf));
}
