// Damage on the command line: it is reported until it is accepted, a full check names it, and a session can be removed.

import { rmSync } from 'node:fs';
import { expect } from 'vitest';
import { openDriver } from '../../src/adapters/sqlite/index.js';
import { Project, tool } from '../support/cli-project.js';
import { verifies } from '../verifies.js';
import { hasScript, keys, Pty } from './pty.js';

interface DoctorReport {
  readonly ok: boolean;
  readonly store: {
    readonly checked: string;
    readonly sessions?: number;
    readonly damage: readonly { kind: string; session?: string; seq?: number }[];
    readonly affected: readonly string[];
    readonly accepted: readonly { kind: string; closed: { by: string; as: string; reason?: string } }[];
    readonly removed: readonly { session: string; by: string }[];
  };
}

const DB = '.rondo/journal.db';

/** Creates a project with one turn in each of these sessions. */
async function projectWithTurns(...sessions: readonly string[]): Promise<Project> {
  const project = new Project({ echo: tool('echo', 'echo'), fail: tool('fail', 'fail') });
  for (const session of sessions)
    await project.run(['run', 'echo', '--session', session, '--input', `{"in": "${session}"}`]);
  return project;
}

/** Changes the records of a session in the database, bypassing the store. */
function damage(project: Project, session: string): void {
  const raw = openDriver(project.path(DB));
  raw.exec(`UPDATE records SET body = replace(body, '{"in":"${session}"}', '{"in":"other"}')`);
  raw.close();
}

verifies(
  'cli.damage',
  'a missing anchor is reported until it is accepted, then with the name of the person',
  async () => {
    const project = await projectWithTurns('one', 'two');
    rmSync(project.path(`${DB}.anchor`));
    await project.run(['runs']);
    for (let n = 0; n < 2; n++) {
      const { code, stdout } = await project.run(['doctor']);
      expect(code).toBe(3);
      expect(stdout).toMatch(/^fail {2}store +the anchor file is missing/m);
      expect(stdout).toContain('rondo doctor --accept @anchor');
    }
    expect((await project.run(['doctor', '--accept', 'one'])).code).toBe(64);
    const accepted = await project.run(['doctor', '--accept', '@anchor', '--as', 'ada', '--reason', 'moved', '--json']);
    expect(accepted.code).toBe(0);
    expect(accepted.stderr).toContain('Accepted: the anchor file is missing');
    const { store } = JSON.parse(accepted.stdout) as DoctorReport;
    expect(store).toMatchObject({ damage: [], accepted: [{ kind: 'anchor', closed: { by: 'ada', reason: 'moved' } }] });
    const { code, stdout } = await project.run(['doctor']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ok {4}store +accepted by ada at .*\(moved\): the anchor file is missing/m);
  },
);

verifies('cli.damage', 'the check of definitions works although a session is damaged', async () => {
  const project = await projectWithTurns('one', 'two');
  damage(project, 'one');
  expect(await project.run(['check'])).toMatchObject({ code: 0 });
});

verifies(
  'cli.damage',
  'a full check names every affected session, with and without another owner of the store',
  async () => {
    const project = (await projectWithTurns('one', 'two', 'three')).withHoldTool();
    damage(project, 'one');
    damage(project, 'three');
    const held = await project.startHeld('held');
    const { code, stdout, stderr } = await project.run(['doctor', '--full', '--json']);
    const { store, ok } = JSON.parse(stdout) as DoctorReport;
    expect({ code, ok }).toEqual({ code: 3, ok: false });
    expect(store).toMatchObject({ checked: 'full', sessions: 5, affected: ['one', 'three'] });
    expect(stderr).toContain('Verifying');
    project.release('held');
    expect((await held.ended).code).toBe(0);
    const text = await project.run(['doctor', '--full']);
    expect(text.code).toBe(3);
    expect(text.stdout).toMatch(/^fail {2}store +session "one": damaged: /m);
    expect(text.stdout).toContain('2 sessions are affected; recorded until each is accepted by name: one, three');
    expect((await project.run(['status', 'one'])).code).toBe(70);
    expect((await project.run(['status', 'two'])).code).toBe(0);
  },
);

verifies('cli.damage', 'a damaged session is accepted or removed by name, and the others continue', async () => {
  const project = await projectWithTurns('one', 'two', 'three');
  damage(project, 'one');
  damage(project, 'three');
  const accepted = await project.run(['doctor', '--accept', 'one', '--as', 'ada']);
  expect(accepted.code).toBe(3);
  expect(accepted.stderr).toContain('The session stays refused: its remaining data cannot be read.');
  const removed = await project.json(['remove', 'three', '--yes', '--as', 'bob', '--reason', 'test data']);
  expect(removed).toMatchObject({ session: 'three', removed: true, by: 'bob', reason: 'test data' });
  const { code, stdout } = await project.run(['doctor', '--full', '--json']);
  expect(code).toBe(0);
  expect((JSON.parse(stdout) as DoctorReport).store).toMatchObject({
    damage: [],
    removed: [{ session: 'three', by: 'bob' }],
    accepted: [{ closed: { as: 'removed' } }, { closed: { as: 'abandoned', by: 'ada' } }],
  });
  expect((await project.run(['run', 'echo', '--session', 'two'])).code).toBe(0);
});

verifies(
  'cli.damage',
  'a session is removed only with a confirmation, by its exact name and without a running turn',
  async () => {
    const project = (await projectWithTurns('one')).withHoldTool();
    const unconfirmed = await project.run(['remove', 'one']);
    expect(unconfirmed.code).toBe(64);
    expect(unconfirmed.stderr).toContain('Use --yes');
    expect((await project.run(['remove', 'unknown', '--yes'])).code).toBe(1);
    const held = await project.startHeld('held');
    const busy = await project.run(['remove', 'held', '--yes', '--json']);
    expect(busy.code).toBe(70);
    expect(JSON.parse(busy.stdout)).toMatchObject({ error: { code: 'SESSION_BUSY', details: { turn: held.turn } } });
    project.release('held');
    expect((await held.ended).code).toBe(0);
    expect((await project.run(['remove', 'held', '--yes'])).code).toBe(0);
    expect((await project.run(['status', 'held'])).code).toBe(1);
    expect((await project.run(['status', 'one'])).code).toBe(0);
  },
);

verifies(
  'cli.damage',
  'on a terminal, progress is shown in place and a removal is confirmed by name',
  async (context) => {
    context.skip(!hasScript, 'needs script');
    const project = await projectWithTurns('one');
    const full = new Pty(project, ['doctor', '--full']);
    await full.waitFor('verified completely (2 sessions');
    expect(full.raw).toContain('\r\u001b[2KVerifying');
    const removing = new Pty(project, ['remove', 'one']);
    await removing.waitFor('Type its name to confirm:');
    removing.type('two');
    await removing.waitFor('Nothing was removed.');
    expect(await removing.ended).toBe(1);
    const again = new Pty(project, ['remove', 'one']);
    await again.waitFor('Type its name to confirm:');
    again.press(`one${keys.enter}`);
    await again.waitFor('Removed session one');
    expect(await again.ended).toBe(0);
  },
);
