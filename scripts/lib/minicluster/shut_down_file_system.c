/* Takes a mounted file system away from everyone who uses it: from now on each access to it is an I/O error.
 *
 *   shut_down_file_system MOUNT_POINT      exit codes: 0 it is gone; 1 it could not be taken away */
#include <fcntl.h>
#include <linux/types.h>
#include <stdio.h>
#include <sys/ioctl.h>

/* The kernel's FS_IOC_SHUTDOWN with its flag "write nothing back", which ext4, xfs and f2fs share; no header of the
 * user's side has it for all of them. */
#define SHUT_DOWN _IOR('X', 125, __u32)
enum { WITHOUT_FLUSHING_THE_LOG = 2 };

int main(int count, char **arguments)
{
    if (count != 2) {
        fprintf(stderr, "usage: %s MOUNT_POINT\n", arguments[0]);
        return 1;
    }
    const int folder = open(arguments[1], O_RDONLY | O_DIRECTORY);
    __u32 flags = WITHOUT_FLUSHING_THE_LOG;
    if (folder < 0 || ioctl(folder, SHUT_DOWN, &flags) != 0) {
        perror(arguments[1]);
        return 1;
    }
    return 0;
}
