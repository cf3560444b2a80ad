// Exit codes when the output of a process cannot be written: real files, pipes and devices.

import { existsSync } from 'node:fs';
import { expect } from 'vitest';
import { inLanes } from '../support/lanes.js';
import { verifies } from '../verifies.js';
import { commandLines, oneForEachVerb, projectWithEveryLoop, verbOf } from './command-lines.js';
import { shell } from './shell.js';

const hasFull = existsSync('/dev/full');

verifies(
  'cli.output',
  'a verb whose output is lost ends with 70 in place of 0, and with its own code otherwise',
  async (context) => {
    context.skip(!hasFull, 'needs /dev/full');
    const project = projectWithEveryLoop();
    const lines = oneForEachVerb(await commandLines(project));
    const full = lines.map(([line, code]) => [`${line} --json > /dev/full`, code === 0 ? 70 : code] as const);
    const closed = lines
      .filter((line) => verbOf(line) === 'run')
      .flatMap(
        ([line, code]) =>
          [
            [`${line} --json > /dev/full 2>&1`, 70],
            [`${line} --json >&- 2>&-`, code],
            [`${line} --json | true; (exit \${PIPESTATUS[1]})`, code],
          ] as const,
      );
    const expected = [...full, ...closed];
    const actual = await inLanes(expected, async ([line]) => {
      const { code } = await shell(project, `echo Hello | $RONDO ${line}; echo $?`);
      return [line, code];
    });
    expect(actual).toEqual(expected);
  },
);

verifies('cli.output', 'lost output is reported on stderr, and the turn is in the journal', async (context) => {
  context.skip(!hasFull, 'needs /dev/full');
  const project = projectWithEveryLoop();
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
    const project = projectWithEveryLoop();
    const lines = ['run echo', 'run fail', 'run asking', 'list', '--help', '--version'];
    const codes = await inLanes(lines, async (line) => {
      const { code } = await shell(project, `$RONDO ${line} > /dev/full; echo $?`);
      return [line, code];
    });
    expect(codes).toEqual([
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
  const project = projectWithEveryLoop();
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
  const project = projectWithEveryLoop();
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
  const project = projectWithEveryLoop();
  const lines = Array.from({ length: 30 }, (_, n) => `message ${n}`).join('\\n');
  const { stdout } = await shell(
    project,
    `printf '${lines}\\n' | $RONDO chat agent --session many --json | true; echo "\${PIPESTATUS[1]}"`,
  );
  expect(stdout).toBe('0\n');
  const { turns } = await project.json<{ turns: unknown[] }>(['status', 'many']);
  expect(turns.length).toBeLessThan(30);
});
