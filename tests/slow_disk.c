/* A disk that takes its time: preloaded, it makes every sync last and counts it.

    LD_PRELOAD=slow_disk.so TIDEWOLF_SYNC_MS=5 TIDEWOLF_SYNC_COUNT=FILE  command ...

fsync and fdatasync are done as ever and return no earlier than TIDEWOLF_SYNC_MS milliseconds after
they were called, as that variable is at the time. FILE holds eight bytes at least, an unsigned
number in the machine's order, and all processes that were given it add to it when a sync begins.

With TIDEWOLF_SYNC_KEEP=FOLDER every file is copied there when it was synced, under its own name, and
what was deleted goes from there when its folder was synced: the FOLDER holds what a power cut leaves
of a disk that has written nothing but what it was told to.
*/
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

static void forget_deleted(int place, const char *folder) {
    DIR *kept = opendir(folder);
    for (struct dirent *each; kept && (each = readdir(kept));)
        if (faccessat(place, each->d_name, F_OK, 0)) unlinkat(dirfd(kept), each->d_name, 0);
    if (kept) closedir(kept);
}

static void keep(int file, const char *folder) {
    static _Atomic int number;
    char link[64], path[4096], half[4200], whole[4200], block[65536];
    struct stat found;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0 || fstat(file, &found)) return;
    if (S_ISDIR(found.st_mode)) forget_deleted(file, folder);
    if (!S_ISREG(found.st_mode)) return;
    path[length] = 0;
    snprintf(half, sizeof half, "%s/half.%d.%d", folder, (int)getpid(), number++);
    snprintf(whole, sizeof whole, "%s/%s", folder, strrchr(path, '/') + 1);
    int copy = open(half, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (copy < 0) return;
    ssize_t k;
    for (off_t at = 0; (k = pread(file, block, sizeof block, at)) > 0; at += k)
        if (write(copy, block, k) != k) break;
    close(copy);
    rename(half, whole);
}

static int slowly(int (*do_sync)(int), int file) {
    const char *ms = getenv("TIDEWOLF_SYNC_MS"), *kept = getenv("TIDEWOLF_SYNC_KEEP");
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    if (count) ++*count;
    int found = do_sync(file), error = errno;
    if (kept && *kept && !found) keep(file, kept);
    until.tv_nsec += ms ? (long)(1e6 * atof(ms)) : 0;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {}
    errno = error;
    return found;
}

int fsync(int file) { return slowly(sync_all, file); }

int fdatasync(int file) { return slowly(sync_data, file); }
