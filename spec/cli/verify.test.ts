// Verdicts on the command line: what they are about, when they are complete, and what an edited store leads to.

import { chmodSync, copyFileSync, cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { openDriver } from '../../src/adapters/sqlite/index.js';
import type { KeysDocument, ReceiptVerdict } from '../../src/protocol/receipt.js';
import { Project, tool } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

const DB = '.rondo/journal.db';
const WITNESS = '.rondo/keys/journal.db.checkpoint';

/** Creates a project with one turn in each of these sessions. */
async function projectWith(...sessions: readonly string[]): Promise<Project> {
  const project = new Project({ echo: tool('echo', 'echo') });
  for (const session of sessions) await project.run(['run', 'echo', '--session', session, '--input', '{"n":1}']);
  return project;
}

async function verdictOf(project: Project, ...args: readonly string[]): Promise<ReceiptVerdict & { code: number }> {
  const { code, stdout } = await project.run(['verify', ...args, '--json']);
  return { ...(JSON.parse(stdout) as ReceiptVerdict), code: code ?? -1 };
}

/** Deletes sessions from the database, bypassing the store. */
function deleteSessions(project: Project, ...names: readonly string[]): void {
  const raw = openDriver(project.path(DB));
  for (const name of names) {
    const sid = `(SELECT sid FROM sessions WHERE name = '${name}')`;
    raw.exec(`DELETE FROM records WHERE id >= ${sid} << 26 AND id < (${sid} + 1) << 26`);
    raw.exec(`DELETE FROM sessions WHERE name = '${name}'`);
  }
  raw.close();
}

/** Writes over all lengths that are kept beside the keys. */
function setLengths(project: Project, content: string): void {
  const directory = project.path('.rondo/keys/journal.db.lengths');
  for (const name of readdirSync(directory)) writeFileSync(join(directory, name), content);
}

verifies(
  'receipt.whole',
  'a store is complete once all sessions are closed, and says why it is not before',
  async () => {
    const project = await projectWith('a', 'b');
    expect(await verdictOf(project, '--all')).toMatchObject({
      ...{ code: 0, valid: true, complete: 'unknown', reasons: ['log_uncovered', 'session_open'] },
      subject: { sessions: 2, receipts: 2, log: 2 },
    });
    for (const session of ['a', 'b']) expect((await project.run(['close', session])).code).toBe(0);
    expect(await verdictOf(project, '--all')).toMatchObject({ code: 0, complete: true, reasons: [] });
    expect((await project.run(['verify', '--all'])).stdout).toContain(
      'Checked: 4 receipts of 2 sessions in the store; the log has 4\nvalid and complete',
    );
    expect(await verdictOf(project, 'a')).toMatchObject({
      complete: true,
      subject: { sessions: 1, receipts: 2, log: 4, session: 'a' },
    });
    await project.run(['remove', 'a', '--yes', '--as', 'eve']);
    const removed = await verdictOf(project, '--all');
    expect(removed).toMatchObject({ code: 0, valid: true, complete: 'unknown', reasons: ['session_removed'] });
    expect(removed.checks.at(-1)?.note).toBe('unknown: session "a" was removed by eve');
  },
);

verifies(
  'receipt.scope',
  'a verdict of a part of a store says which part, and as of which length of the log',
  async () => {
    const project = await projectWith('a', 'b');
    for (const session of ['a', 'b']) await project.run(['close', session]);
    await project.run(['export', '--session', 'a', '--out', 'a.json']);
    await project.run(['export', '--out', 'all.json']);
    await project.run(['run', 'echo', '--session', 'c', '--input', '{}']);
    expect(await verdictOf(project, 'a.json')).toMatchObject({ complete: true, scope: { session: 'a', asOf: 4 } });
    expect(await verdictOf(project, 'a')).toMatchObject({ complete: true, scope: { session: 'a', asOf: 5 } });
    expect((await verdictOf(project, 'all.json')).scope).toEqual({ asOf: 4 });
    expect((await verdictOf(project, '--all')).scope).toEqual({ asOf: 5 });
    const lastLine = async (file: string): Promise<string | undefined> =>
      (await project.run(['verify', file])).stdout.trim().split('\n').at(-1);
    expect(await lastLine('a.json')).toBe('valid and complete for session a, as of receipt 4 of the log');
    expect(await lastLine('all.json')).toBe('valid and complete for the whole store, as of receipt 4 of the log');
    await project.run(['remove', 'c', '--yes']);
    await project.run(['export', '--out', 'rest.json']);
    const { complete, scope, reasons } = await verdictOf(project, 'rest.json');
    expect({ complete, scope, reasons }, 'a session was removed').toEqual({
      ...{ complete: 'unknown', scope: { asOf: 5 }, reasons: ['session_removed'] },
    });
    await project.run(['export', '--session', 'a', '--out', 'a-again.json']);
    expect(await verdictOf(project, 'a-again.json')).toMatchObject({
      complete: true,
      scope: { session: 'a', asOf: 5 },
    });
  },
);

verifies('receipt.witness', 'a log that was made again is reported, and nothing is signed about it', async () => {
  const project = await projectWith('a', 'b');
  await project.run(['close', 'b']);
  expect(readFileSync(project.path(WITNESS), 'utf8').split('\n')[1]).toBe('3');
  deleteSessions(project, 'a', 'rondo:receipts');
  rmSync(project.path(`${DB}.anchor`));
  expect(await verdictOf(project, '--all')).toMatchObject({
    ...{ code: 3, valid: false },
    reasons: ['store_damaged', 'log_rewritten'],
  });
  expect((await project.run(['doctor', '--accept', '@anchor', '--as', 'ada'])).code).toBe(0);
  expect((await project.run(['run', 'echo', '--input', '{}'])).code).toBe(0);
  expect(await verdictOf(project, '--all')).toMatchObject({ code: 3, valid: false, reasons: ['log_rewritten'] });
  for (const args of [['export'], ['close', 'b'], ['keys', 'rotate']]) {
    const { code, stderr } = await project.run(args);
    expect(code, args.join(' ')).toBe(70);
    expect(stderr).toContain('Restore the store from a backup');
  }
  rmSync(project.path(WITNESS));
  rmSync(project.path('.rondo/keys/journal.db.lengths'), { recursive: true });
  expect((await project.run(['export', '--out', 'e.json'])).code).toBe(0);
});

verifies(
  'receipt.whole',
  'what was changed in a store or beside its keys is noticed, also where no receipt covers it',
  async () => {
    const sql = (text: string) => (project: Project) => {
      const raw = openDriver(project.path(DB));
      raw.exec(text);
      raw.close();
    };
    const removal = `INSERT INTO tombstones (session, entries, head, removed_at, removed_by, reason) VALUES ('x', 1, '', 1, 'eve', '')`;
    const changes: (readonly [string, (project: Project) => void])[] = [
      ['store_damaged', sql('UPDATE records SET at = at + 1')],
      ['store_damaged', sql('UPDATE records SET commit_no = commit_no + 1')],
      ['store_damaged', sql(removal)],
      ['store_damaged', sql('CREATE TRIGGER t AFTER INSERT ON records BEGIN SELECT 1; END')],
      ['definition_missing', sql('DELETE FROM blobs')],
      ['store_damaged', sql(`UPDATE blobs SET body = replace(body, 'echo', 'evil')`)],
      ['witness_missing', (project) => rmSync(project.path(WITNESS))],
      ['witness_missing', (project) => rmSync(project.path('.rondo/keys/journal.db.lengths'), { recursive: true })],
    ];
    const original = await projectWith('a');
    await original.run(['close', 'a']);
    expect(await verdictOf(original, '--all')).toMatchObject({ code: 0, complete: true, reasons: [] });
    // Shorter than the checkpoint says, or empty. What was kept before a process was killed may be shorter than the log.
    for (const content of ['0\n', '2\n', ''])
      changes.push(['witness_missing', (project) => setLengths(project, content)]);
    for (const [i, [reason, change]] of changes.entries()) {
      const project = new Project({});
      cpSync(original.path('.rondo'), project.path('.rondo'), { recursive: true });
      change(project);
      const { code, valid, reasons } = await verdictOf(project, '--all');
      expect({ code, valid }, `change ${i}`).toEqual({ code: 3, valid: false });
      expect(reasons, `change ${i}`).toContain(reason);
    }
  },
);

verifies('receipt.witness', 'a lost checkpoint is made again by an export', async () => {
  const project = await projectWith('a');
  await project.run(['export', '--out', 'e.json']);
  rmSync(project.path(WITNESS));
  expect(await verdictOf(project, '--all')).toMatchObject({ valid: false, reasons: ['witness_missing'] });
  expect((await project.run(['export', '--out', 'again.json'])).code).toBe(0);
  expect(await verdictOf(project, '--all')).toMatchObject({ valid: true });
  for (const [index, content] of ['', '1\n'].entries()) {
    setLengths(project, content);
    expect(await verdictOf(project, '--all')).toMatchObject({ valid: false, reasons: ['witness_missing'] });
    expect((await project.run(['export', '--out', `e-${index}.json`])).code).toBe(0);
    expect(await verdictOf(project, '--all')).toMatchObject({ valid: true });
  }
});

verifies('receipt.witness', 'a rotation keeps a checkpoint, and each store has its own', async () => {
  const project = await projectWith('a');
  const other = ['--store', 'sqlite:other.db'];
  expect((await project.run([...other, 'run', 'echo', '--session', 'x', '--input', '{}'])).code).toBe(0);
  expect((await project.run([...other, 'close', 'x'])).code).toBe(0);
  expect(existsSync(project.path(WITNESS))).toBe(false);
  expect((await project.run(['keys', 'rotate'])).code).toBe(0);
  expect(readFileSync(project.path(WITNESS), 'utf8').split('\n')[1]).toBe('1');
  expect(await verdictOf(project, 'a')).toMatchObject({ valid: true });
  const { stdout } = await project.run([...other, 'verify', '--all', '--json']);
  expect(JSON.parse(stdout)).toMatchObject({ valid: true, complete: true });
});

verifies('receipt.runx', 'a runx document counts under the keys of its store after a rotation', async () => {
  const project = await projectWith('a');
  const { code, stdout, stderr } = await project.run(['keys', 'rotate']);
  expect(code, stderr).toBe(0);
  expect(stderr).toContain('Waiting 2 seconds');
  expect(stdout, 'one receipt, and 64').toMatch(/receipt +replaced +65 /);
  expect(stdout).toMatch(/receipt +signs +1 /);
  expect((await project.run(['export', '--turn', 'a', '--as', 'runx', '--out', 'rx.json'])).code).toBe(0);
  writeFileSync(project.path('keys.json'), (await project.run(['keys', '--json'])).stdout);
  expect(await verdictOf(project, 'rx.json', '--keys', 'keys.json')).toMatchObject({ code: 0, valid: true });
});

verifies('receipt.subject', 'a file that is named like a turn is refused, and a verdict names its file', async () => {
  const project = await projectWith('a');
  await project.run(['export', '--out', 'e.json']);
  for (const name of ['last', 'a']) {
    copyFileSync(project.path('e.json'), project.path(name));
    const { code, stderr } = await project.run(['verify', name]);
    expect(code, name).toBe(64);
    expect(stderr).toContain(`./${name}`);
    expect(await verdictOf(project, `./${name}`)).toMatchObject({ valid: true, subject: { file: `./${name}` } });
    rmSync(project.path(name));
  }
  copyFileSync(project.path('e.json'), project.path('bundle'));
  expect(await verdictOf(project, 'bundle')).toMatchObject({ subject: { file: 'bundle', sessions: 1, receipts: 1 } });
});

verifies('receipt.subject', 'the newest turn is not another one because its session is damaged', async () => {
  const project = await projectWith('a');
  await project.run(['close', 'a']);
  expect(await verdictOf(project, 'last')).toMatchObject({ valid: true, complete: true, subject: { session: 'a' } });
  await project.run(['run', 'echo', '--session', 'b', '--input', '{"in":"b"}']);
  const raw = openDriver(project.path(DB));
  raw.exec(`UPDATE records SET body = replace(body, '{"in":"b"}', '{"in":"c"}')`);
  raw.close();
  const { code, valid, reasons } = await verdictOf(project, 'last');
  expect({ code, valid }).toEqual({ code: 3, valid: false });
  expect(reasons).toContain('journal_unreadable');
});

verifies(
  'receipt.rotation',
  'a key can be revoked for all receipts where the log is rewritten or cannot be signed',
  async () => {
    const project = await projectWith('a');
    expect((await project.run(['export', '--session', 'a'])).code).toBe(0);
    const { keys } = await project.json<KeysDocument>(['keys']);
    const [receiptKey = '', checkpointKey = ''] = ['receipt', 'checkpoint'].map(
      (role) => keys.find((key) => key.role === role)?.kid,
    );
    writeFileSync(project.path(`.rondo/keys/${checkpointKey}.key`), 'no key');
    const refused = await project.run(['keys', 'revoke', checkpointKey]);
    expect(refused).toMatchObject({ code: 70, stderr: expect.stringContaining('revoke its key (with --all') });
    expect((await project.run(['keys', 'revoke', checkpointKey, '--all'])).code).toBe(0);
    deleteSessions(project, 'rondo:receipts');
    expect((await project.run(['keys', 'revoke', receiptKey])).code).toBe(70);
    expect((await project.run(['keys', 'revoke', receiptKey, '--all'])).code).toBe(0);
    const after = await project.json<KeysDocument>(['keys']);
    expect(after.keys).toMatchObject([{ revoked: true }, { revoked: true }]);
  },
);

verifies(
  'receipt.key-origin',
  'keys that came with a data directory are reported until they are accepted',
  async () => {
    const project = await projectWith('a');
    const [env, notice] = [{ XDG_CONFIG_HOME: `${project.directory}-config` }, 'were not created there by you'];
    const clone = new Project({ echo: tool('echo', 'echo') });
    const run = async (...args: readonly string[]): Promise<string> => (await clone.run(args, { env })).stderr;
    const turn = ['run', 'echo', '--input', '{}'];
    expect(await run(...turn), 'keys of its own').not.toContain(notice);
    rmSync(clone.path('.rondo'), { recursive: true });
    cpSync(project.path('.rondo'), clone.path('.rondo'), { recursive: true });
    expect(await run(...turn)).toContain(notice);
    for (const args of [['verify', '--all'], ['keys'], ['keys', 'show', '--json']])
      expect(await run(...args), args.join(' ')).toContain(notice);
    const doctor = async (): Promise<string> => (await clone.run(['doctor', '--json'], { env })).stdout;
    expect(await doctor()).toContain(notice);
    expect(await run('keys', 'accept')).not.toContain(notice);
    for (const args of [turn, ['keys', 'show']]) expect(await run(...args), args.join(' ')).not.toContain(notice);
    expect(await doctor()).not.toContain(notice);
    const other = await projectWith('a');
    cpSync(other.path('.rondo/keys/keys.json'), clone.path('.rondo/keys/keys.json'));
    expect(await run('keys', 'show'), 'foreign keys under the mark of the own ones').toContain(notice);
  },
);

verifies('receipt.key-files', 'a list of keys that others can change is not used', async () => {
  const project = await projectWith('a');
  chmodSync(project.path('.rondo/keys/keys.json'), 0o666);
  const { code, stderr } = await project.run(['verify', '--all']);
  expect(code).toBe(70);
  expect(stderr).toContain('chmod 644');
});
