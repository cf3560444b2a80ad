/** A system that refuses every lock (ENOLCK), made by a library that is loaded before the C library. */
import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { cleanUp, freshFile } from '../../../../spec/support/sqlite-fixture.mjs';
import { verifies } from '../../../../spec/verifies.js';

afterAll(cleanUp);

const REFUSING_LIBRARY = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
static int call(const char *name, int fd, int command, void *argument) {
  if (command == F_SETLK && ((struct flock *)argument)->l_type != F_UNLCK) { errno = ENOLCK; return -1; }
  return ((int (*)(int, int, ...))dlsym(RTLD_NEXT, name))(fd, command, argument);
}
#define REPLACE(name) int name(int fd, int command, ...) { \\
  va_list list; va_start(list, command); void *argument = va_arg(list, void *); va_end(list); \\
  return call(#name, fd, command, argument); }
REPLACE(fcntl)
REPLACE(fcntl64)
`;

const ACQUIRE = new URL('../../../../dist/adapters/sqlite/owner/acquire.js', import.meta.url).href;

/** Compiles the library; returns an empty path without Linux and a C compiler. */
function refusingLibrary(folder: string): string {
  if (process.platform !== 'linux') return '';
  const [source, library] = [join(folder, 'refuse.c'), join(folder, 'refuse.so')];
  writeFileSync(source, REFUSING_LIBRARY);
  try {
    execFileSync('cc', ['-shared', '-fPIC', '-o', library, source, '-ldl'], { stdio: 'ignore' });
    return library;
  } catch {
    return '';
  }
}

verifies('sqlite.owner', 'a system that refuses locks is not taken for another owner', (context) => {
  const file = freshFile();
  const library = refusingLibrary(dirname(file));
  context.skip(!library, 'needs Linux and a C compiler');
  const program = `
    const { tryToAcquireOwnership, unjoinableStoreFault } = await import(${JSON.stringify(ACQUIRE)});
    const reason = await tryToAcquireOwnership(${JSON.stringify(file)});
    const { code, message } = unjoinableStoreFault(${JSON.stringify(file)}, undefined, reason);
    console.log(JSON.stringify({ code, message }));`;
  const env = { ...process.env, LD_PRELOAD: library };
  const args = ['--input-type=module', '-e', program];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env });
  const fault = JSON.parse(stdout || JSON.stringify({ stderr }));
  expect(fault, 'the user looks for a process that does not exist').toMatchObject({ code: 'STORE_FAILED' });
  expect(fault.message).toContain('the system refuses locks');
});
