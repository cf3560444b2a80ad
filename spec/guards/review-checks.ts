// Checks of the reviews of grants: each holds on the intact library and fails when its guard is broken.

import { deepStrictEqual, ok, strictEqual, throws } from 'node:assert';
import type { Grant } from '../../src/protocol/grant.js';
import { composite, tool } from '../support/host-fixture.js';
import { agentDef, replyProvider } from '../support/scripted-agents.js';
import { errorOf } from '../support/turn-results.js';
import { type HostLibrary, hostParts, type LibraryParts } from './library.js';

export const reviewParts: LibraryParts = [
  ...hostParts,
  'adapters/tools/index.js',
  'policy/grant.js',
  'policy/grant-admission.js',
];

type ReviewLibrary = HostLibrary &
  typeof import('../../src/adapters/tools/index.js') &
  typeof import('../../src/policy/grant.js') &
  typeof import('../../src/policy/grant-admission.js');
type ReviewCheck = (library: ReviewLibrary) => Promise<void>;

const grantOf = (more: Partial<Grant> = {}): Grant => ({ allowedTools: ['*'], limits: {}, ...more });
const REVIEW = { review: { act: 'ask' } } as const;
const STANDING = { properties: { n: { maximum: 1 } }, required: ['n'] };

/** A host whose agent calls the tool `act`, or the composite `steps` around it, up to four times. */
function hostOf(library: ReviewLibrary, called: 'act' | 'steps' = 'act', waives = false) {
  const { Host, Registry, memoryStore, ManualClock, seededIds, builtinTools } = library;
  const performed: unknown[] = [];
  const builtin = builtinTools({ act: (input) => performed.push(input) });
  const waiving = Object.create(builtin, { approvalDescriber: { value: () => () => null } });
  const implementations = new Map([[builtin.scheme, waives ? (waiving as typeof builtin) : builtin]]);
  const registry = new Registry(implementations);
  const policy = waives ? { policy: { approval: 'ask' as const } } : {};
  registry.add(tool('act', 'builtin:act', policy));
  registry.add(composite('steps', [{ loopId: 'act', inputMapping: '$.input' }]));
  registry.add(agentDef('agent', { tools: [called] }));
  const call = { calls: [[called, { n: 1 }] as const] };
  const provider = replyProvider([call, call, { text: 'done' }, call, call, { text: 'done' }]);
  const host = new Host({
    ...{ store: memoryStore(), registry, implementations, ids: seededIds(1), clock: new ManualClock(1_000_000) },
    providers: new Map([[provider.id, provider]]),
  });
  const run = (grant: Grant, approvers?: readonly string[]) =>
    host.run({
      ...{ loop: 'agent', input: { prompt: 'go' }, sessionId: 's', grant },
      ...(approvers && { approvers }),
    });
  const answer = async (by: string, standing?: typeof STANDING) => {
    const [pending] = await host.archive.approvals();
    ok(pending, 'nothing is asked');
    await host.answer({ id: pending.id, approved: true, by, ...(standing && { standing }) });
  };
  return { host, performed, run, answer };
}

/** Asserts that a call that was admitted under one grant, and not performed, is asked for under another. */
const askedAgain =
  (standing: typeof STANDING | undefined, effects: number): ReviewCheck =>
  async (library) => {
    const { host, performed, run, answer } = hostOf(library);
    const paused = await run(grantOf({ ...REVIEW, limits: { effects } }));
    await answer('bob', standing);
    strictEqual((await host.resume(paused.turnId)).status, 'stopped');
    const regranted = await host.resume(paused.turnId, { grant: grantOf({ ...REVIEW, approvers: ['ada'] }) });
    strictEqual(regranted.status, 'paused');
    strictEqual(performed.length, effects);
  };

/** Asserts that a grant is refused. */
const refuses =
  (more: object): ReviewCheck =>
  async ({ parseGrant }) => {
    throws(() => parseGrant({ ...grantOf(), ...more }, { isOperators: true }), { code: 'GRANT_INVALID' });
  };

export const reviewChecks = {
  'a misspelt keyword in a schema of arguments is refused': refuses({ arguments: { act: { maxPropertys: 0 } } }),
  'a tool is named without a version': refuses({ review: { 'act@1.0.0': 'blocked' } }),
  'a grant expires on a day that exists': refuses({ expiresAt: '2026-02-30T00:00:00Z' }),
  'a composite whose review is blocked is not admitted': async ({ parseGrant, assertBodyAdmitted }) => {
    const grant = parseGrant(grantOf({ review: { steps: 'blocked' } }), { isOperators: true });
    const call = { name: 'steps', input: {}, isChosen: true, isCode: false, isRoot: false };
    throws(() => assertBodyAdmitted(grant, call));
  },
  'a composite with other arguments does not run': async (library) => {
    const { performed, run } = hostOf(library, 'steps');
    await run(grantOf({ arguments: { steps: { properties: { n: { const: 2 } } } } }));
    deepStrictEqual(performed, []);
  },
  'a composite whose review is ask waits for a person, and is counted': async (library) => {
    const { run } = hostOf(library, 'steps');
    strictEqual((await run(grantOf({ review: { steps: 'ask' } }))).status, 'paused');
    strictEqual((await run(grantOf({ limits: { effects: { steps: 0 } } }))).status, 'stopped');
  },
  'a tool that requires no approval is asked for if the grant demands it': async (library) => {
    strictEqual((await hostOf(library, 'act', true).run(grantOf(REVIEW))).status, 'paused');
  },
  'a call that its tool waived is asked for under a grant that demands it': async (library) => {
    const { host, performed, run } = hostOf(library, 'act', true);
    const stopped = await run(grantOf({ limits: { effects: 0 } }));
    strictEqual(stopped.status, 'stopped');
    strictEqual((await host.resume(stopped.turnId, { grant: grantOf(REVIEW) })).status, 'paused');
    deepStrictEqual(performed, []);
  },
  'an approval does not hold under a grant with other approvers': askedAgain(undefined, 0),
  'a standing approval does not hold under a grant with other approvers': askedAgain(STANDING, 1),
  'a standing approval does not satisfy the review of another grant': async (library) => {
    const { host, run, answer } = hostOf(library);
    const paused = await run(grantOf({ id: 'first', ...REVIEW }));
    await answer('bob', STANDING);
    strictEqual((await host.resume(paused.turnId)).status, 'ok');
    strictEqual((await run(grantOf({ id: 'second', ...REVIEW }))).status, 'paused');
  },
  'a turn whose approvals nobody could answer does not open': async (library) => {
    const refused = await hostOf(library).run(grantOf({ approvers: ['ada'] }), ['bob']);
    strictEqual(errorOf(refused)?.code, 'GRANT_INVALID');
  },
} as const satisfies { readonly [promise: string]: ReviewCheck };
