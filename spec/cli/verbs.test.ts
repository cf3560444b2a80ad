// The verbs that run and inspect turns: their output and exit codes.

import { expect } from 'vitest';
import type { TraceEvent, TurnResult, TurnStatus } from '../../src/protocol/index.js';
import { hello, Project } from '../support/cli-project.js';
import { outputOf } from '../support/turn-results.js';
import { verifies } from '../verifies.js';

interface Failed {
  readonly error: { readonly code: string; readonly message: string };
}

/** A fixed seed and time. */
const seed = { env: { RONDO_SEED: '7', RONDO_NOW: '2030-01-01T00:00:00Z' } };

verifies('cli.contract', 'run prints the output on stdout and the summary on stderr', async () => {
  const project = new Project();
  const human = await project.run(['run', 'hello', '--input', '{"name": "Ada"}']);
  expect(human.code).toBe(0);
  expect(JSON.parse(human.stdout)).toEqual(expect.any(Object));
  expect(human.stdout).toContain('\n');
  expect(human.stderr).toMatch(
    /^ok after .*, turn s-[0-9a-f]{16}\.1, \d+ tokens in, \d+ out\nReceipt: sha256:[0-9a-f]{64}\n$/,
  );
  const result = await project.json<TurnResult>(['run', 'hello', '--input', '{"name": "Ada"}']);
  expect(result).toMatchObject({ loopId: 'hello', loopVersion: '1.0.0', status: 'ok', durationMs: expect.any(Number) });
  expect(Object.keys(result)).toEqual(
    expect.arrayContaining(['callId', 'turnId', 'sessionId', 'output', 'startedAt', 'endedAt', 'trace']),
  );
  expect(result.trace.at(-1)).toMatchObject({ type: 'call.completed', callId: result.turnId });
});

verifies('identity.principal', 'a key on the command line belongs to the principal that --as names', async () => {
  const project = new Project();
  const args = ['run', 'hello', '--key', 'order-17', '--input', '{"name": "Ada"}'];
  const turns: string[] = [];
  for (const principal of [[], ['--as', 'ada'], ['--as', 'eve'], ['--as', 'ada']]) {
    turns.push((await project.json<TurnResult>([...args, ...principal])).turnId);
  }
  expect(new Set(turns).size).toBe(3);
  expect(turns[3]).toBe(turns[1]);
  const { runs } = await project.json<{ runs: TurnStatus[] }>(['runs']);
  expect(runs.map(({ principal }) => principal)).toEqual(['eve', 'ada', undefined]);
});

verifies('cli.contract', 'a failed run ends with exit code 1 and its error', async () => {
  const project = new Project();
  const failed = await project.run(['run', 'pair', '--input', '{"name": "Ada", "ms": "soon"}']);
  expect(failed).toMatchObject({ code: 1, stdout: '' });
  expect(failed.stderr).toContain('TOOL_FAILED: Step 1 (wait) failed');
  expect(failed.stderr).toMatch(/Where: step 1 \(wait\), call s-\w+\.1\/1/);
  expect(failed.stderr).toMatch(/Next: rondo trace s-\w+\.1/);
  const result = await project.json<TurnResult>(['run', 'pair', '--input', '{"name": "Ada", "ms": "soon"}']);
  expect(result).toMatchObject({ status: 'error', error: { code: 'TOOL_FAILED' } });
});

verifies('cli.contract', 'the same key runs once, and other content under it is refused', async () => {
  const project = new Project();
  const args = ['run', 'hello', '--key', 'order-17', '--input', '{"name": "Ada"}'];
  const [first, second] = [await project.json<TurnResult>(args), await project.json<TurnResult>(args)];
  expect(second.turnId).toBe(first.turnId);
  expect(outputOf(second)).toEqual(outputOf(first));
  const { runs } = await project.json<{ runs: TurnStatus[] }>(['runs']);
  expect(runs).toHaveLength(1);
  const other = await project.run(['run', 'hello', '--key', 'order-17', '--input', '{"name": "Bob"}', '--json']);
  expect(other.code).toBe(1);
  expect(JSON.parse(other.stdout)).toMatchObject({ error: { code: 'KEY_CONFLICT' } });
});

verifies('cli.contract', 'a loop is found by id, version and file', async () => {
  const project = new Project({ hello, next: { ...hello, version: '2.0.0' } });
  const input = ['--input', '{"name": "Ada"}', '--json'];
  const versionOf = async (...args: string[]): Promise<string> => {
    const { stdout } = await project.run(['run', ...args, ...input]);
    return (JSON.parse(stdout) as TurnResult).loopVersion;
  };
  expect(await versionOf('hello')).toBe('2.0.0');
  expect(await versionOf('hello@1.0.0')).toBe('1.0.0');
  expect(await versionOf('hello', '--version', '1.0.0')).toBe('1.0.0');
  expect(await versionOf('loops/hello.json')).toBe('1.0.0');
  expect(await versionOf(project.path('loops/next.json'))).toBe('2.0.0');
  const both = await project.run(['run', 'hello@1.0.0', '--version', '2.0.0']);
  expect(both).toMatchObject({ code: 64, stdout: '' });
});

verifies('cli.contract', 'a loop that is run by file can call the loops next to it', async () => {
  const project = new Project();
  const result = await project.json<TurnResult>(['run', 'loops/pair.json', '--input', '{"name": "A", "ms": 1}']);
  expect(result).toMatchObject({ status: 'ok', output: { waitedMs: 1 } });
  project.write('loops/broken.json', '{"id": "broken",\n "version": 3}');
  const broken = await project.run(['run', 'loops/broken.json', '--json']);
  expect(broken.code).toBe(1);
  expect(JSON.parse(broken.stdout)).toMatchObject({ error: { code: 'DEFINITION_INVALID' } });
  expect(broken.stderr).toContain('broken.json:2');
});

verifies('cli.contract', 'a turn is found by status, id, prefix and session', async () => {
  const project = new Project();
  const { turnId, sessionId } = await project.json<TurnResult>(['run', 'hello', '--input', '{"name": "Ada"}']);
  await project.run(['run', 'fail', '--session', 'mine']);
  await project.run(['run', 'echo', '--session', 'mine']);
  const { runs } = await project.json<{ runs: TurnStatus[] }>(['runs']);
  expect(runs.map(({ loopId }) => loopId)).toEqual(['echo', 'fail', 'hello']);
  const errors = await project.json<{ runs: TurnStatus[] }>(['runs', '--status', 'error', '--limit', '5']);
  expect(errors.runs).toMatchObject([{ loopId: 'fail', status: 'error', error: { code: 'TOOL_FAILED' } }]);
  const one = await project.json<{ runs: TurnStatus[] }>(['runs', '--limit', '1']);
  expect(one.runs).toHaveLength(1);
  expect((await project.run(['runs'])).stdout).toMatch(/^TURN +LOOP +STATUS/);
  expect(await project.json(['status', turnId])).toMatchObject({ turnId, sessionId, status: 'ok', loopId: 'hello' });
  expect(await project.json(['status', turnId.slice(0, 8)])).toMatchObject({ turnId });
  const session = await project.json<{ turns: TurnStatus[] }>(['status', 'mine']);
  expect(session).toMatchObject({ sessionId: 'mine', turns: [{ loopId: 'fail' }, { loopId: 'echo' }] });
  const ambiguous = await project.run(['trace', 'mine']);
  expect(ambiguous.code).toBe(64);
  expect(ambiguous.stderr).toContain('matches 2 turns');
  const none = await project.run(['status', 's-nothing', '--json']);
  expect(none.code).toBe(1);
  expect((JSON.parse(none.stdout) as Failed).error.code).toBe('TURN_NOT_FOUND');
});

verifies('cli.contract', 'trace prints the events of the turn', async () => {
  const project = new Project();
  const { turnId, trace } = await project.json<TurnResult>(['run', 'pair', '--input', '{"name": "A", "ms": 1}']);
  const lines = (await project.run(['trace', turnId, '--json'])).stdout.trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line) as TraceEvent)).toEqual(trace);
  const human = await project.run(['trace', turnId]);
  expect(human.code).toBe(0);
  expect(human.stdout).toContain('pair@1.0.0');
  expect(human.stdout).toContain('hello@1.0.0');
  const none = await project.run(['trace', 'nothing', '--json']);
  expect(none).toMatchObject({ code: 1, stdout: '' });
});

verifies('cli.contract', 'diff compares two turns', async () => {
  const project = new Project();
  const turn = async (name: string): Promise<string> =>
    (await project.json<TurnResult>(['run', 'hello', '--input', JSON.stringify({ name })])).turnId;
  const [a, b] = [await turn('Ada'), await turn('Grace Hopper')];
  expect(await project.json(['diff', a, b])).toMatchObject({ a, b, same: false });
  const human = await project.run(['diff', a, b]);
  expect(human.code).toBe(0);
  expect(human.stdout).toContain('output');
});

verifies('cli.contract', 'a run with a fixed seed and time repeats its ids, and each turn has its own', async () => {
  const turns = async (): Promise<string[]> => {
    const project = new Project();
    const ids: string[] = [];
    for (let count = 0; count < 3; count++) {
      const result = await project.json<TurnResult>(['run', 'echo', '--session', 'same'], seed);
      expect(result.startedAt).toMatch(/^2030-01-01T00:00:/);
      ids.push(result.turnId);
    }
    return ids;
  };
  const [first, second] = [await turns(), await turns()];
  expect(new Set(first).size).toBe(3);
  expect(second).toEqual(first);
});
