import { expect } from 'vitest';
import {
  codeOf,
  duplicates,
  type KernelFixture,
  kernelFixture,
  run,
  tick,
  ticks,
} from '../../spec/support/kernel-probe.js';
import { verifies } from '../../spec/verifies.js';
import { LoopError } from '../base/errors.js';
import { digestOfText } from '../journal/record.js';
import type { SessionOptions } from '../journal/session-options.js';
import { canonicalJson } from '../json/canonical.js';
import type { Effect, Scope } from '../protocol/body.js';
import type { Entry, Safety } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { PolicySpec } from '../protocol/loop.js';
import type { Layer, RunOutcome } from '../protocol/session.js';
import { crashingStore } from '../testing/crashing-store.js';
import type { ApprovalGate } from './approval.js';
import type { ResultCache } from './cache.js';
import { memoryCache } from './memory-cache.js';
import { type PolicyDeps, policyLayers } from './policy-layers.js';
import { RateLimiter } from './rate-limit.js';

/** A gate without restrictions: only the policy of the effect applies. */
const gate: ApprovalGate = {
  ruleFor: ({ policy }: Effect) => (policy?.approval === undefined ? undefined : { policy: policy.approval }),
  authorityFor: () => ({ expiresAt: 1e12 }),
  grantsFor: () => undefined,
  admissionAt: () => undefined,
};

/** A policy with every key that becomes a layer; a new key does not compile until it is here. */
const FULL: Required<Omit<PolicySpec, 'routing'>> = {
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

/** `busy` fails with a transient error, `deaf` never answers, `good` answers. */
const backends: { readonly [id: string]: () => Json | Promise<Json> } = {
  busy: () => {
    throw new LoopError('BACKEND_FAILED', 'busy', { retryable: true });
  },
  deaf: () => new Promise<Json>(() => {}),
  good: () => ({ text: 'the secret is 42', model: 'g', finish: 'stop' }),
};

const backendOf = (request: unknown): string => (request as { readonly backendId: string }).backendId;

const depsOf = (k: KernelFixture, cache: ResultCache = memoryCache({ entries: 9, bytes: 9999 })): PolicyDeps => ({
  clock: k.clock,
  cache,
  rateLimiter: new RateLimiter(),
});

function modelEffect(k: KernelFixture, prompt = 'use sk-123', policy: PolicySpec = FULL): Effect {
  const perform: Effect['perform'] = (request) => backends[backendOf(request)]?.();
  const input = { backendId: 'busy', model: 'b', promptLength: prompt.length, prompt };
  const effect = k.effect('busy', 'idempotent', perform, input);
  return { ...effect, kind: 'model', policy, perform: (request, context) => effect.perform(request, context) };
}

/** Runs a turn to its end and advances the clock whenever it waits for a timer. */
async function finish(
  k: KernelFixture,
  options: Partial<SessionOptions>,
  body: (scope: Scope) => unknown,
  root = 't1',
) {
  const session = await k.open(options);
  const running = run(session, body, root, 'hold');
  let hasEnded = false;
  const onEnd = (): void => {
    hasEnded = true;
  };
  running.then(onEnd, onEnd);
  while (!hasEnded) {
    await ticks(3);
    if (!hasEnded && k.clock.nextWakeAt !== undefined) await k.clock.advanceTo(k.clock.nextWakeAt);
  }
  return running;
}

const attemptsIn = (entries: readonly Entry[]): (string | undefined)[] =>
  entries.filter(({ type }) => type === 'effect.requested').map(({ name }) => name);

const REPLY = { text: 'the [redacted] is 42', model: 'g', finish: 'stop' };

verifies('policy.order', 'layers apply in the documented order', async () => {
  const k = kernelFixture();
  const layers = policyLayers(() => depsOf(k), gate);
  const body = (scope: Scope) => scope.effect(modelEffect(k));
  expect(await finish(k, { layers }, body)).toEqual({ status: 'ok', output: REPLY });
  const entries = await k.entries();
  const attempt = ['rondo.rate.waited', 'effect.requested', 'effect.failed'];
  const waiting = ['rondo.rate.waited', 'timer.set', 'timer.fired', 'effect.requested', 'effect.failed'];
  const backoff = ['number.drawn', 'rondo.retry', 'timer.set', 'timer.fired'];
  const steps = [
    ...['session.opened', 'call.started', 'effect.opened', 'rondo.input.filtered', 'rondo.cache.read'],
    ...[...attempt, ...backoff, ...waiting, 'rondo.backend.fallback'],
    ...[...attempt, ...backoff, ...waiting, 'rondo.backend.fallback'],
    ...['rondo.rate.waited', 'effect.requested', 'effect.returned', 'effect.settled', 'call.completed'],
  ];
  expect(entries.map(({ type }) => type)).toEqual(steps);
  expect(attemptsIn(entries)).toEqual(['busy', 'busy', 'deaf', 'deaf', 'good']);
  const sent = entries.find(({ type }) => type === 'effect.requested')?.value;
  expect(sent).toMatchObject({ prompt: 'use [redacted]', promptLength: 'use [redacted]'.length });
});

verifies('policy.order', 'a cached result is filtered, but neither rate limited nor requested again', async () => {
  const k = kernelFixture();
  const layers = policyLayers(() => depsOf(k), gate);
  await finish(k, { layers }, (scope) => scope.effect(modelEffect(k)));
  const [performed, now] = [k.performed.length, k.clock.now()];
  const again = await finish(k, { layers }, (scope) => scope.effect(modelEffect(k, 'use sk-456')), 't2');
  expect(again).toEqual({ status: 'ok', output: REPLY });
  expect([k.performed.length, k.clock.now()]).toEqual([performed, now]);
  const { filters: _, ...withoutFilters } = FULL;
  const unfiltered = await finish(
    k,
    { layers },
    (scope) => scope.effect(modelEffect(k, 'use [redacted]', withoutFilters)),
    't3',
  );
  expect(k.performed).toHaveLength(performed);
  expect(unfiltered).toEqual({ status: 'ok', output: await backends.good?.() });
});

verifies('policy.order', 'a refused input uses neither the cache nor the rate limit', async () => {
  const k = kernelFixture();
  const outcome = await finish(k, { layers: policyLayers(() => depsOf(k), gate) }, (scope) =>
    scope.effect(modelEffect(k, 'forbidden')),
  );
  expect(outcome).toMatchObject({ status: 'error', error: { code: 'CONTENT_REFUSED' } });
  const types = (await k.entries()).map(({ type }) => type);
  expect(types).toEqual(['session.opened', 'call.started', 'effect.opened', 'effect.settled', 'call.errored']);
});

verifies('policy.order', 'an effect without a policy has no layers', async () => {
  const k = kernelFixture();
  const layers = policyLayers(() => depsOf(k), gate);
  const plain = k.effect('plain', 'pure');
  expect(layers(plain, 't1/0')).toBe(layers({ ...plain }, 't1/0'));
  expect([layers(plain, 't1/0').length, Object.isFrozen(layers(plain, 't1/0'))]).toEqual([0, true]);
  const inherited = Object.create({ policy: FULL }, Object.getOwnPropertyDescriptors(plain)) as Effect;
  expect(layers(inherited, 't1/0')).toHaveLength(0);
  await finish(k, { layers }, (scope) => scope.effect(plain));
  expect((await k.entries()).map(({ type }) => type)).not.toContain('effect.opened');
});

verifies('policy.order', 'only layers that apply to the kind and the safety of an effect are selected', () => {
  const k = kernelFixture();
  const layers = policyLayers(() => depsOf(k), gate);
  const count = (kind: string, safety: Safety, policy: PolicySpec): number =>
    layers({ ...k.effect('x', safety), kind, policy } as Effect, 't1/0').length;
  expect(count('model', 'idempotent', FULL)).toBe(9);
  expect(count('tool', 'idempotent', FULL)).toBe(8);
  expect(count('tool', 'once', FULL)).toBe(6);
  expect(count('tool', 'pure', {})).toBe(0);
  expect(count('model', 'pure', { routing: [], fallback: [] })).toBe(0);
});

verifies(
  'policy.approval',
  'a blocked tool never runs, and a tool with the policy ask waits for approval',
  async () => {
    const outcomeFor = async (approval: PolicySpec['approval']): Promise<[RunOutcome, number]> => {
      const k = kernelFixture();
      const effect = { ...k.effect('rm', 'once'), kind: 'tool', policy: { ...FULL, approval } } as Effect;
      return [
        await finish(k, { layers: policyLayers(() => depsOf(k), gate) }, (scope) => scope.effect(effect)),
        k.performed.length,
      ];
    };
    expect(await outcomeFor('blocked')).toMatchObject([{ error: { code: 'TOOL_NOT_ADMITTED' } }, 0]);
    expect(await outcomeFor('ask')).toMatchObject([{ status: 'paused', pending: [{ kind: 'signal' }] }, 0]);
    expect(await outcomeFor('sometimes' as 'ask')).toMatchObject([{ error: { code: 'TOOL_NOT_ADMITTED' } }, 0]);
    expect(await outcomeFor('always_allow')).toMatchObject([{ status: 'ok' }, 1]);
  },
);

/** Every subset of the keys of the full policy, with an approval. */
function policies(): readonly PolicySpec[] {
  const keys = Object.keys(FULL).filter((key) => key !== 'approval') as (keyof typeof FULL)[];
  return Array.from({ length: 2 ** keys.length }, (_, bits) => {
    const chosen = keys.filter((_key, index) => (bits >> index) % 2 === 1).map((key) => [key, FULL[key]]);
    return { ...Object.fromEntries(chosen), approval: 'ask' };
  });
}

/** A gate that records each input that is admitted, described to a person or compared with a standing grant. */
function recordingGate(): { readonly gate: ApprovalGate; readonly shown: unknown[]; describe(input: Json): string } {
  const shown: unknown[] = [];
  const show = ({ input }: Effect): void => void shown.push(structuredClone(input));
  const recording: ApprovalGate = {
    ...gate,
    admissionAt: () => show,
    grantsFor: (effect) => void show(effect),
  };
  return { gate: recording, shown, describe: (input) => String(shown.push(structuredClone(input))) };
}

verifies(
  'approval.bound',
  'under every policy, what is admitted and shown is what every attempt performs',
  async () => {
    for (const kind of ['tool', 'model'] as const)
      for (const policy of policies()) {
        const k = kernelFixture();
        const { gate: recording, shown, describe } = recordingGate();
        const layers = policyLayers(() => depsOf(k), recording);
        const performed: Json[] = [];
        const base = modelEffect(k, 'use sk-123', policy);
        const perform: Effect['perform'] = (input) => {
          performed.push(structuredClone(input));
          return kind === 'tool' || backendOf(input) === 'good' ? null : backends.busy?.();
        };
        const body = (scope: Scope) => scope.effect({ ...base, kind, describe, perform });
        await finish(k, { layers }, body);
        const request = (await k.entries()).find(({ type }) => type === 'rondo.approval.requested');
        const { id, argumentsDigest } = (request?.value ?? {}) as { readonly [name: string]: string };
        const session = await k.open({ layers });
        const name = `approval ${id}`;
        await session.signal({ id: name, name, value: { approved: true, by: 'ada', at: k.clock.now() } });
        await session.close();
        await finish(k, { layers }, body);
        const label = `${kind} ${JSON.stringify(policy)}`;
        const [first] = shown as [Json];
        expect(shown.length, label).toBeGreaterThan(2);
        for (const other of shown) expect(other, label).toEqual(first);
        expect(argumentsDigest, label).toBe(digestOfText(canonicalJson(first)));
        expect(performed.length, label).toBeGreaterThan(0);
        const fallbacks = kind === 'tool' ? [] : (policy.fallback ?? []);
        const permitted = [
          first,
          ...fallbacks.map(({ id: backendId, model }) => ({ ...(first as object), backendId, model })),
        ];
        for (const input of performed) expect(permitted, label).toContainEqual(input);
      }
  },
);

verifies('policy.replay', 'an effect that began before its filtered input was recorded continues', async () => {
  for (let append = 2; ; append++) {
    const k = kernelFixture();
    const { before: _, ...after } = FULL.filters;
    const inner = policyLayers(() => depsOf(k), gate);
    const filtering: Layer = (effect, _scope, next) => {
      const input = { ...(effect.input as object), prompt: 'use [redacted]', promptLength: 14 };
      return next({ ...effect, input });
    };
    const layers = (effect: Effect, key: string) => [
      filtering,
      ...inner({ ...effect, policy: { ...FULL, filters: after } }, key),
    ];
    const store = crashingStore(k.store, { appendNumber: append, when: 'after' });
    await codeOf(finish(k, { store, layers }, (scope) => scope.effect(modelEffect(k))));
    if (!store.hasCrashed) return;
    await tick();
    const resumed = finish(k, { layers: policyLayers(() => depsOf(k), gate) }, (scope) => scope.effect(modelEffect(k)));
    expect(await resumed, `after append ${append}`).toEqual({ status: 'ok', output: REPLY });
  }
});

/** Calls a model and then a tool, both under every layer. */
function bodyOf(k: KernelFixture): (scope: Scope) => Promise<unknown> {
  const tool = { ...k.effect('tool', 'keyed', () => ({ said: 'a secret' })), kind: 'tool', policy: FULL };
  return async (scope) => [await scope.effect(modelEffect(k)), await scope.effect(tool)];
}

const finishedAttemptsIn = (entries: readonly Entry[]): number =>
  entries.filter(({ type }) => /^effect\.(returned|failed)$/.test(type)).length;

const ATTEMPTS = ['busy', 'busy', 'deaf', 'deaf', 'good', 'tool'];
const OUTPUT = [REPLY, { said: 'a [redacted]' }];

/** Resumes the turn in a new process and checks that no recorded attempt is repeated. `label` is for messages. */
async function resumeAndCheck(k: KernelFixture, label: string): Promise<void> {
  const [recorded, performed] = [finishedAttemptsIn(await k.entries()), k.performed.length];
  const outcome = await finish(k, { layers: policyLayers(() => depsOf(k), gate) }, bodyOf(k));
  const entries = await k.entries();
  expect(outcome, label).toEqual({ status: 'ok', output: OUTPUT });
  expect(attemptsIn(entries), label).toEqual(ATTEMPTS);
  expect(k.performed.length - performed, label).toBe(finishedAttemptsIn(entries) - recorded);
  expect(duplicates(entries), label).toEqual([]);
  const performedBefore = k.performed.length;
  expect(await finish(k, { layers: policyLayers(() => depsOf(k), gate) }, bodyOf(k)), label).toEqual(outcome);
  expect(k.performed, label).toHaveLength(performedBefore);
}

verifies(
  'policy.replay',
  'a crash at any append under all layers changes no outcome and repeats no recorded attempt',
  async () => {
    for (let append = 1; ; append++) {
      for (const when of ['before', 'after'] as const) {
        const k = kernelFixture();
        const store = crashingStore(k.store, { appendNumber: append, when });
        const code = await codeOf(finish(k, { store, layers: policyLayers(() => depsOf(k), gate) }, bodyOf(k)));
        if (!store.hasCrashed) {
          expect([code, k.performed.length]).toEqual(['nothing', ATTEMPTS.length]);
          expect(append).toBeGreaterThan(10);
          return;
        }
        await tick();
        await resumeAndCheck(k, `${when} append ${append}`);
      }
    }
  },
);

verifies('policy.replay', 'a turn under all layers can be resumed from a journal that ends at any entry', async () => {
  const complete = kernelFixture();
  await finish(complete, { layers: policyLayers(() => depsOf(complete), gate) }, bodyOf(complete));
  const entries = await complete.entries();
  for (let count = 1; count < entries.length; count++) {
    const k = kernelFixture();
    const { fence } = await k.store.journal.claim('s');
    await k.store.journal.append({ session: 's', fence, firstSeq: 0, entries: entries.slice(0, count) });
    await resumeAndCheck(k, `after ${count} entries, the last being ${entries[count - 1]?.type}`);
  }
  expect(entries.length).toBeGreaterThan(35);
});
