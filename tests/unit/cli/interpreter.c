/* Which interpreter a script needs, and whether AWS Lambda has it. */
#include "lambda/package.h"

#include "test.h"

#include <string.h>

static void assert_needs(const char *script, const char *interpreter)
{
    assert_text(cli_interpreter(script, strlen(script)), interpreter);
}

/* It is what the kernel starts, or what env looks for. */
TEST(interpreter, isReadFromTheFirstLine)
{
    assert_needs("#!/bin/sh\necho", "/bin/sh");
    assert_needs("#! /bin/bash -eu\n", "/bin/bash");
    assert_needs("#!/usr/bin/env node\n1", "node");
    assert_needs("#!/usr/bin/env -S A=b python3 -u\n", "python3");
    assert_needs("#!/usr/bin/perl", "/usr/bin/perl");
    assert_needs("#!/usr/bin/env", "");
    assert_needs("#!", "");
    assert_needs("\177ELF", "");
    assert_needs("", "");
}

/* The runtime that is only an operating system has two, and the rest comes in a
 * layer or in the package. */
TEST(interpreter, isKnownOnLambda)
{
    static const char *const there[] = {"/bin/sh", "bash", "/usr/bin/bash",
                                        "/opt/bin/node", "/var/task/lua"};
    static const char *const missing[] = {"node", "/usr/bin/python3", "perl",
                                          "/opt/", "/bin/zsh"};
    size_t i;

    for (i = 0; i < COUNT(there); i++) {
        assert_true(cli_interpreter_is_on_lambda(idem_str(there[i])));
    }
    for (i = 0; i < COUNT(missing); i++) {
        assert_false(cli_interpreter_is_on_lambda(idem_str(missing[i])));
    }
}
