// Checks of grants: each holds on the intact library and fails when its guard is broken.

import { deepStrictEqual, ok, rejects, strictEqual, throws } from 'node:assert';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ReceiptKeys } from '../../src/host/host-options.js';
import type { Store } from '../../src/journal/store.js';
import type { ModelProvider } from '../../src/loops/model.js';
import type { ToolFunction } from '../../src/loops/tool-implementation.js';
import type { PriceOf } from '../../src/policy/prices.js';
import type { Confinement, Effect } from '../../src/protocol/body.js';
import type { Grant, GrantLimits } from '../../src/protocol/grant.js';
import type { TurnResult } from '../../src/protocol/trace.js';
import { composite, prompt, tool } from '../support/host-fixture.js';
import { testKeys } from '../support/receipt-keys.js';
import { agentDef, replyProvider } from '../support/scripted-agents.js';
import { use } from '../support/toolbox-fixture.mjs';
import { errorOf } from '../support/turn-results.js';
import { type HostLibrary, hostParts, type LibraryParts } from './library.js';

export const grantParts: LibraryParts = [
  ...hostParts,
  'adapters/toolbox/index.js',
  'adapters/tools/index.js',
  'host/budget/governed-turn.js',
  'host/budget/ledger.js',
  'layers/admit.js',
  'policy/derive-grant.js',
  'policy/grant.js',
  'policy/grant-admission.js',
  'policy/grant-names.js',
  'policy/grant-pattern.js',
];

type GrantLibrary = HostLibrary &
  typeof import('../../src/adapters/toolbox/index.js') &
  typeof import('../../src/adapters/tools/index.js') &
  typeof import('../../src/host/budget/governed-turn.js') &
  typeof import('../../src/host/budget/ledger.js') &
  typeof import('../../src/layers/admit.js') &
  typeof import('../../src/policy/derive-grant.js') &
  typeof import('../../src/policy/grant.js') &
  typeof import('../../src/policy/grant-admission.js') &
  typeof import('../../src/policy/grant-pattern.js');

type GrantCheck = (library: GrantLibrary) => Promise<void>;

const grantOf = (limits: GrantLimits = {}, more: Partial<Grant> = {}): Grant => ({
  allowedTools: ['*'],
  limits,
  ...more,
});

interface HostParts {
  readonly store?: Store;
  readonly definitions?: readonly unknown[];
  readonly providers?: readonly ModelProvider[];
  readonly priceOf?: PriceOf;
  readonly receiptKeys?: ReceiptKeys;
  readonly act?: ToolFunction;
  readonly clock?: InstanceType<GrantLibrary['ManualClock']>;
}

/** A host with a counted tool `act`. */
function hostOf(library: GrantLibrary, parts: HostParts = {}) {
  const { Host, Registry, memoryStore, ManualClock, seededIds, builtinTools } = library;
  const { store = memoryStore(), definitions = [], providers = [], act, priceOf, receiptKeys } = parts;
  const performed: unknown[] = [];
  const counted: ToolFunction = (input, context) => {
    performed.push(input);
    return act?.(input, context) ?? 'done';
  };
  const builtin = builtinTools({ act: counted });
  const implementations = new Map([[builtin.scheme, builtin]]);
  const registry = new Registry(implementations);
  for (const definition of [tool('act', 'builtin:act'), ...definitions]) registry.add(definition);
  const host = new Host({
    ...{ store, registry, implementations, ids: seededIds(performed.length + 1) },
    clock: parts.clock ?? new ManualClock(1_000_000),
    providers: new Map(providers.map((provider) => [provider.id, provider])),
    ...(priceOf && { priceOf }),
    ...(receiptKeys && { receiptKeys }),
  });
  return { host, performed, store };
}

/** Runs `act` under a grant and returns the result. */
async function runAct(library: GrantLibrary, grant: Grant, parts: HostParts = {}) {
  const fixture = hostOf(library, parts);
  const result = await fixture.host.run({ loop: 'act', input: { n: 1 }, grant });
  return { ...fixture, result };
}

const codeOf = (result: TurnResult): string | undefined => errorOf(result)?.code;
const act = (more: Partial<Effect> = {}): Effect => ({
  ...{ kind: 'tool', name: 'act', input: { n: 1 }, safety: 'once', perform: () => null },
  ...more,
});

/** Asserts that a grant does not admit an effect. */
const refuses =
  (more: Partial<Grant>, effect: Partial<Effect> = {}): GrantCheck =>
  async ({ parseGrant, assertAdmitted }) => {
    throws(() => assertAdmitted(parseGrant(grantOf({}, more), { isOperators: true }), act(effect)));
  };

/** Asserts that a grant is too wide to be derived from another. */
const widens =
  (outer: Partial<Grant>, inner: Partial<Grant>): GrantCheck =>
  async ({ parseGrant, deriveGrant }) => {
    const parse = (more: Partial<Grant>) =>
      parseGrant({ allowedTools: [], limits: {}, ...more }, { isOperators: true });
    throws(() => deriveGrant(parse(outer), parse(inner)), { code: 'GRANT_WIDENED' });
  };

/** Asks a model once and returns the result and the requests. */
async function ask(library: GrantLibrary, limits: GrantLimits, reply: object) {
  const provider = replyProvider([reply]);
  const definitions = [prompt('ask', 'Say it.', { backend: { id: provider.id } })];
  const { host } = hostOf(library, { definitions, providers: [provider] });
  const result = await host.run({ loop: 'ask', input: {}, grant: grantOf(limits) });
  return { host, result, requests: provider.requests };
}

/** Runs `act` on two hosts that share a store and a grant, several times. */
async function runTogether(library: GrantLibrary, limits: GrantLimits) {
  let performed = 0;
  let completed = 0;
  for (let round = 0; round < 5; round++) {
    const store = library.memoryStore();
    const hosts = [hostOf(library, { store }), hostOf(library, { store })];
    const run = (loop: string) =>
      Promise.all(
        hosts.map(({ host }, index) =>
          host.run({ loop, input: {}, sessionId: `${loop}${index}`, grant: grantOf(limits, { id: 'shared' }) }),
        ),
      );
    for (const { status } of await run('act')) completed += status === 'ok' ? 1 : 0;
    performed += hosts.reduce((sum, fixture) => sum + fixture.performed.length, 0);
  }
  return { performed, completed };
}

/** Runs an agent that calls `act`, with a grant that demands a review. */
async function paused(library: GrantLibrary, more: Partial<Grant> = {}) {
  const fixture = hostOf(library, {
    definitions: [agentDef('agent', { tools: ['act'] })],
    providers: [replyProvider([{ calls: [['act', { n: 1 }]] }, { text: 'finished' }])],
  });
  const grant = grantOf({}, { review: { act: 'ask' }, ...more });
  const result = await fixture.host.run({ loop: 'agent', input: { prompt: 'go' }, grant });
  strictEqual(result.status, 'paused');
  return { ...fixture, result };
}

/** An invalid host name, since a label has at most 63 characters: a broken twin sends no query to a resolver. */
const INVALID_HOST = `${'x'.repeat(64)}.example`;
const nowhere: Confinement = { roots: undefined, destinations: [] };

/** Uses a tool of the toolbox in a directory with the folders `in` and `out`. */
async function useToolbox(
  { toolbox }: GrantLibrary,
  name: 'view_file' | 'fetch_url' | 'run_command',
  input: object,
  confinement: (root: string) => Confinement,
): Promise<unknown> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'rondo-granted-')));
  try {
    for (const folder of ['in', 'out']) {
      mkdirSync(join(root, folder));
      writeFileSync(join(root, folder, 'file'), 'text');
    }
    const used = toolbox({ roots: [root], commands: { sandbox: 'off' } })[name];
    return await use(used, input, { confinement: confinement(root) });
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

const notGranted = { code: 'TOOL_NOT_ADMITTED' };

export const grantChecks = {
  'an unknown member of a grant is refused': async ({ parseGrant }) => {
    throws(() => parseGrant({ allowedTools: [], limits: {}, limit: {} }, { isOperators: true }), /unknown/);
  },
  'a rule for a tool that is not permitted is refused': async ({ parseGrant }) => {
    const document = { allowedTools: ['act'], limits: { effects: { atc: 1 } } };
    throws(() => parseGrant(document, { isOperators: true }), { code: 'GRANT_INVALID' });
  },
  'a rule for a tool that does not exist opens no turn': async (library) => {
    const { result, performed } = await runAct(library, grantOf({ effects: { atc: 1 } }));
    strictEqual(codeOf(result), 'GRANT_INVALID');
    deepStrictEqual(performed, []);
  },
  'only the operator may permit all tools': async ({ parseGrant }) => {
    throws(() => parseGrant(grantOf(), { isOperators: false }), /only a grant of the operator/);
  },
  'a wildcard stands for one segment': async ({ matchesPattern }) => {
    strictEqual(matchesPattern('a.*', 'a.b.c'), false);
  },
  'a tool that is not listed is not admitted': refuses({ allowedTools: ['other'] }),
  'a blocked tool is not admitted': refuses({ review: { act: 'blocked' } }),
  'a tool whose scope is not granted is not admitted': refuses({ scopes: [] }, { scopes: ['repo:write'] }),
  'a tool with other arguments is not admitted': refuses({ arguments: { act: { properties: { n: { maximum: 0 } } } } }),
  'a tool that nothing confines is not admitted': refuses({ roots: ['/data'] }, { boundary: 'mcp' }),
  'a derived list contains nothing else': widens({ allowedTools: ['a'] }, { allowedTools: ['b'] }),
  'a derived limit is not higher': widens({ limits: { turns: 1 } }, { limits: { turns: 2 } }),
  'a derived grant does not end later': widens(
    { expiresAt: '2030-01-01T00:00:00Z' },
    { expiresAt: '2031-01-01T00:00:00Z' },
  ),
  'an answer from a cache is admitted': async ({ admitLayer }) => {
    const layer = admitLayer(() => {
      throw new Error('not permitted');
    });
    await rejects(
      layer(act(), undefined as never, async () => 'cached'),
      /not permitted/,
    );
  },
  'an effect starts only if its reservation is durable': async (library) => {
    strictEqual((await runTogether(library, { effects: 1 })).performed, 5);
  },
  'a turn opens only if it is counted durably': async (library) => {
    strictEqual((await runTogether(library, { turns: 1 })).completed, 5);
  },
  'an expired grant opens no turn': async (library) => {
    const { result } = await runAct(library, grantOf({}, { expiresAt: '1970-01-01T00:00:01Z' }));
    strictEqual(codeOf(result), 'GRANT_EXPIRED');
  },
  'a turn stops when its grant expires': async (library) => {
    const clock = new library.ManualClock(1_000);
    const step = { loopId: 'act', inputMapping: '$.input' };
    const { host, performed } = hostOf(library, {
      definitions: [composite('twice', [step, step])],
      clock,
      act: async () => {
        await clock.advanceTo(10_000);
        return 'done';
      },
    });
    const grant = grantOf({}, { expiresAt: '1970-01-01T00:00:05Z' });
    strictEqual((await host.run({ loop: 'twice', input: {}, grant })).status, 'stopped');
    strictEqual(performed.length, 1);
  },
  'one grant id has one content': async (library) => {
    const { host } = await runAct(library, grantOf({ effects: 1 }, { id: 'one' }));
    const again = await host.run({ loop: 'act', input: {}, grant: grantOf({ effects: 9 }, { id: 'one' }) });
    strictEqual(codeOf(again), 'GRANT_CONFLICT');
  },
  'no effect is deeper than permitted': async (library) => {
    const definitions = [composite('outer', [{ loopId: 'act', inputMapping: '$.input' }])];
    const { host, performed } = hostOf(library, { definitions });
    await host.run({ loop: 'outer', input: {}, grant: grantOf({ depth: 0 }) });
    deepStrictEqual(performed, []);
  },
  'a model that uses more than it may stops the turn': async (library) => {
    const { result } = await ask(library, { outputTokens: 7 }, { text: 'a', usage: [1, 9] });
    strictEqual(result.status, 'stopped');
  },
  'a model is told how much it may write': async (library) => {
    const { requests } = await ask(library, { outputTokens: 7 }, { text: 'a' });
    strictEqual(requests[0]?.maxOutputTokens, 7);
  },
  'a reply that is cut at its limit is not recorded': async (library) => {
    const { host, result } = await ask(library, { outputTokens: 2 }, { text: 'a b c d e' });
    strictEqual(result.status, 'stopped');
    const ends = (await host.archive.entries(result.sessionId)).filter(({ type }) => /returned|completed/.test(type));
    deepStrictEqual(ends, []);
  },
  'a model without a price does not run under a limit of money': async (library) => {
    const { result, requests } = await ask(library, { costMicros: 100 }, { text: 'a' });
    strictEqual(codeOf(result), 'TOOL_NOT_ADMITTED');
    strictEqual(requests.length, 0);
  },
  'a repeated attempt is not counted again': async ({ Ledger, memoryStore, ManualClock }) => {
    const ledger = await Ledger.open({ store: memoryStore(), clock: new ManualClock(1) }, 'g', grantOf());
    const charged = { turn: 't', effect: 't/0', accounts: [{ id: '', limits: {} }], isOpen: false };
    for (let n = 0; n < 3; n++) ledger.reserve(charged, { perEffect: { effects: 1 }, perAttempt: {} });
    strictEqual(ledger.budget.usedOf('', 'effects'), 1);
  },
  'a tool round is limited': async ({ Ledger, memoryStore, ManualClock }) => {
    const ledger = await Ledger.open({ store: memoryStore(), clock: new ManualClock(1) }, 'g', grantOf());
    const accounts = [{ id: '', limits: { toolRounds: 0 } }];
    const charged = { turn: 't', effect: 't/0/0', round: 't/0@round', accounts, isOpen: false };
    strictEqual('counter' in ledger.reserve(charged, { perEffect: { effects: 1 }, perAttempt: {} }), true);
  },
  'a turn that has ended is not counted again': async (library) => {
    const { host } = hostOf(library);
    const run = () => host.run({ loop: 'act', input: {}, key: 'k', grant: grantOf({ turns: 1 }) });
    for (let n = 0; n < 2; n++) strictEqual((await run()).status, 'ok');
  },
  'a model call that never began gives its reservation back': async (library) => {
    const { Ledger, GovernedTurn, memoryStore, ManualClock, parseGrant } = library;
    const clock = new ManualClock(1);
    const document = grantOf({ outputTokens: 50 });
    const ledger = await Ledger.open({ store: memoryStore(), clock }, 'g', document);
    const turn = new GovernedTurn({
      ...{ turnId: 't', ledger, clock, entries: [], grant: parseGrant(document, { isOperators: true }) },
      ...{
        accounts: [{ id: '', limits: { outputTokens: 50 } }],
        priceOf: () => undefined,
        agentAround: () => undefined,
        stop: () => undefined,
      },
    });
    turn.admit(act({ kind: 'model', name: 'm', tokenBound: () => ({ inputBytes: 5 }) as never }), 't/0');
    strictEqual(ledger.budget.usedOf('', 'outputTokens'), 50);
    await turn.end(false);
    strictEqual(ledger.budget.usedOf('', 'outputTokens'), 0);
    strictEqual(ledger.nextSettlement(), undefined);
  },
  'a review of the grant asks a person': async (library) => {
    const { result } = await runAct(library, grantOf({}, { review: { act: 'ask' } }));
    strictEqual(result.status, 'paused');
  },
  'only an approver of the grant may answer': async (library) => {
    const { host, performed } = await paused(library, { approvers: ['ada'] });
    const [approval] = await host.archive.approvals();
    await rejects(host.answer({ id: approval?.id ?? '', approved: true, by: 'eve' }));
    deepStrictEqual(performed, []);
  },
  'a turn is attached to under its own grant only': async (library) => {
    const { host } = hostOf(library);
    const run = (effects: number) => host.run({ loop: 'act', input: {}, key: 'k', grant: grantOf({ effects }) });
    strictEqual((await run(1)).status, 'ok');
    strictEqual(codeOf(await run(2)), 'GRANT_CONFLICT');
  },
  'only a turn that stopped gets another grant': async (library) => {
    const { host, result } = await paused(library);
    const resumed = host.resume(result.turnId, { grant: grantOf({ effects: 100 }) }).then(codeOf, ({ code }) => code);
    strictEqual(await resumed, 'GRANT_CONFLICT');
  },
  'a body in code that nothing confines does not run': async (library) => {
    let isRun = false;
    const body = () => {
      isRun = true;
      return 1;
    };
    const code = library.defineLoop({ id: 'code', input: true, output: true, run: body });
    const { host } = hostOf(library, { definitions: [code] });
    const result = await host.run({ loop: 'code', input: {}, grant: grantOf({}, { roots: ['/data'] }) });
    strictEqual(codeOf(result), 'TOOL_NOT_ADMITTED');
    ok(!isRun);
  },
  'a loop that a model chooses must be permitted, also one that is no tool': async (library) => {
    const inner = composite('inner', [{ loopId: 'act', inputMapping: '$.input' }]);
    const replies = [{ calls: [['inner', {}] as const] }, { text: 'done' }];
    const definitions = [agentDef('agent', { tools: ['inner'] }), inner];
    const { host, performed } = hostOf(library, { definitions, providers: [replyProvider(replies)] });
    const grant = grantOf({}, { allowedTools: ['act'] });
    await host.run({ loop: 'agent', input: { prompt: 'go' }, grant });
    deepStrictEqual(performed, []);
  },
  'a closed session runs nothing': async (library) => {
    const { host, store, performed } = hostOf(library, { receiptKeys: testKeys() });
    const clock = new library.ManualClock(1);
    const session = await library.Session.open('s', { store, clock, ids: library.seededIds(9) });
    const closed = { turn: '', sequence: 0, final: true, state: 'closed', hash: '', to: 0, envelope: {} };
    await session.recordFact('rondo.receipt.sealed', 'receipt/0', closed);
    await session.close();
    await host.run({ loop: 'act', input: {}, sessionId: 's' }).catch(() => undefined);
    deepStrictEqual(performed, []);
  },
  'a file outside of the roots of the grant is not opened': async (library) => {
    const view = (path: string) =>
      useToolbox(library, 'view_file', { path }, (root) => ({ roots: [join(root, 'in')], destinations: undefined }));
    await view('in/file');
    await rejects(view('out/file'));
  },
  'a page of another host is not fetched': async (library) => {
    await rejects(
      useToolbox(library, 'fetch_url', { url: `https://${INVALID_HOST}/` }, () => nowhere),
      notGranted,
    );
  },
  'a command that cannot be confined does not run': async (library) => {
    await rejects(
      useToolbox(library, 'run_command', { command: 'true' }, (root) => ({ roots: [root], destinations: [] })),
      notGranted,
    );
  },
  'nothing is sent to another host': async ({ httpsTools }) => {
    const send = await httpsTools().open(`https://${INVALID_HOST}/`, { directory: '/', trusted: true }, {});
    const ignore = (): undefined => undefined;
    const context = {
      ...{ callId: 'c', idempotencyKey: 'k', signal: new AbortController().signal, config: {}, confinement: nowhere },
      ...{ log: ignore, delta: ignore, emit: ignore },
    };
    await rejects(async () => send({}, context), notGranted);
  },
} as const satisfies { readonly [promise: string]: GrantCheck };
