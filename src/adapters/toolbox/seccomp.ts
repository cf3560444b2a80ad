/**
 * The system call filter of the sandbox, a BPF program that bubblewrap loads. Namespaces do not replace the session
 * keyring that a process inherits, so a command could read the keys of the operator: all keyring calls are denied. So
 * are calls that allocate memory outside of the memory limit, and socket families that network namespaces do not
 * isolate, such as those to the hypervisor. The numbers of calls differ between architectures, so a process that makes
 * a call of another architecture, such as 32-bit x86, is killed.
 */

/** The offsets of the number, the architecture and the first argument of a call in struct seccomp_data. */
const NUMBER_OFFSET = 0;
const ARCHITECTURE_OFFSET = 4;
const ARGUMENT_OFFSET = 16;

/** BPF instructions: load a word, jump if equal, jump if greater or equal, return. */
const LOAD = 0x20;
const JUMP_EQUAL = 0x15;
const JUMP_AT_LEAST = 0x35;
const RETURN = 0x06;

/** Results of the filter (`ERRNO` is combined with an error number), and error numbers. */
const ALLOW = 0x7fff0000;
const KILL_PROCESS = 0x80000000;
const ERRNO = 0x00050000;
const EPERM = 1;
const ENOSYS = 38;
const EAFNOSUPPORT = 97;

/** AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK: the families that programs use and that a network namespace isolates. */
const ALLOWED_SOCKET_FAMILIES = [1, 2, 10, 16];

/** The first call number of the x32 ABI of an x86-64 kernel. */
const X32_SYSCALL_START = 0x40000000;

interface SyscallNumbers {
  /** The kernel constant AUDIT_ARCH_…. */
  readonly architecture: number;
  /** add_key, request_key, keyctl. */
  readonly keyring: readonly number[];
  /** memfd_create, memfd_secret and shmget; and io_uring_setup, whose operations bypass the filter. */
  readonly memory: readonly number[];
  readonly socket: number;
}

/** The call numbers that newer architectures share. */
const genericSyscalls = { keyring: [217, 218, 219], memory: [279, 447, 194, 425], socket: 198 } as const;

const syscallsByArch: { readonly [arch: string]: SyscallNumbers } = {
  x64: { architecture: 0xc000003e, keyring: [248, 249, 250], memory: [319, 447, 29, 425], socket: 41 },
  arm64: { architecture: 0xc00000b7, ...genericSyscalls },
  riscv64: { architecture: 0xc00000f3, ...genericSyscalls },
  loong64: { architecture: 0xc0000102, ...genericSyscalls },
};

/** Returns the filter for an architecture, named as in `process.arch`; undefined if there is none. */
export function seccompFilterFor(arch: string = process.arch): Buffer | undefined {
  const calls = Object.hasOwn(syscallsByArch, arch) ? syscallsByArch[arch] : undefined;
  if (calls === undefined) return undefined;
  const deny = (numbers: readonly number[], errno: number) =>
    numbers.flatMap((number) => [instruction(JUMP_EQUAL, number, 0, 1), instruction(RETURN, ERRNO | errno)]);
  return Buffer.concat([
    instruction(LOAD, ARCHITECTURE_OFFSET),
    instruction(JUMP_EQUAL, calls.architecture, 1, 0),
    instruction(RETURN, KILL_PROCESS),
    instruction(LOAD, NUMBER_OFFSET),
    ...(arch === 'x64'
      ? [instruction(JUMP_AT_LEAST, X32_SYSCALL_START, 0, 1), instruction(RETURN, ERRNO | ENOSYS)]
      : []),
    // guard: keyring-calls-denied
    ...deny(calls.keyring, EPERM),
    // ENOSYS, as on a kernel without these calls: programs then fall back to files, whose memory is counted.
    ...deny(calls.memory, ENOSYS),
    instruction(JUMP_EQUAL, calls.socket, 0, ALLOWED_SOCKET_FAMILIES.length + 2),
    instruction(LOAD, ARGUMENT_OFFSET),
    ...ALLOWED_SOCKET_FAMILIES.map((family, index) =>
      instruction(JUMP_EQUAL, family, ALLOWED_SOCKET_FAMILIES.length - index, 0),
    ),
    instruction(RETURN, /* guard: unknown-socket-families-denied */ ERRNO | EAFNOSUPPORT),
    instruction(RETURN, ALLOW),
  ]);
}

/**
 * Encodes one instruction (struct sock_filter). Jumps are relative to the next one. All supported architectures are
 * little-endian.
 */
function instruction(code: number, value: number, jumpTrue = 0, jumpFalse = 0): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt16LE(code, 0);
  bytes.writeUInt8(jumpTrue, 2);
  bytes.writeUInt8(jumpFalse, 3);
  bytes.writeUInt32LE(value, 4);
  return bytes;
}
