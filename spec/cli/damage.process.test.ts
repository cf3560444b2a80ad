// Damage on the command line while another process owns the store, and on a terminal.

import { expect } from 'vitest';
import { verifies } from '../verifies.js';
import { type DoctorReport, damage, projectWithTurns } from './damaged-project.js';
import { hasScript, keys, Pty } from './pty.js';

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
