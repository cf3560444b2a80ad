/** Isolation of a sandboxed command: socket families, inherited descriptors, and directories replaced by links. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect } from 'vitest';
import { cleanUp, createWorkspace, use } from '../../../spec/support/toolbox-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { toolbox } from './index.js';
import { limitsOf } from './limits.js';
import { mountSourcesOf } from './mount-sources.js';
import { runProcess } from './run-process.js';
import { probeSandbox, sandboxProcess } from './sandbox.js';

afterAll(cleanUp);

const sandbox = await probeSandbox();
const bubblewrap = 'bubblewrap' in sandbox ? sandbox.bubblewrap : '';
const hasSandbox = bubblewrap !== '';
const hasPerl = existsSync('/usr/bin/perl');

/** AF_VSOCK, AF_ALG, AF_PACKET, AF_BLUETOOTH; and AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. */
const DENIED = [40, 38, 17, 31];
const ALLOWED = [1, 2, 10, 16];

verifies(
  'toolbox.isolation',
  'a command can create only sockets of families that its network namespace isolates',
  async (context) => {
    context.skip(!hasSandbox, 'needs bubblewrap');
    context.skip(!hasPerl, 'needs perl');
    const { root } = createWorkspace();
    const { run_command } = toolbox({ roots: [root] });
    const program = 'for (@ARGV) { print socket(my $s, $_, $_ == 16 ? 3 : 1, 0) ? "made" : "$!", ";" }';
    const { output } = await use(run_command, { command: `perl -e '${program}' ${[...ALLOWED, ...DENIED].join(' ')}` });
    const refused = 'Address family not supported by protocol;';
    expect(output).toBe(`${'made;'.repeat(ALLOWED.length)}${refused.repeat(DENIED.length)}`);
  },
);

const PROGRAM = `
import { toolbox } from 'rondo/toolbox';
const { run_command } = toolbox({ roots: [process.argv[1]] });
const command = 'ls -l /proc/self/fd; cat /proc/self/fd/77/secret.txt; echo "it is "$?';
const { output } = await run_command.withApproval('always_allow').execute({ command }, { toolCallId: 'c', messages: [], onToolOutputDelta() {} });
console.log(output);
`;

verifies(
  'toolbox.isolation',
  'a command inherits no descriptor that the host process was started with',
  async (context) => {
    context.skip(!hasSandbox, 'needs bubblewrap');
    const { root } = createWorkspace();
    const outside = join(dirname(root), 'outside');
    mkdirSync(outside, { recursive: true });
    writeFileSync(join(outside, 'secret.txt'), 'the secret');
    const descriptor = openSync(outside, 'r');
    const cwd = fileURLToPath(new URL('../../../', import.meta.url));
    const stdio = [
      ...['ignore', 'pipe', 'inherit'],
      ...Array.from({ length: 74 }, () => 'ignore'),
      descriptor,
    ] as const;
    const args = ['--input-type=module', '-e', PROGRAM, root];
    const child = spawn(process.execPath, args, { cwd, stdio: [...stdio] as never });
    closeSync(descriptor);
    let output = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      output += chunk;
    });
    await once(child, 'close');
    expect(output).toMatch(/it is [^0]/);
    expect(output).not.toContain('the secret');
    expect(output).not.toContain(outside);
  },
);

verifies('toolbox.isolation', 'a mount source whose path contains a link is refused', () => {
  const { root } = createWorkspace({ 'real/inner/a.txt': 'a' });
  symlinkSync(join(root, 'real'), join(root, 'link'));
  expect(mountSourcesOf([join(root, 'real')])).toHaveLength(1);
  for (const path of ['link', 'link/inner', 'real/none']) {
    expect(() => mountSourcesOf([join(root, path)])).toThrow(/^Nothing was run: .* was moved or replaced/);
  }
});

verifies(
  'toolbox.isolation',
  'a command does not run if another directory than the checked one was mounted',
  async (context) => {
    context.skip(!hasSandbox, 'needs bubblewrap');
    const { root } = createWorkspace({ 'a/own.txt': 'own', 'b/other.txt': 'other' });
    const [a, b] = [join(root, 'a'), join(root, 'b')];
    const mounts = ['--bind', a, a];
    const confinement = { mounts, sources: mountSourcesOf([a]), directory: a, network: false, limits: limitsOf({}) };
    const settings = {
      env: { PATH: '/usr/bin:/bin' },
      timeoutMs: 20_000,
      maxOutputBytes: 4000,
      onOutput: () => undefined,
    };
    const start = () => runProcess({ ...sandboxProcess(bubblewrap, confinement, 'ls'), ...settings }, undefined);
    expect((await start()).output.text()).toBe('own.txt\n');
    renameSync(a, `${a}.old`);
    renameSync(b, a);
    const { exitCode, output } = await start();
    expect({ exitCode, output: output.text() }).toEqual({
      exitCode: 125,
      output: `Nothing was run: ${a} was moved or replaced while the sandbox was set up. Try again.\n`,
    });
  },
);
