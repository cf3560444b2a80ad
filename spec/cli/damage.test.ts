// Damage on the command line: it is reported until it is accepted, a full check names it, and a session can be removed.

import { rmSync } from 'node:fs';
import { expect } from 'vitest';
import { verifies } from '../verifies.js';
import { DB, type DoctorReport, damage, projectWithTurns } from './damaged-project.js';

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
