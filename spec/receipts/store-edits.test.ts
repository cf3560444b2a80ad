// What someone who can write to a store, and who has no key, cannot reach with the command line.

import { expect } from 'vitest';
import { openSqlite } from '../../src/adapters/sqlite/index.js';
import type { Entry } from '../../src/protocol/entry.js';
import type { SealedReceipt } from '../../src/views/receipt/sealed-receipts.js';
import { Project, tool } from '../support/cli-project.js';
import { forgeEntries, forgeRemoval } from '../support/forge-store.js';
import { verifies } from '../verifies.js';

/** Adds a copy of the last receipt of a session, with another statement, under the old signature. */
async function forgeReceipt(project: Project, session: string, change: (statement: string) => string): Promise<void> {
  const store = await openSqlite(project.path('.rondo/journal.db'));
  const { journal } = store;
  const { fence, nextSeq: seq } = await journal.claim(session);
  const entries: Entry[] = [];
  for await (const read of journal.read(session, 0)) entries.push(...read);
  const sealed = entries.findLast(({ type }) => type === 'rondo.receipt.sealed') as Entry;
  const receipt = sealed.value as unknown as SealedReceipt;
  const payload = Buffer.from(change(Buffer.from(receipt.envelope.payload, 'base64').toString())).toString('base64');
  const value = { ...receipt, sequence: receipt.sequence + 1, envelope: { ...receipt.envelope, payload } };
  const forged = { ...sealed, seq, key: `#receipt/${value.sequence}`, value } as unknown as Entry;
  await journal.append({ session, fence, firstSeq: seq, entries: [forged] });
  await store.close();
}

verifies('receipt.runx', 'a stored receipt that was changed is not signed again by an export', async () => {
  const project = new Project({ echo: tool('echo', 'echo') });
  await project.run(['run', 'echo', '--session', 's', '--input', '{"in": 1}']);
  const intact = await project.run(['export', '--turn', 's', '--as', 'runx']);
  expect(intact.code, intact.stderr).toBe(0);
  await forgeReceipt(project, 's', (statement) => statement.replace('"id":"echo"', '"id":"evil"'));
  const { code, stdout, stderr } = await project.run(['export', '--turn', 's', '--as', 'runx']);
  expect(stdout).toBe('');
  expect(stderr).toContain('RECEIPT_INVALID');
  expect(code).toBe(1);
});

verifies('receipt.store', 'the streams of the runtime cannot be removed or used as sessions', async () => {
  const project = new Project({ echo: tool('echo', 'echo') });
  project.write('grant.json', JSON.stringify({ id: 'g', allowedTools: ['echo'], limits: { effects: 1 } }));
  const run = () => project.run(['run', 'echo', '--grant', 'grant.json', '--input', '{}', '--json']);
  expect(JSON.parse((await run()).stdout)).toMatchObject({ status: 'ok' });
  for (const session of ['rondo:grant:g', 'rondo:receipts']) {
    const { code, stderr } = await project.run(['remove', session, '--yes']);
    expect([code, stderr]).toEqual([64, expect.stringContaining('cannot be removed')]);
  }
  expect(JSON.parse((await run()).stdout)).toMatchObject({ status: 'stopped' });
  const reserved = await project.run(['run', 'echo', '--session', 'rondo:x', '--input', '{}']);
  expect([reserved.code, reserved.stderr]).toEqual([64, expect.stringContaining('reserved')]);
});

verifies('receipt.store', 'nothing is written to a session after its terminal receipt', async () => {
  const project = new Project({ fail: tool('fail', 'fail') });
  await project.run(['run', 'fail', '--session', 's', '--input', '{}']);
  expect((await project.run(['close', 's'])).code).toBe(0);
  const before = (await project.run(['trace', 's', '--json'])).stdout;
  const attempts = [
    ['retry', 's'],
    ['signal', 's', 'ping'],
    ['run', 'fail', '--session', 's', '--input', '{}'],
  ];
  for (const attempt of attempts) {
    const { code, stderr } = await project.run(attempt);
    expect(code, attempt[0]).not.toBe(0);
    expect(stderr, attempt[0]).toContain('SESSION_SEALED');
  }
  expect((await project.run(['trace', 's', '--json'])).stdout).toBe(before);
  const second = await project.run(['close', 's']);
  expect(second.code).toBe(0);
});

verifies('store.key', 'what an unsealed turn did, and its grant, cannot be changed in the store', async () => {
  const steps = ['echo', 'charge'].map((loopId) => ({ loopId, inputMapping: { in: '$.input.in' } }));
  const two = { ...tool('two', 'echo'), kind: 'composite', tool: undefined, composite: { steps } };
  const project = new Project({ echo: tool('echo', 'echo'), charge: tool('charge', 'echo'), two });
  const grant = { id: 'g', allowedTools: ['*'], review: { charge: 'ask' }, limits: { effects: 2 } };
  project.write('grant.json', JSON.stringify(grant));
  const paused = await project.run(['run', 'two', '--session', 's', '--grant', 'grant.json', '--input', '{"in": 1}']);
  expect(paused.code, paused.stderr).toBe(2);
  const withoutReview = (entry: Entry): Entry =>
    JSON.parse(JSON.stringify(entry).replaceAll('"review":{"charge":"ask"}', '"review":{}')) as Entry;
  for (const session of ['s', 'rondo:grant:g'])
    forgeEntries(project.path('.rondo/journal.db'), session, (entries) => entries.map(withoutReview));
  const { code, stderr } = await project.run(['resume', 's']);
  expect([code, stderr]).toEqual([70, expect.stringContaining('STORE_DAMAGED')]);
  const verdict = await project.run(['verify', '--all', '--json']);
  expect([verdict.code, JSON.parse(verdict.stdout)]).toMatchObject([3, { valid: false }]);
});

verifies('receipt.store', 'a log that was changed in the store is a verdict, not a failure', async () => {
  const project = new Project({ echo: tool('echo', 'echo') });
  await project.run(['run', 'echo', '--session', 's', '--input', '{"in": 1}']);
  forgeEntries(project.path('.rondo/journal.db'), 'rondo:receipts', (entries) => entries.slice(0, 1));
  const { code, stdout } = await project.run(['verify', '--all', '--json']);
  expect(code).toBe(3);
  expect(JSON.parse(stdout)).toMatchObject({ valid: false, reasons: expect.arrayContaining(['store_damaged']) });
});

verifies('grant.ledger-kept', 'a grant whose ledger was removed from the store permits no further turn', async () => {
  const project = new Project({ echo: tool('echo', 'echo') });
  project.write('grant.json', JSON.stringify({ id: 'g', allowedTools: ['echo'], limits: { effects: 2 } }));
  const run = () => project.run(['run', 'echo', '--grant', 'grant.json', '--input', '{}']);
  for (let n = 0; n < 2; n++) expect((await run()).code).toBe(0);
  expect((await run()).code, 'the budget is used up').toBe(1);
  forgeRemoval(project.path('.rondo/journal.db'), 'rondo:grant:g');
  const { code, stderr } = await run();
  expect([code, stderr]).toEqual([70, expect.stringContaining('what was spent is not known any more')]);
});
