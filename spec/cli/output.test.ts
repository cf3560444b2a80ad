// Exit codes when the output cannot be written: each verb as a process, with real files, pipes and devices.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { expect } from 'vitest';
import type { TurnResult } from '../../src/protocol/index.js';
import { verbs } from '../../src/surfaces/cli/verbs.js';
import { bin, Project, tool } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const hasFull = existsSync('/dev/full');

/** Runs a shell command in the project, with `$RONDO` as the command line. `code` is the last line of its output. */
async function shell(project: Project, line: string): Promise<{ code: number; stdout: string; stderr: string }> {
  const { PATH = '', HOME = '' } = process.env;
  const RONDO = `${quote(process.execPath)} ${quote(bin)}`;
  const script = line.replaceAll('$RONDO', RONDO);
  return new Promise((resolve) => {
    const env = { PATH, HOME };
    execFile('bash', ['-c', script], { cwd: project.directory, env }, (_error, stdout, stderr) => {
      resolve({ code: Number(stdout.trim().split('\n').at(-1)), stdout, stderr });
    });
  });
}

/** A tool that requires an approval. */
const asking = { ...tool('asking', 'echo'), policy: { approval: 'ask' } };
const loops = { echo: tool('echo', 'echo'), fail: tool('fail', 'fail'), asking };

type CommandLine = readonly [line: string, code: number];

/** The command lines of the verbs of receipts. */
const PROOF_LINES: readonly CommandLine[] = [
  ['receipts', 0],
  ['verify --all', 0],
  ['verify', 64],
  ['export --session talk', 0],
  ['export --as paper', 64],
  ['keys', 0],
  ['keys burn', 64],
  ['close none-such', 1],
];

/** The command lines of hosted loops. */
const HOST_LINES: readonly CommandLine[] = [
  ['host start hourly.json', 0],
  ['host start none.json', 64],
  ['host status', 0],
  ['host status none-such', 1],
  ['host pause hourly', 0],
  ['host stop hourly', 0],
  ['host list', 64],
];

/** Writes what the command lines use besides the loops of the project. */
function writeFiles(project: Project): void {
  const agent = {
    ...{ id: 'agent', name: 'agent', version: '1.0.0', kind: 'composite', inputSchema: {}, outputSchema: {} },
    composite: { agent: { backend: { id: 'mock' }, tools: [] } },
  };
  project.write('loops/agent.json', agent);
  project.write('taken/README.md', 'mine');
  const grant = { allowedTools: ['echo'], limits: {} };
  project.write('hourly.json', { id: 'hourly', loop: 'echo', input: {}, grant, turn: {}, stop: { maxTurns: 3 } });
  const cases = [{ name: 'echo', loop: 'echo', expect: { status: 'ok' } }];
  project.write('cases/harness.json', { cases });
}

/** Returns command lines that cover every verb, each with its exit code when the output is read. */
async function commandLines(project: Project): Promise<readonly CommandLine[]> {
  const { turnId } = await project.json<TurnResult>(['run', 'echo', '--session', 'done']);
  const failed = await project.json<TurnResult>(['run', 'fail', '--session', 'failed']);
  writeFiles(project);
  await project.run(['chat', 'agent', '--session', 'talk'], { input: 'Hello\n' });
  return [
    ['init taken', 1],
    ['completion bash', 0],
    ['run echo', 0],
    ['run fail', 1],
    ['run asking', 2],
    ['run unknown', 1],
    ['run echo --input [', 64],
    ['chat agent', 0],
    ['chat echo', 64],
    [`resume ${turnId}`, 0],
    [`resume ${failed.turnId}`, 1],
    ['resume none-such', 1],
    [`cancel ${turnId}`, 1],
    ['list', 0],
    ['show echo', 0],
    ['show unknown', 1],
    ['check', 0],
    ['plan convert loops/echo.json', 0],
    ['plan convert loops/none.json', 64],
    ['check loops/none.json', 1],
    ['runs', 0],
    [`status ${turnId}`, 0],
    ['status none-such', 1],
    [`trace ${turnId}`, 0],
    [`trace ${failed.turnId}`, 0],
    ['events talk', 0],
    ['events none-such', 1],
    [`diff ${turnId} ${failed.turnId}`, 0],
    [`replay ${turnId}`, 0],
    ['retry none-such', 1],
    ['fork talk --at 2', 0],
    ['fork talk --at 99', 1],
    ['fork talk', 64],
    ['signal none-such paid', 1],
    ['approvals', 0],
    ['approve none-such', 1],
    ['deny none-such', 1],
    ['resolve none-such --fail', 1],
    ...HOST_LINES,
    ['conformance --only DEF-01', 0],
    ['harness cases', 0],
    ['harness none', 64],
    ['doctor', 0],
    ['doctor --data /dev/null/x', 1],
    ['remove none-such --yes', 1],
    ...PROOF_LINES,
    ['trust', 0],
  ];
}

verifies(
  'cli.output',
  'a verb whose output is lost ends with 70 in place of 0, and with its own code otherwise',
  async (context) => {
    context.skip(!hasFull, 'needs /dev/full');
    const project = new Project(loops);
    const lines = await commandLines(project);
    const tested = new Set(lines.map(([line]) => line.split(' ', 1)[0]));
    expect([...tested, 'demo', 'dev', 'worker'].sort()).toEqual(verbs.map(({ name }) => name).sort());
    const actual: string[] = [];
    const expected: string[] = [];
    for (const [line, code] of lines) {
      const redirections: (readonly [redirection: string, code: number])[] = [
        ['> /dev/full', code === 0 ? 70 : code],
        ['> /dev/full 2>&1', code === 0 ? 70 : code],
        ['>&- 2>&-', code],
        [`| true; (exit \${PIPESTATUS[1]})`, code],
      ];
      // All redirections for `run`; for the others one that fails and one that does not.
      const selected = line.startsWith('run')
        ? redirections
        : [redirections[0], redirections[3]].filter((one) => one !== undefined);
      for (const [redirection, expectedCode] of selected) {
        const { code: actualCode } = await shell(project, `echo Hello | $RONDO ${line} --json ${redirection}; echo $?`);
        expected.push(`${line} --json ${redirection}: ${expectedCode}`);
        actual.push(`${line} --json ${redirection}: ${actualCode}`);
      }
    }
    expect(actual).toEqual(expected);
  },
  600_000,
);

verifies('cli.output', 'lost output is reported on stderr, and the turn is in the journal', async (context) => {
  context.skip(!hasFull, 'needs /dev/full');
  const project = new Project(loops);
  const { code, stderr } = await shell(project, '$RONDO run echo --session s --json > /dev/full; echo $?');
  expect(code).toBe(70);
  expect(stderr).toMatch(
    /^rondo: The output could not be written to stdout: ENOSPC.*What the verb did is recorded\.$/m,
  );
  expect(await project.json(['status', 's'])).toMatchObject({ turns: [{ status: 'ok' }] });
});

verifies(
  'cli.output',
  'lost output also changes the exit code without --json and with only stderr lost',
  async (context) => {
    context.skip(!hasFull, 'needs /dev/full');
    const project = new Project(loops);
    const codes = ['run echo', 'run fail', 'run asking', 'list', '--help', '--version'].map(async (line) => {
      const { code } = await shell(project, `$RONDO ${line} > /dev/full; echo $?`);
      return [line, code];
    });
    expect(await Promise.all(codes)).toEqual([
      ['run echo', 70],
      ['run fail', 1],
      ['run asking', 2],
      ['list', 70],
      ['--help', 70],
      ['--version', 70],
    ]);
    expect((await shell(project, '$RONDO run echo 2> /dev/full > out; echo $?')).code).toBe(70);
    expect((await shell(project, '$RONDO run fail 2> /dev/full > out; echo $?')).code).toBe(1);
  },
);

verifies('cli.output', 'a document that a full disk truncates is reported as a failure', async () => {
  const project = new Project(loops);
  project.write('big.json', JSON.stringify({ text: 'x'.repeat(500_000) }));
  // With a limit on file sizes the first write is short, which Node's own streams treat as complete.
  const limited = 'trap "" XFSZ; ulimit -f 8';
  const run = '$RONDO run echo --store memory: --input @big.json --json > out.json';
  const { code, stderr } = await shell(project, `${limited}; ${run}; echo $?`);
  expect(project.read('out.json').length).toBeLessThan(500_000);
  expect(code).toBe(70);
  expect(stderr).toContain('The output could not be written to stdout: EFBIG');
});

verifies('cli.output', 'a large document reaches a slow reader completely', async () => {
  const project = new Project(loops);
  project.write('big.json', JSON.stringify({ text: 'x'.repeat(3_000_000) }));
  const { stdout } = await shell(
    project,
    `$RONDO run echo --input @big.json --json | (sleep 1; wc -c); echo "\${PIPESTATUS[0]}"`,
  );
  const [bytes, code] = stdout.trim().split('\n').map(Number);
  expect(bytes).toBeGreaterThan(3_000_000);
  expect(code).toBe(0);
});

verifies('cli.output', 'a chat whose reader closed the pipe starts no further turn', async () => {
  const project = new Project(loops);
  await commandLines(project);
  const lines = Array.from({ length: 30 }, (_, n) => `message ${n}`).join('\\n');
  const { stdout } = await shell(
    project,
    `printf '${lines}\\n' | $RONDO chat agent --session many --json | true; echo "\${PIPESTATUS[1]}"`,
  );
  expect(stdout).toBe('0\n');
  const { turns } = await project.json<{ turns: unknown[] }>(['status', 'many']);
  expect(turns.length).toBeLessThan(30);
});
