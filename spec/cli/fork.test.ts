// Forks from the command line, on the SQLite store.

import { expect } from 'vitest';
import type { ForkedTurn } from '../../src/index.js';
import type { TurnResult } from '../../src/protocol/index.js';
import { Project, tool } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

const asking = { ...tool('asking', 'echo'), policy: { approval: 'ask' } };

verifies('fork.copy', 'rondo fork: a paused turn continues twice, each with its own approval', async () => {
  const project = new Project({ asking });
  const paused = await project.run(['run', 'asking', '--session', 'ada', '--input', '{"n":1}', '--json']);
  expect(paused.code).toBe(2);
  const { turnId } = JSON.parse(paused.stdout) as TurnResult;
  const refused = await project.run(['fork', 'ada', '--at', '999', '--json']);
  expect(refused.code).toBe(1);
  const { error } = JSON.parse(refused.stdout) as {
    error: { code: string; details: { nearest: number } };
  };
  expect(error.code).toBe('FORK_REFUSED');
  const at = error.details.nearest;
  const fork = await project.json<ForkedTurn>(['fork', 'ada', '--at', String(at)]);
  expect(fork.origin).toEqual({ sessionId: 'ada', turnId, at });
  const { approvals } = await project.json<{ approvals: { id: string; turnId: string }[] }>(['approvals']);
  expect(approvals.map((approval) => approval.turnId).sort()).toEqual([turnId, fork.turnId].sort());
  const own = approvals.find((approval) => approval.turnId === fork.turnId);
  expect((await project.run(['approve', own?.id ?? '', '--as', 'bob'])).code).toBe(0);
  expect(await project.json(['status', fork.turnId])).toMatchObject({ status: 'ok', output: { n: 1 } });
  expect(await project.json(['status', turnId])).toMatchObject({ status: 'paused' });
  expect((await project.run(['replay', fork.turnId])).code).toBe(0);
  expect((await project.run(['diff', turnId, fork.turnId])).code).toBe(0);
  expect((await project.run(['doctor', '--full'])).code, 'the store does not verify').toBe(0);
});

verifies('fork.copy', 'rondo fork: without a number of an entry it is a usage error', async () => {
  const project = new Project({ asking });
  for (const args of [['fork', 'ada'], ['fork', 'ada', '--at', '-1'], ['fork', 'ada', '--at', 'x'], ['fork']])
    expect((await project.run(args)).code, args.join(' ')).toBe(64);
  expect((await project.run(['fork', 'none', '--at', '1'])).code).toBe(1);
});

verifies('fork.copy', 'rondo worker continues a fork', async () => {
  const wait = {
    ...{ id: 'pause', name: 'pause', version: '1.0.0', kind: 'composite', inputSchema: {}, outputSchema: {} },
    composite: {
      steps: [
        { loopId: 'echo', inputMapping: '$.input' },
        { loopId: 'echo', inputMapping: '$.input' },
      ],
    },
  };
  const project = new Project({ wait, echo: tool('echo', 'echo') });
  const { turnId } = await project.json<TurnResult>(['run', 'pause', '--input', '{"n":1}']);
  const fork = await project.json<ForkedTurn>(['fork', turnId, '--at', '4']);
  expect(await project.json(['status', fork.turnId])).toMatchObject({ status: 'interrupted' });
  expect((await project.run(['worker', '--once'])).code).toBe(0);
  expect(await project.json(['status', fork.turnId])).toMatchObject({ status: 'ok' });
});
