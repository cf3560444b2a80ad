// Filters, fallbacks and approvals: what was admitted, shown and approved is what runs.

import { expect } from 'vitest';
import { memoryStore } from '../../src/adapters/memory/index.js';
import type { Host } from '../../src/host/host.js';
import { digestOfText } from '../../src/journal/record.js';
import { canonicalJson } from '../../src/json/canonical.js';
import { defineLoop } from '../../src/loops/define.js';
import type { Json } from '../../src/protocol/json.js';
import type { PolicySpec } from '../../src/protocol/loop.js';
import { onlyPending, RecordedActions } from '../support/approval-fixture.js';
import { hostOf, prompt, textProvider, tool } from '../support/host-fixture.js';
import { testKeys } from '../support/receipt-keys.js';
import { agentDef, replyProvider } from '../support/scripted-agents.js';
import { verifies } from '../verifies.js';

const SHOWN_TO_MODEL = { to: 'bob', amount: '10 EUR' };
const RUN = { to: 'eve', amount: '9000 EUR' };
const VALID = { valid: true, reasons: expect.not.arrayContaining(['arguments_mismatch']) };

/** A policy whose filters replace the recipient and the amount. */
const REPLACING: PolicySpec = {
  approval: 'ask',
  filters: {
    before: [
      { pattern: 'bob', action: 'redact', replacement: 'eve' },
      { pattern: '10 EUR', action: 'redact', replacement: '9000 EUR' },
    ],
  },
};

function payingHost(policy: PolicySpec = REPLACING): { readonly host: Host; readonly actions: RecordedActions } {
  const actions = new RecordedActions();
  const pay = tool('pay', 'builtin:act', { policy, tool: { implementation: 'builtin:act', safety: 'once' } });
  const host = hostOf([pay], { store: memoryStore(), tools: { act: actions.act }, receiptKeys: testKeys() });
  return { host, actions };
}

const startPay = (host: Host, input: Json = SHOWN_TO_MODEL, more: object = {}) =>
  host.run({ loop: 'pay', input, sessionId: 's', ...more });

verifies('approval.bound', 'an approval shows, digests and binds the arguments after the input filters', async () => {
  const { host, actions } = payingHost();
  const { turnId } = await startPay(host);
  const approval = await onlyPending(host);
  expect(approval.arguments, 'other arguments were shown than run').toEqual(RUN);
  expect(approval.argumentsDigest).toBe(digestOfText(canonicalJson(RUN)));
  await host.answer({ id: approval.id, approved: true, by: 'ada' });
  expect((await host.resume(turnId)).status).toBe('ok');
  expect(actions.performed).toEqual([RUN]);
  expect(await host.receipts?.verify(undefined), 'the receipt speaks of other arguments').toMatchObject(VALID);
});

verifies('approval.bound', 'a large filtered input is shown and receipted as it runs', async () => {
  const { host, actions } = payingHost();
  const note = 'x'.repeat(6000);
  const { turnId } = await startPay(host, { ...SHOWN_TO_MODEL, note });
  const { id, arguments: args } = await onlyPending(host);
  expect(args).toEqual({ ...RUN, note });
  await host.answer({ id, approved: true, by: 'ada' });
  expect((await host.resume(turnId)).status).toBe('ok');
  expect(actions.performed).toEqual([{ ...RUN, note }]);
  expect(await host.receipts?.verify(undefined)).toMatchObject(VALID);
});

verifies('approval.standing', 'a standing grant is compared with the arguments after the input filters', async () => {
  const { host, actions } = payingHost();
  const first = await startPay(host, { to: 'carol', amount: '1 EUR' });
  const { id } = await onlyPending(host);
  const standing = { properties: { to: { enum: ['carol', 'bob'] } }, required: ['to'] };
  await host.answer({ id, approved: true, by: 'ada', standing });
  expect((await host.resume(first.turnId)).status).toBe('ok');
  expect((await startPay(host)).status, 'a grant for bob covered a call for eve').toBe('paused');
  expect(actions.performed).toEqual([{ to: 'carol', amount: '1 EUR' }]);
});

verifies('approval.standing', 'a standing grant is given for the arguments after the input filters', async () => {
  const { host, actions } = payingHost();
  const { turnId } = await startPay(host);
  const { id } = await onlyPending(host);
  const forBob = { properties: { to: { const: 'bob' } }, required: ['to'] };
  await expect(host.answer({ id, approved: true, by: 'ada', standing: forBob })).rejects.toMatchObject({
    code: 'ANSWER_REFUSED',
  });
  const forEve = { properties: { to: { const: 'eve' } }, required: ['to'] };
  await host.answer({ id, approved: true, by: 'ada', standing: forEve });
  expect((await host.resume(turnId)).status).toBe('ok');
  expect((await startPay(host)).status).toBe('ok');
  expect(actions.performed).toEqual([RUN, RUN]);
});

verifies('grant.tools', 'the schema of a grant is applied to the arguments after the input filters', async () => {
  const { host, actions } = payingHost({ filters: REPLACING.filters ?? {} });
  const grant = {
    allowedTools: ['*'],
    limits: {},
    arguments: { pay: { properties: { to: { const: 'bob' } } } },
  };
  expect(await startPay(host, SHOWN_TO_MODEL, { grant })).toMatchObject({ error: { code: 'TOOL_NOT_ADMITTED' } });
  expect(actions.performed).toEqual([]);
});

verifies('approval.bound', 'the envelope of a filtered call shows the arguments that run', async () => {
  const actions = new RecordedActions();
  const pay = tool('pay', 'builtin:act', { policy: REPLACING });
  const replies = [{ calls: [['pay', SHOWN_TO_MODEL]] }, { text: 'done' }] as const;
  const host = hostOf([pay, agentDef('boss', { tools: ['pay'] })], {
    tools: { act: actions.act },
    providers: [replyProvider(replies as never)],
  });
  await host.run({ loop: 'boss', input: { prompt: 'Pay.' }, sessionId: 's' });
  const call = (await host.archive.events('s')).findLast(({ type }) => type === 'tool-call');
  expect(call?.content).toMatchObject({ approvalStatus: 'pending_approval', args: RUN });
});

verifies('policy.replay', 'a turn continues with the input that was filtered when it began', async () => {
  const store = memoryStore();
  const actions = new RecordedActions();
  const open = (replacement: string, seed: number): Host => {
    const filters = { before: [{ pattern: 'bob', action: 'redact', replacement }] } as const;
    const pay = defineLoop({
      ...{ id: 'pay', input: true as never, output: true as never, policy: { approval: 'ask', filters } },
      tool: actions.act as never,
    });
    return hostOf([pay], { store, seed });
  };
  const { turnId } = await startPay(open('eve', 1));
  const later = open('mallory', 2);
  const [first] = await later.archive.approvals();
  await later.answer({ id: first?.id ?? '', approved: true, by: 'ada' });
  expect((await later.resume(turnId)).status, 'the definition has changed').toBe('paused');
  const again = await onlyPending(later);
  expect(again.arguments).toMatchObject({ to: 'eve' });
  await later.answer({ id: again.id, approved: true, by: 'ada' });
  expect((await later.resume(turnId)).status).toBe('ok');
  expect(actions.performed).toEqual([{ to: 'eve', amount: '10 EUR' }]);
});

const FALLBACK = [{ id: 'spare', model: 's', options: { region: 'far' } }] as const;

/** A prompt that needs approval, whose first model fails. */
function asking(more: Partial<PolicySpec> = {}) {
  const broken = {
    id: 'broken',
    defaultModel: 'b',
    open: async () => {
      throw new Error('down');
    },
  };
  const spare = textProvider(['paid'], 'spare');
  const ask = prompt('ask', 'Secret.', {
    backend: { id: 'broken' },
    policy: { approval: 'ask', fallback: FALLBACK, ...more },
  });
  const host = hostOf([ask], { providers: [broken, spare], receiptKeys: testKeys() });
  return { host, spare };
}

verifies('approval.bound', 'the approval of a prompt names the fallback models that it permits', async () => {
  const { host, spare } = asking();
  const { turnId } = await host.run({ loop: 'ask', input: {}, sessionId: 's' });
  const approval = await onlyPending(host);
  expect(approval.fallback).toEqual(FALLBACK);
  expect(approval.description).toContain('spare');
  await host.answer({ id: approval.id, approved: true, by: 'ada' });
  expect((await host.resume(turnId)).status).toBe('ok');
  expect(spare.requests).toHaveLength(1);
  expect(await host.receipts?.verify(undefined), 'the receipt of a permitted fallback').toMatchObject(VALID);
});

verifies('approval.again', 'a prompt whose fallback models have changed needs another approval', async () => {
  const store = memoryStore();
  const spare = textProvider(['paid'], 'spare');
  const open = (model: string, seed: number): Host => {
    const policy = { approval: 'ask', fallback: [{ id: 'spare', model }] } as const;
    const ask = defineLoop({
      ...{ id: 'ask', version: '1.0.0', input: true as never, output: true as never, policy },
      ...{ prompt: { template: 'Secret.' }, model: { id: 'mock' } },
    });
    return hostOf([ask], { store, providers: [spare], seed });
  };
  const { turnId } = await open('s', 1).run({ loop: 'ask', input: {}, sessionId: 's' });
  const later = open('another', 2);
  const { id } = await onlyPending(later);
  await later.answer({ id, approved: true, by: 'ada' });
  expect((await later.resume(turnId)).status).toBe('paused');
  expect((await onlyPending(later)).fallback).toEqual([{ id: 'spare', model: 'another' }]);
});
