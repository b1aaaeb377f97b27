/* The "bootstrap" of a package: starts lib/main beside it with the loader and the
 * libraries beside it, whatever the system has. It needs no library itself, and
 * nothing of C's but the language.
 *
 * A loader that is named in lib/main could not be told to leave the system's
 * libraries alone: Lambda sets LD_LIBRARY_PATH to where they are.
 */

#define PATH_LEN 4096

struct paths {
    char loader[PATH_LEN];
    char libraries[PATH_LEN];
    char program[PATH_LEN];
};

void start(char **stack) __attribute__((noreturn));

/* GCC calls it for an initialiser on ARM64, freestanding or not. */
void *memcpy(void *to, const void *from, unsigned long len);

void *memcpy(void *to, const void *from, unsigned long len)
{
    unsigned char *at = to;
    const unsigned char *byte = from;

    while (len-- > 0) {
        *at++ = *byte++;
        __asm__ volatile(""); /* Or the loop becomes a call of memcpy(). */
    }
    return to;
}

#if defined(__x86_64__)

/* The stack holds the number of arguments, the arguments, NULL, the environment,
 * NULL, and what the kernel says. */
__asm__(".globl _start\n"
        "_start:\n"
        "    xor %ebp, %ebp\n"
        "    mov %rsp, %rdi\n"
        "    and $-16, %rsp\n"
        "    call start\n");

static long call(long number, long a, long b, long c)
{
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
}

#define CALL_WRITE 1
#define CALL_EXECVE 59
#define CALL_EXIT 231

#elif defined(__aarch64__)

__asm__(".globl _start\n"
        "_start:\n"
        "    mov x29, #0\n"
        "    mov x0, sp\n"
        "    b start\n");

static long call(long number, long a, long b, long c)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;

    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
}

#define CALL_WRITE 64
#define CALL_EXECVE 221
#define CALL_EXIT 94

#else
#error "Lambda runs on x86_64 and aarch64."
#endif

#define KIND_END 0
#define KIND_EXECUTED 31 /* AT_EXECFN: the path of this program. */

static struct paths paths;

static void die(const char *why, long len)
{
    (void)call(CALL_WRITE, 2, (long)why, len);
    for (;;) {
        (void)call(CALL_EXIT, 127, 0, 0);
    }
}

#define DIE(why) die(why, sizeof(why) - 1)

/* The path of this program, from the bytes after the environment. */
static const char *find_self(char **environment)
{
    const unsigned long *pair;

    while (*environment != 0) {
        environment++;
    }
    pair = (const unsigned long *)(environment + 1);
    for (; pair[0] != KIND_END; pair += 2) {
        if (pair[0] == KIND_EXECUTED) {
            return (const char *)pair[1];
        }
    }
    return "/var/task/bootstrap";
}

/* The directory of @self, and @name. */
static void join(char *to, const char *self, const char *name)
{
    int end = 0;
    int i;

    for (i = 0; self[i] != '\0' && i < PATH_LEN - 64; i++) {
        to[i] = self[i];
        if (self[i] == '/') {
            end = i + 1;
        }
    }
    for (i = 0; name[i] != '\0'; i++) {
        to[end + i] = name[i];
    }
    to[end + i] = '\0';
}

void start(char **stack)
{
    long count = (long)stack[0];
    char **environment = stack + 1 + count + 1;
    const char *self = find_self(environment);
    const char *arguments[] = {
        "ld.so",         "--inhibit-cache", "--library-path",
        paths.libraries, "--argv0",         "bootstrap",
        paths.program,   "lambda",          0};

    join(paths.loader, self, "lib/ld.so");
    join(paths.libraries, self, "lib");
    join(paths.program, self, "lib/main");
    (void)call(CALL_EXECVE, (long)paths.loader, (long)arguments,
               (long)environment);
    DIE("bootstrap: lib/ld.so beside it cannot be executed\n");
    for (;;) {
    }
}
