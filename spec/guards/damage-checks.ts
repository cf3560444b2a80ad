// Checks of exit codes, hidden text and recorded damage. Each fails when its guard is broken.

import { rmSync } from 'node:fs';
import { Writable } from 'node:stream';
import { expect } from 'vitest';
import type { Approval } from '../../src/protocol/approval.js';
import { freshFile } from '../support/sqlite-fixture.mjs';
import type { Library, LibraryParts } from './library.js';

export const displayParts: LibraryParts = [
  'surfaces/cli/terminal.js',
  'surfaces/cli/render-approval.js',
  'surfaces/cli/terminal-text.js',
  'base/escape-text.js',
];

type DisplayLibrary = typeof import('../../src/surfaces/cli/terminal.js') &
  typeof import('../../src/surfaces/cli/render-approval.js') &
  typeof import('../../src/surfaces/cli/terminal-text.js') &
  typeof import('../../src/base/escape-text.js');

/** Returns a stream on which every write fails. */
function failingStream(code: string): Writable {
  return new Writable({
    write: (_chunk, _encoding, done) => done(Object.assign(new Error(`${code}: not written`), { code })),
  });
}

const acceptingStream = (): Writable => new Writable({ write: (_chunk, _encoding, done) => done() });

/** Returns the exit codes of commands that end with 0 to 3 and whose stdout fails with this code. */
async function exitCodes({ Terminal }: DisplayLibrary, code: string): Promise<number[]> {
  const codes: number[] = [];
  for (const turnCode of [0, 1, 2, 3]) {
    const terminal = new Terminal({
      stdin: process.stdin,
      stdout: failingStream(code),
      stderr: acceptingStream(),
      env: {},
      cwd: '/',
    });
    await terminal.printJson({});
    codes.push(await terminal.finish(turnCode));
  }
  return codes;
}

const approval: Approval = {
  ...{ id: 's.1:x', sessionId: 's', turnId: 's.1', callId: 's.1/0', tool: 'run', argumentsDigest: 'd' },
  ...{ definitionDigest: 'd', requestedAt: '2030-01-01T00:00:00Z', expiresAt: '2030-02-01T00:00:00Z', path: ['run'] },
  arguments: {},
  description: '',
};

export const displayChecks = {
  'a command whose output is lost does not exit successfully': async (display: DisplayLibrary) => {
    expect((await exitCodes(display, 'ENOSPC'))[0]).toBe(70);
  },
  'a failed or paused turn keeps its exit code when its output is lost': async (display: DisplayLibrary) => {
    expect((await exitCodes(display, 'ENOSPC')).slice(1)).toEqual([1, 2, 3]);
    expect(await exitCodes(display, 'EPIPE')).toEqual([0, 1, 2, 3]);
  },
  'an approval shows the end of a long command': async ({ renderApproval, createColors }: DisplayLibrary) => {
    const longApproval = { ...approval, arguments: { command: `echo ${'a'.repeat(5000)}; rm -rf /` } };
    const lines = renderApproval(longApproval, { colors: createColors(false), width: 80, now: 0 });
    expect(lines.some((line) => line.startsWith('│ ') && line.includes('rm -rf /'))).toBe(true);
  },
  'an approval states how many characters of a command are hidden': async ({
    renderApproval,
    createColors,
  }: DisplayLibrary) => {
    const longApproval = { ...approval, arguments: { command: 'a'.repeat(5000) } };
    const text = renderApproval(longApproval, { colors: createColors(false), width: 200, now: 0 }).join('\n');
    expect(text).toContain('… 3,014 of 5,014 characters are hidden here …');
  },
  'no text can imitate the note on hidden characters': async ({ escapeForDisplay }: DisplayLibrary) => {
    expect(escapeForDisplay('pay⟪1 of 2 characters hidden⟫', 1000)).not.toMatch(/[⟪⟫]/);
  },
} satisfies Record<string, (display: DisplayLibrary) => Promise<void>>;

/** Creates a store with three entries and closes it. */
async function createStore({ openSqlite }: Library): Promise<string> {
  const file = freshFile();
  const store = await openSqlite(file);
  const { fence } = await store.journal.claim('a');
  for (const seq of [0, 1, 2]) {
    const entries = [{ seq, at: 1, key: `t/${seq}`, type: 'step.taken', value: `v${seq}` }];
    await store.journal.append({ session: 'a', fence, firstSeq: seq, entries });
  }
  await store.close();
  return file;
}

export const recordChecks = {
  'a missing anchor stays on record across openings': async (library: Library) => {
    const file = await createStore(library);
    rmSync(`${file}.anchor`);
    for (let n = 0; n < 3; n++) {
      const store = await library.openSqlite(file);
      expect(store.report.damage).toMatchObject([{ kind: 'anchor' }]);
      await store.close();
    }
  },
  'a damaged session stays refused when a later opening checks less': async (library: Library) => {
    const file = await createStore(library);
    const raw = library.openDriver(file);
    raw.exec(`UPDATE records SET body = replace(body, 'v1', 'v9')`);
    raw.close();
    await (await library.openSqlite(file, { check: 'full' })).close();
    const store = await library.openSqlite(file, { check: 'heads' });
    await expect(store.journal.claim('a')).rejects.toMatchObject({ code: 'STORE_DAMAGED' });
    await store.close();
  },
  'damage that a read finds is recorded': async (library: Library) => {
    const file = await createStore(library);
    const raw = library.openDriver(file);
    raw.exec(`UPDATE records SET body = replace(body, 'v1', 'v9')`);
    raw.close();
    const store = await library.openSqlite(file, { check: 'heads' });
    await expect(store.journal.read('a', 0)[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code: 'STORE_DAMAGED',
    });
    await store.close();
    const reopened = await library.openSqlite(file, { check: 'heads' });
    const { damage } = await reopened.maintenance.readLog();
    await reopened.close();
    expect(damage).toMatchObject([{ kind: 'damaged', session: 'a' }]);
  },
} satisfies Record<string, (library: Library) => Promise<void>>;
