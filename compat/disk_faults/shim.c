/* Loaded into a broker with LD_PRELOAD: lets file operations fail as a control file says.

   The file, named by OTTLA_FAULTS, is mapped by the broker and by whoever drives it: see faults.py, which
   has the same layout. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPEN = 1, WRITE = 2, SYNC = 4, TRUNCATE = 8, RENAME = 16, REMOVE = 32, MAKE_DIRECTORY = 64, READ = 128, SEND = 256 };

struct control {
    volatile uint32_t operations;
    volatile int32_t error;
    volatile uint32_t hits;
    char path[500];
};

static struct control *control;

__attribute__((constructor)) static void map_control(void)
{
    const char *name = getenv("OTTLA_FAULTS");
    int descriptor = name ? open(name, O_RDWR) : -1;
    if (descriptor < 0)
        return;
    void *mapped = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (mapped != MAP_FAILED)
        control = mapped;
}

static int fails(uint32_t operation, const char *path)
{
    if (!control || !(control->operations & operation) || !path || !strstr(path, control->path))
        return 0;
    __sync_fetch_and_add(&control->hits, 1);
    errno = control->error;
    return 1;
}

static int descriptor_fails(uint32_t operation, int descriptor)
{
    char link[40], path[4096];
    if (!control || !(control->operations & operation))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0)
        return 0;
    path[size] = 0;
    return fails(operation, path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPENS(name)                                             \
    int name(const char *path, int flags, ...)                  \
    {                                                           \
        va_list arguments;                                      \
        va_start(arguments, flags);                             \
        mode_t mode = va_arg(arguments, mode_t);                \
        va_end(arguments);                                      \
        if (fails(OPEN, path))                                  \
            return -1;                                          \
        return REAL(name)(path, flags, mode);                   \
    }

#define OPENS_AT(name)                                          \
    int name(int directory, const char *path, int flags, ...)   \
    {                                                           \
        va_list arguments;                                      \
        va_start(arguments, flags);                             \
        mode_t mode = va_arg(arguments, mode_t);                \
        va_end(arguments);                                      \
        if (fails(OPEN, path))                                  \
            return -1;                                          \
        return REAL(name)(directory, path, flags, mode);        \
    }

OPENS(open)
OPENS(open64)
OPENS_AT(openat)
OPENS_AT(openat64)

ssize_t write(int descriptor, const void *data, size_t size)
{
    return descriptor_fails(WRITE, descriptor) ? -1 : REAL(write)(descriptor, data, size);
}

ssize_t pwrite(int descriptor, const void *data, size_t size, off_t position)
{
    return descriptor_fails(WRITE, descriptor) ? -1 : REAL(pwrite)(descriptor, data, size, position);
}

ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t position)
{
    return descriptor_fails(WRITE, descriptor) ? -1 : REAL(pwrite64)(descriptor, data, size, position);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count)
{
    return descriptor_fails(WRITE, descriptor) ? -1 : REAL(writev)(descriptor, parts, count);
}

ssize_t read(int descriptor, void *data, size_t size)
{
    return descriptor_fails(READ, descriptor) ? -1 : REAL(read)(descriptor, data, size);
}

ssize_t pread(int descriptor, void *data, size_t size, off_t position)
{
    return descriptor_fails(READ, descriptor) ? -1 : REAL(pread)(descriptor, data, size, position);
}

ssize_t pread64(int descriptor, void *data, size_t size, off64_t position)
{
    return descriptor_fails(READ, descriptor) ? -1 : REAL(pread64)(descriptor, data, size, position);
}

ssize_t sendfile(int out, int in, off_t *offset, size_t count)
{
    return descriptor_fails(READ | SEND, in) ? -1 : REAL(sendfile)(out, in, offset, count);
}

ssize_t sendfile64(int out, int in, off64_t *offset, size_t count)
{
    return descriptor_fails(READ | SEND, in) ? -1 : REAL(sendfile64)(out, in, offset, count);
}

int fsync(int descriptor)
{
    return descriptor_fails(SYNC, descriptor) ? -1 : REAL(fsync)(descriptor);
}

int fdatasync(int descriptor)
{
    return descriptor_fails(SYNC, descriptor) ? -1 : REAL(fdatasync)(descriptor);
}

int syncfs(int descriptor)
{
    return descriptor_fails(SYNC, descriptor) ? -1 : REAL(syncfs)(descriptor);
}

int ftruncate(int descriptor, off_t size)
{
    return descriptor_fails(TRUNCATE, descriptor) ? -1 : REAL(ftruncate)(descriptor, size);
}

int ftruncate64(int descriptor, off64_t size)
{
    return descriptor_fails(TRUNCATE, descriptor) ? -1 : REAL(ftruncate64)(descriptor, size);
}

int rename(const char *old, const char *new)
{
    return fails(RENAME, old) ? -1 : REAL(rename)(old, new);
}

int unlink(const char *path)
{
    return fails(REMOVE, path) ? -1 : REAL(unlink)(path);
}

int mkdir(const char *path, mode_t mode)
{
    return fails(MAKE_DIRECTORY, path) ? -1 : REAL(mkdir)(path, mode);
}
