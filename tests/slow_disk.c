/* A disk that takes its time: preloaded, it makes every sync last and counts it.

    LD_PRELOAD=slow_disk.so TIDEWOLF_SYNC_MS=5 TIDEWOLF_SYNC_COUNT=FILE  command ...

fsync and fdatasync are done as ever and return no earlier than TIDEWOLF_SYNC_MS milliseconds after
they were called, as that variable is at the time. FILE holds eight bytes at least, an unsigned
number in the machine's order, and all processes that were given it add to it when a sync begins.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static _Atomic uint64_t *count;
static int (*sync_all)(int), (*sync_data)(int);

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("TIDEWOLF_SYNC_COUNT");
    sync_all = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    sync_data = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *page = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) count = page;
    close(file);
}

static int slowly(int (*do_sync)(int), int file) {
    const char *ms = getenv("TIDEWOLF_SYNC_MS");
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    if (count) ++*count;
    int found = do_sync(file), error = errno;
    until.tv_nsec += ms ? (long)(1e6 * atof(ms)) : 0;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {}
    errno = error;
    return found;
}

int fsync(int file) { return slowly(sync_all, file); }

int fdatasync(int file) { return slowly(sync_data, file); }
