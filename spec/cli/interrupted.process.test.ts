// Turns whose process was interrupted or killed: what is printed, and how they are continued or resolved.

import { expect } from 'vitest';
import type { TurnResult, TurnStatus } from '../../src/protocol/index.js';
import { Project } from '../support/cli-project.js';
import { pendingOf } from '../support/turn-results.js';
import { verifies } from '../verifies.js';

verifies('cli.owner', 'an interrupted run prints how to continue it, and stops no other run', async () => {
  const project = new Project().withHoldTool();
  const owner = await project.startHeld('first', ['--json']);
  const other = await project.startHeld('second');
  other.child.kill('SIGINT');
  const { code, stderr } = await other.ended;
  expect(code).toBe(130);
  expect(stderr).toContain(`rondo resume ${other.turn}`);
  expect(await project.json(['status', other.turn])).toMatchObject({ status: 'interrupted' });
  project.release('first');
  project.release('second');
  expect(JSON.parse((await owner.ended).stdout)).toMatchObject({ status: 'ok' });
  expect(await project.json(['resume', other.turn])).toMatchObject({ status: 'ok', output: { held: 'second' } });
});

verifies('cli.owner', 'resume --all continues every interrupted turn', async () => {
  const project = new Project().withHoldTool();
  const owner = await project.startHeld('first');
  const client = await project.startHeld('second');
  for (const { child } of [owner, client]) child.kill('SIGKILL');
  await Promise.all([owner.ended, client.ended]);
  project.release('first');
  project.release('second');
  const { runs } = await project.json<{ runs: TurnResult[] }>(['resume', '--all']);
  expect(runs.map(({ status }) => status)).toEqual(['ok', 'ok']);
  const again = await project.run(['resume', '--all']);
  expect(again).toMatchObject({ code: 0, stdout: '' });
  expect(again.stderr).toContain('There are no turns to resume');
  expect((await project.run(['resume'])).code).toBe(64);
  expect((await project.run(['resume', 'first', '--all'])).code).toBe(64);
});

/** Kills a run inside of a tool and returns its turn. */
async function killedTurn(project: Project, name: string): Promise<string> {
  const { turn, child, ended } = await project.startHeld(name);
  child.kill('SIGKILL');
  await ended;
  return turn;
}

verifies('cli.owner', 'an effect in doubt is not repeated before it is resolved', async () => {
  const project = new Project().withHoldTool('once');
  const turn = await killedTurn(project, 'one');
  const paused = await project.run(['resume', turn, '--json']);
  expect(paused.code).toBe(2);
  const pending = pendingOf(JSON.parse(paused.stdout) as TurnResult);
  expect(pending).toMatchObject([{ kind: 'doubt', key: expect.stringContaining(`${turn}/`) }]);
  expect(paused.stderr).toContain(`rondo resolve ${pending[0]?.key} --retry`);
  expect(await project.json(['status', turn])).toMatchObject({ status: 'paused', pending: [{ kind: 'doubt' }] });
  expect((await project.run(['resume', '--all'])).code).toBe(2);
});

verifies('cli.owner', 'resolve supplies, fails or retries an effect in doubt', async () => {
  const project = new Project().withHoldTool('once');
  const one = await killedTurn(project, 'one');
  const supplied = await project.run(['resolve', one, '--result', '{"held": "long"}', '--as', 'ada', '--json']);
  expect(supplied.code).toBe(0);
  expect(JSON.parse(supplied.stdout)).toMatchObject({ status: 'ok', output: { held: 'long' } });
  const two = await killedTurn(project, 'second');
  const failed = await project.run(['resolve', two.slice(0, 10), '--fail', '--json']);
  expect(failed.code).toBe(1);
  expect(JSON.parse(failed.stdout)).toMatchObject({ error: { code: 'EFFECT_IN_DOUBT' } });
  const three = await killedTurn(project, 'third');
  const key = (await project.json<TurnStatus>(['status', three])).pending?.[0]?.key ?? '';
  project.release('third');
  expect(await project.json(['resolve', key, '--retry'])).toMatchObject({ status: 'ok', output: { held: 'third' } });
  expect((await project.run(['resolve', key, '--retry'])).code).toBe(1);
  expect((await project.run(['resolve', key])).code).toBe(64);
  expect((await project.run(['resolve', key, '--retry', '--fail'])).code).toBe(64);
  expect((await project.run(['resolve', key, '--result', '{'])).code).toBe(64);
  expect((await project.run(['resolve', three, '--retry'])).code).toBe(64);
});

verifies('cli.owner', 'Ctrl-C prints how to continue', async () => {
  const project = new Project().withHoldTool();
  const { turn, child, ended } = await project.startHeld('go');
  child.kill('SIGINT');
  const { code, signal, stderr } = await ended;
  expect({ code, signal }).toEqual({ code: 130, signal: null });
  expect(stderr).toContain(`rondo resume ${turn}`);
  project.release('go');
  expect(await project.json(['resume', turn])).toMatchObject({ status: 'ok' });
});
