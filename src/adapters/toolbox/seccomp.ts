/**
 * The system call filter of the sandbox, as the BPF program that bubblewrap loads. A namespace does not replace the session
 * keyring that a process inherits, so a command could read the keys of the operator: all calls of the keyring are denied. So
 * are calls that allocate memory which escapes the memory limit, and sockets of families that network namespaces do not
 * separate, such as those to the hypervisor. Calls of another architecture have other numbers: a process that makes one is killed.
 */

/** Where the kernel puts the number, the architecture and the first argument of a call (struct seccomp_data). */
const NUMBER_OFFSET = 0;
const ARCHITECTURE_OFFSET = 4;
const ARGUMENT_OFFSET = 16;

/** Instructions: load a word, jump if equal, jump if greater or equal, return. */
const LOAD = 0x20;
const JUMP_EQUAL = 0x15;
const JUMP_AT_LEAST = 0x35;
const RETURN = 0x06;

const ALLOW = 0x7fff0000;
const KILL_PROCESS = 0x80000000;
const ERRNO = 0x00050000;
const EPERM = 1;
const ENOSYS = 38;
const EAFNOSUPPORT = 97;

/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: what programs use, and what a network namespace separates. */
const ALLOWED_SOCKET_FAMILIES = [1, 2, 10, 16];

/** The calls of the x32 interface of an x86-64 kernel begin here. */
const X32_SYSCALL_START = 0x40000000;

interface SyscallNumbers {
  /** The constant AUDIT_ARCH_… of the kernel. */
  readonly architecture: number;
  /** add_key, request_key, keyctl. */
  readonly keyring: readonly number[];
  /** memfd_create, memfd_secret, shmget; and io_uring_setup, with which all other calls could be made past the filter. */
  readonly memory: readonly number[];
  readonly socket: number;
}

/** The numbers that newer architectures share. */
const genericSyscalls = { keyring: [217, 218, 219], memory: [279, 447, 194, 425], socket: 198 } as const;

const syscallsByArch: { readonly [arch: string]: SyscallNumbers } = {
  x64: { architecture: 0xc000003e, keyring: [248, 249, 250], memory: [319, 447, 29, 425], socket: 41 },
  arm64: { architecture: 0xc00000b7, ...genericSyscalls },
  riscv64: { architecture: 0xc00000f3, ...genericSyscalls },
  loong64: { architecture: 0xc0000102, ...genericSyscalls },
};

/** The filter for a processor, by Node's name for it; undefined if there is none. */
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
    // As on a kernel that does not have them: programs then use a file, which is counted.
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

/** One instruction (struct sock_filter); jumps count from the next one. All of these processors are little-endian. */
function instruction(code: number, value: number, jumpTrue = 0, jumpFalse = 0): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt16LE(code, 0);
  bytes.writeUInt8(jumpTrue, 2);
  bytes.writeUInt8(jumpFalse, 3);
  bytes.writeUInt32LE(value, 4);
  return bytes;
}
