import { expect } from 'vitest';
import {
  codeOf,
  duplicates,
  type KernelFixture as Kit,
  kernelFixture as kit,
  run,
  tick,
  ticks,
} from '../../spec/support/kernel-probe.js';
import { verifies } from '../../spec/verifies.js';
import { LoopError } from '../base/errors.js';
import type { SessionOptions } from '../kernel/session.js';
import type { Effect, Scope } from '../protocol/body.js';
import type { Entry, Safety } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { PolicySpec } from '../protocol/loop.js';
import type { RunOutcome } from '../protocol/session.js';
import { crashingStore } from '../testing/crashing-store.js';
import type { ApprovalGate } from './approval.js';
import type { ResultCache } from './cache.js';
import { memoryCache } from './memory-cache.js';
import { type PolicyDeps, policyLayers } from './policy-layers.js';
import { RateLimiter } from './rate-limit.js';

/** Nobody watches: what holds is what the effect's own policy says. */
const gate: ApprovalGate = {
  ruleFor: ({ policy }: Effect) => (policy?.approval === undefined ? undefined : { policy: policy.approval }),
  authorityFor: () => ({ expiresAt: 1e12 }),
  grantsFor: () => undefined,
};

/** Every key of a policy at once. */
const FULL: PolicySpec = {
  filters: {
    before: [{ pattern: 'sk-[0-9]+', action: 'redact' }, { pattern: 'forbidden' }],
    after: [{ pattern: 'secret', action: 'redact' }],
  },
  cache: { ttlMs: 60_000 },
  fallback: [
    { id: 'deaf', model: 'd' },
    { id: 'good', model: 'g' },
  ],
  retry: { attempts: 2, backoffMs: 1000 },
  rateLimit: { requests: 1, perMs: 5000 },
  timeoutMs: 300,
  approval: 'always_allow',
};

/** `busy` fails in a way that may pass, `deaf` never ends, `good` answers. */
const backends: { readonly [id: string]: () => Json | Promise<Json> } = {
  busy: () => {
    throw new LoopError('BACKEND_FAILED', 'busy', { retryable: true });
  },
  deaf: () => new Promise<Json>(() => {}),
  good: () => ({ text: 'the secret is 42', model: 'g', finish: 'stop' }),
};

const partsOf = (k: Kit, cache: ResultCache = memoryCache({ entries: 9, bytes: 9999 })): PolicyDeps => ({
  clock: k.clock,
  cache,
  rateLimiter: new RateLimiter(),
});

function asking(k: Kit, prompt = 'use sk-123', policy: PolicySpec = FULL): Effect {
  const perform: Effect['perform'] = (got) => backends[(got as { backendId: string }).backendId]?.();
  const input = { backendId: 'busy', model: 'b', promptLength: prompt.length, prompt };
  const effect = k.effect('busy', 'idempotent', perform, input);
  return { ...effect, kind: 'model', policy, perform: (got, performance) => effect.perform(got, performance) };
}

/** Lets time pass as fast as everybody waits for it. */
async function finish(k: Kit, options: Partial<SessionOptions>, body: (scope: Scope) => unknown, root = 't1') {
  const session = await k.open(options);
  const running = run(session, body, root, 'hold');
  let done = false;
  const end = (): void => {
    done = true;
  };
  running.then(end, end);
  while (!done) {
    await ticks(3);
    if (!done && k.clock.nextWakeAt !== undefined) await k.clock.advanceTo(k.clock.nextWakeAt);
  }
  return running;
}

const attemptsIn = (entries: readonly Entry[]): (string | undefined)[] =>
  entries.filter(({ type }) => type === 'effect.requested').map(({ name }) => name);

const REPLY = { text: 'the [redacted] is 42', model: 'g', finish: 'stop' };

verifies('policy.order', 'layers stand in another order than the policy promises', async () => {
  const k = kit();
  const layers = policyLayers(() => partsOf(k), gate);
  const body = (scope: Scope) => scope.effect(asking(k));
  expect(await finish(k, { layers }, body)).toEqual({ status: 'ok', output: REPLY });
  const entries = await k.entries();
  const attempt = ['rondo.rate.waited', 'effect.requested', 'effect.failed'];
  const waiting = ['rondo.rate.waited', 'timer.set', 'timer.fired', 'effect.requested', 'effect.failed'];
  const backoff = ['number.drawn', 'rondo.retry', 'timer.set', 'timer.fired'];
  const steps = [
    ...['session.opened', 'call.started', 'effect.opened', 'rondo.cache.read'],
    ...[...attempt, ...backoff, ...waiting, 'rondo.backend.fallback'],
    ...[...attempt, ...backoff, ...waiting, 'rondo.backend.fallback'],
    ...['rondo.rate.waited', 'effect.requested', 'effect.returned', 'effect.settled', 'call.completed'],
  ];
  expect(entries.map(({ type }) => type)).toEqual(steps);
  expect(attemptsIn(entries)).toEqual(['busy', 'busy', 'deaf', 'deaf', 'good']);
  const sent = entries.find(({ type }) => type === 'effect.requested')?.value;
  expect(sent).toMatchObject({ prompt: 'use [redacted]', promptLength: 'use [redacted]'.length });
});

verifies(
  'policy.order',
  'a cached reply is filtered, needs no approval and does not wait for the rate limit',
  async () => {
    const k = kit();
    const layers = policyLayers(() => partsOf(k), gate);
    await finish(k, { layers }, (scope) => scope.effect(asking(k)));
    const [performed, now] = [k.performed.length, k.clock.now()];
    const again = await finish(k, { layers }, (scope) => scope.effect(asking(k, 'use sk-456')), 't2');
    expect(again).toEqual({ status: 'ok', output: REPLY });
    expect([k.performed.length, k.clock.now()]).toEqual([performed, now]);
    const { filters: _, ...open } = FULL;
    const unfiltered = await finish(k, { layers }, (scope) => scope.effect(asking(k, 'use [redacted]', open)), 't3');
    expect(k.performed).toHaveLength(performed);
    expect(unfiltered).toEqual({ status: 'ok', output: await backends.good?.() });
  },
);

verifies('policy.order', 'what is refused takes a place, looks into the cache or waits', async () => {
  const k = kit();
  const outcome = await finish(k, { layers: policyLayers(() => partsOf(k), gate) }, (scope) =>
    scope.effect(asking(k, 'forbidden')),
  );
  expect(outcome).toMatchObject({ status: 'error', error: { code: 'CONTENT_REFUSED' } });
  const types = (await k.entries()).map(({ type }) => type);
  expect(types).toEqual(['session.opened', 'call.started', 'effect.opened', 'effect.settled', 'call.errored']);
});

verifies('policy.order', 'an effect without a policy pays for layers', async () => {
  const k = kit();
  const layers = policyLayers(() => partsOf(k), gate);
  const plain = k.effect('plain', 'pure');
  expect(layers(plain, 't1/0')).toBe(layers({ ...plain }, 't1/0'));
  expect([layers(plain, 't1/0').length, Object.isFrozen(layers(plain, 't1/0'))]).toEqual([0, true]);
  const inherited = Object.create({ policy: FULL }, Object.getOwnPropertyDescriptors(plain)) as Effect;
  expect(layers(inherited, 't1/0')).toHaveLength(0);
  await finish(k, { layers }, (scope) => scope.effect(plain));
  expect((await k.entries()).map(({ type }) => type)).not.toContain('effect.opened');
});

verifies('policy.order', 'a layer stands around an effect that it may not touch', () => {
  const k = kit();
  const layers = policyLayers(() => partsOf(k), gate);
  const count = (kind: string, safety: Safety, policy: PolicySpec): number =>
    layers({ ...k.effect('x', safety), kind, policy } as Effect, 't1/0').length;
  expect(count('model', 'idempotent', FULL)).toBe(6);
  expect(count('tool', 'idempotent', FULL)).toBe(5);
  expect(count('tool', 'once', FULL)).toBe(3);
  expect(count('tool', 'pure', {})).toBe(0);
  expect(count('model', 'pure', { routing: [], fallback: [] })).toBe(0);
});

verifies('policy.approval', 'a blocked tool runs, or one that must be asked for runs unasked', async () => {
  const told = async (approval: PolicySpec['approval']): Promise<[RunOutcome, number]> => {
    const k = kit();
    const effect = { ...k.effect('rm', 'once'), kind: 'tool', policy: { ...FULL, approval } } as Effect;
    return [
      await finish(k, { layers: policyLayers(() => partsOf(k), gate) }, (scope) => scope.effect(effect)),
      k.performed.length,
    ];
  };
  expect(await told('blocked')).toMatchObject([{ error: { code: 'TOOL_NOT_ADMITTED' } }, 0]);
  expect(await told('ask')).toMatchObject([{ status: 'paused', pending: [{ kind: 'signal' }] }, 0]);
  expect(await told('sometimes' as 'ask')).toMatchObject([{ error: { code: 'TOOL_NOT_ADMITTED' } }, 0]);
  expect(await told('always_allow')).toMatchObject([{ status: 'ok' }, 1]);
});

/** A model asked under every layer, and then a tool. */
function bodyOf(k: Kit): (scope: Scope) => Promise<unknown> {
  const tool = { ...k.effect('tool', 'keyed', () => ({ said: 'a secret' })), kind: 'tool', policy: FULL };
  return async (scope) => [await scope.effect(asking(k)), await scope.effect(tool)];
}

const endsIn = (entries: readonly Entry[]): number =>
  entries.filter(({ type }) => /^effect\.(returned|failed)$/.test(type)).length;

const ATTEMPTS = ['busy', 'busy', 'deaf', 'deaf', 'good', 'tool'];
const OUTPUT = [REPLY, { said: 'a [redacted]' }];

/**
 * Goes on with what a kit's store holds, in a new process; what was recorded must stand, and nothing of it is done
 * again.
 */
async function goOn(k: Kit, place: string): Promise<void> {
  const [recorded, performed] = [endsIn(await k.entries()), k.performed.length];
  const outcome = await finish(k, { layers: policyLayers(() => partsOf(k), gate) }, bodyOf(k));
  const entries = await k.entries();
  expect(outcome, place).toEqual({ status: 'ok', output: OUTPUT });
  expect(attemptsIn(entries), place).toEqual(ATTEMPTS);
  expect(k.performed.length - performed, place).toBe(endsIn(entries) - recorded);
  expect(duplicates(entries), place).toEqual([]);
  const known = k.performed.length;
  expect(await finish(k, { layers: policyLayers(() => partsOf(k), gate) }, bodyOf(k)), place).toEqual(outcome);
  expect(k.performed, place).toHaveLength(known);
}

verifies('policy.replay', 'a crash under all layers changes the outcome, or repeats what was recorded', async () => {
  for (let append = 1; ; append++) {
    for (const when of ['before', 'after'] as const) {
      const k = kit();
      const store = crashingStore(k.store, { appendNumber: append, when });
      const code = await codeOf(finish(k, { store, layers: policyLayers(() => partsOf(k), gate) }, bodyOf(k)));
      if (!store.hasCrashed) {
        expect([code, k.performed.length]).toEqual(['nothing', ATTEMPTS.length]);
        expect(append).toBeGreaterThan(10);
        return;
      }
      await tick();
      await goOn(k, `${when} append ${append}`);
    }
  }
});

verifies(
  'policy.replay',
  'a journal that ends at any entry of a run under all layers cannot be gone on with',
  async () => {
    const whole = kit();
    await finish(whole, { layers: policyLayers(() => partsOf(whole), gate) }, bodyOf(whole));
    const entries = await whole.entries();
    for (let count = 1; count < entries.length; count++) {
      const k = kit();
      const { fence } = await k.store.journal.claim('s');
      await k.store.journal.append({ session: 's', fence, firstSeq: 0, entries: entries.slice(0, count) });
      await goOn(k, `after ${count} entries, the last being ${entries[count - 1]?.type}`);
    }
    expect(entries.length).toBeGreaterThan(35);
  },
);
