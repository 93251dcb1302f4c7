"""Numbers of the system calls that the filter knows, by architecture. Data only.

Sources: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h of the Linux kernel.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """One architecture: AUDIT_ARCH_* of linux/audit.h, and the column of the tables below that is its own."""

    audit: int
    column: int


ARCHITECTURES = {
    "x86_64": Architecture(audit=0xC000003E, column=0),
    "aarch64": Architecture(audit=0xC00000B7, column=1),
}

# From here up (457 is statmount, which shows the host's paths) calls are newer than this table: refused.
FIRST_UNKNOWN = 457

# Looked at by argument, or (clone3) refused because its arguments cannot be looked at.
EXAMINED = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "ioctl": (16, 29),
    "mmap": (9, 222),
    "prlimit64": (302, 261),
    "socket": (41, 198),
    "socketpair": (53, 199),
}

# Refused whatever the arguments: (x86_64, aarch64), None where the architecture has no such call.
REFUSED: dict[str, tuple[int, int | None]] = {
    # other processes' memory, descriptors and control
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "kcmp": (312, 272),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    # the share of the processor that its warden, or another rank, gets
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    # namespaces and mounts
    "unshare": (272, 97),
    "setns": (308, 268),
    "chroot": (161, 51),
    "pivot_root": (155, 41),
    "mount": (165, 40),
    "umount2": (166, 39),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # memory that no limit counts, and objects that outlive a process
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # large parts of the kernel that no submission needs
    "bpf": (321, 280),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "vmsplice": (278, 75),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "set_mempolicy_home_node": (450, 450),
    "remap_file_pages": (216, 234),
    "personality": (135, 92),
    "uselib": (134, None),
    "modify_ldt": (154, None),
    "iopl": (172, None),
    "ioperm": (173, None),
    "lookup_dcookie": (212, 18),
    # the machine: refused to the unprivileged anyway
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "vhangup": (153, 58),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
}
