// `check` after a definition in code has changed, which takes one process for each version of its module.

import { rmSync } from 'node:fs';
import { expect } from 'vitest';
import type { TurnStatus } from '../../src/protocol/index.js';
import { hello, Project, until } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

/** Returns the source of a module with a loop that hangs in an effect. */
function hangingLoop(effect: string, comment: string): string {
  const library = new URL('../../dist/index.js', import.meta.url);
  return `import { defineLoop } from ${JSON.stringify(library)};
    const perform = () => new Promise((resolve) => setTimeout(resolve, 600_000));
    const body = async (_, scope) => {
      /* ${comment} */
      return scope.effect({ kind: 'thing', name: '${effect}', input: null, safety: 'idempotent', perform });
    };
    export const hangs = defineLoop({ id: 'hangs', input: {}, output: {}, run: body });`;
}

verifies('cli.contract', 'check reports a change that breaks a turn in flight', async () => {
  const project = new Project({ hello });
  project.trusted = true;
  project.write('loops/hangs.mjs', hangingLoop('first', 'original'));
  const { child, ended } = project.start(['run', 'hangs', '--session', 'flight']);
  await until(async () => (await project.json<{ runs?: TurnStatus[] }>(['runs'])).runs?.length === 1 || undefined);
  child.kill('SIGKILL');
  await ended;
  const { turnId } = (await project.json<{ turns: TurnStatus[] }>(['status', 'flight'])).turns[0] ?? { turnId: '' };
  expect(await project.jsonProcess(['check'])).toMatchObject({
    ok: true,
    inFlight: [{ turnId, changed: [], breaks: false }],
  });
  project.write('loops/hangs.mjs', hangingLoop('first', 'with another comment'));
  // Other source text that takes the same steps is no change.
  expect(await project.jsonProcess(['check'])).toMatchObject({
    ok: true,
    inFlight: [{ turnId, changed: [], breaks: false }],
  });
  project.write('loops/hangs.mjs', hangingLoop('second', 'original'));
  const broken = await project.runProcess(['check', '--json']);
  expect(broken.code).toBe(1);
  const changed = [{ loop: 'hangs@1.0.0', now: 'changed', parts: ['source'], breaks: true }];
  expect(JSON.parse(broken.stdout)).toMatchObject({ ok: false, inFlight: [{ turnId, changed, breaks: true }] });
  const report = (await project.runProcess(['check'])).stdout;
  expect(report).toContain(`turn ${turnId} of hangs@1.0.0 is in flight, and hangs@1.0.0: source changed: `);
  const resumed = await project.runProcess(['resume', turnId, '--json']);
  expect(resumed.code).toBe(70);
  expect(JSON.parse(resumed.stdout)).toMatchObject({ error: { code: 'REPLAY_MISMATCH' } });
  rmSync(project.path('loops/hangs.mjs'));
  expect((await project.runProcess(['check'])).code).toBe(1);
});
