// Damage from the command line: it is shown until somebody accepts it, a full check names it, and a session can be removed.

import { rmSync } from 'node:fs';
import { expect } from 'vitest';
import { openDriver } from '../../src/adapters/sqlite/index.js';
import { Project, tool } from '../support/cli-project.js';
import { verifies } from '../verifies.js';
import { hasScript, keys, Pty } from './pty.js';

interface Doctor {
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

function project(): Project {
  return new Project({ echo: tool('echo', 'echo'), fail: tool('fail', 'fail') });
}

/** A project with turns in these sessions. */
async function filled(...sessions: readonly string[]): Promise<Project> {
  const made = project();
  for (const session of sessions)
    await made.run(['run', 'echo', '--session', session, '--input', `{"in": "${session}"}`]);
  return made;
}

/** Changes what the records of a session hold, behind the back of the store. */
function harm(made: Project, session: string): void {
  const raw = openDriver(made.path(DB));
  raw.exec(`UPDATE records SET body = replace(body, '{"in":"${session}"}', '{"in":"other"}')`);
  raw.close();
}

verifies(
  'cli.damage',
  'a missing anchor is reported until it is accepted by name, and then who accepted it',
  async () => {
    const made = await filled('one', 'two');
    rmSync(made.path(`${DB}.anchor`));
    await made.run(['runs']);
    for (let n = 0; n < 2; n++) {
      const { code, stdout } = await made.run(['doctor']);
      expect(code).toBe(3);
      expect(stdout).toMatch(/^fail {2}store +the anchor file is missing/m);
      expect(stdout).toContain('rondo doctor --accept @anchor');
    }
    expect((await made.run(['doctor', '--accept', 'one'])).code).toBe(64);
    const accepted = await made.run(['doctor', '--accept', '@anchor', '--as', 'ada', '--reason', 'moved', '--json']);
    expect(accepted.code).toBe(0);
    expect(accepted.stderr).toContain('Accepted: the anchor file is missing');
    const { store } = JSON.parse(accepted.stdout) as Doctor;
    expect(store).toMatchObject({ damage: [], accepted: [{ kind: 'anchor', closed: { by: 'ada', reason: 'moved' } }] });
    const { code, stdout } = await made.run(['doctor']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ok {4}store +accepted by ada at .*\(moved\): the anchor file is missing/m);
  },
);

verifies(
  'cli.damage',
  'a full check names every affected session, here and through the owner of the store',
  async () => {
    const made = (await filled('one', 'two', 'three')).holding();
    harm(made, 'one');
    harm(made, 'three');
    const held = await made.held('held');
    const { code, stdout, stderr } = await made.run(['doctor', '--full', '--json']);
    const { store, ok } = JSON.parse(stdout) as Doctor;
    expect({ code, ok }).toEqual({ code: 3, ok: false });
    expect(store).toMatchObject({ checked: 'full', sessions: 4, affected: ['one', 'three'] });
    expect(stderr).toContain('Verifying');
    made.release('held');
    expect((await held.ended).code).toBe(0);
    const people = await made.run(['doctor', '--full']);
    expect(people.code).toBe(3);
    expect(people.stdout).toMatch(/^fail {2}store +session "one": damaged: /m);
    expect(people.stdout).toContain('2 sessions are affected; recorded until each is accepted by name: one, three');
    expect((await made.run(['status', 'one'])).code).toBe(70);
    expect((await made.run(['status', 'two'])).code).toBe(0);
  },
);

verifies('cli.damage', 'a damaged session is accepted or removed by name, and the others go on', async () => {
  const made = await filled('one', 'two', 'three');
  harm(made, 'one');
  harm(made, 'three');
  const accepted = await made.run(['doctor', '--accept', 'one', '--as', 'ada']);
  expect(accepted.code).toBe(3);
  expect(accepted.stderr).toContain('The session stays refused: its remaining data cannot be read.');
  const removed = await made.json(['remove', 'three', '--yes', '--as', 'bob', '--reason', 'test data']);
  expect(removed).toMatchObject({ session: 'three', removed: true, by: 'bob', reason: 'test data' });
  const { code, stdout } = await made.run(['doctor', '--full', '--json']);
  expect(code).toBe(0);
  expect((JSON.parse(stdout) as Doctor).store).toMatchObject({
    damage: [],
    removed: [{ session: 'three', by: 'bob' }],
    accepted: [{ closed: { as: 'removed' } }, { closed: { as: 'abandoned', by: 'ada' } }],
  });
  expect((await made.run(['run', 'echo', '--session', 'two'])).code).toBe(0);
});

verifies('cli.damage', 'a session is not removed without a word, by mistake, or under a turn that runs', async () => {
  const made = (await filled('one')).holding();
  const unsure = await made.run(['remove', 'one']);
  expect(unsure.code).toBe(64);
  expect(unsure.stderr).toContain('Use --yes');
  expect((await made.run(['remove', 'nobody', '--yes'])).code).toBe(1);
  const held = await made.held('held');
  const busy = await made.run(['remove', 'held', '--yes', '--json']);
  expect(busy.code).toBe(70);
  expect(JSON.parse(busy.stdout)).toMatchObject({ error: { code: 'SESSION_BUSY', details: { turn: held.turn } } });
  made.release('held');
  expect((await held.ended).code).toBe(0);
  expect((await made.run(['remove', 'held', '--yes'])).code).toBe(0);
  expect((await made.run(['status', 'held'])).code).toBe(1);
  expect((await made.run(['status', 'one'])).code).toBe(0);
});

verifies('cli.damage', 'on a terminal, progress is shown in place and a removal asks for the name', async (context) => {
  context.skip(!hasScript, 'needs script');
  const made = await filled('one');
  const full = new Pty(made, ['doctor', '--full']);
  await full.sees('verified completely (one session');
  expect(full.raw).toContain('\r\u001b[2KVerifying');
  const removing = new Pty(made, ['remove', 'one']);
  await removing.sees('Type its name to confirm:');
  removing.type('two');
  await removing.sees('Nothing was removed.');
  expect(await removing.ended).toBe(1);
  const again = new Pty(made, ['remove', 'one']);
  await again.sees('Type its name to confirm:');
  again.press(`one${keys.enter}`);
  await again.sees('Removed session one');
  expect(await again.ended).toBe(0);
});
