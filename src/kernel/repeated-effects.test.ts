/** Effects that are performed again after a crash: each further start is recorded before it happens. */
import { expect } from 'vitest';
import { crash, run, sessionFixture } from '../../spec/support/session-fixture.js';
import { verifies } from '../../spec/verifies.js';
import * as host from '../host-entry.js';
import type { Effect, Loop, Scope } from '../protocol/body.js';
import type { Safety } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { Layer } from '../protocol/session.js';
import * as testing from '../testing/index.js';
import { foldTurn } from '../views/receipt/turn-fold.js';

const library = { ...host, ...testing } as unknown as Parameters<typeof sessionFixture>[0];
const SALT = Buffer.alloc(16, 7);

/** The end of the effect is lost in each crash: the first append of a run is its start, the second its end. */
const BEFORE_END = { appendNumber: 2, when: 'before' } as const;

type Body = (scope: Scope) => Promise<unknown>;

const inBody =
  (effect: Effect): Body =>
  (scope) =>
    scope.effect(effect);

/** The forms of one effect. The one with a layer gets it when its session opens. */
const FORMS = {
  'in a body': inBody,
  'with a layer': inBody,
  'of a leaf call': (effect: Effect): Body => {
    const tool: Loop<Json, unknown> = {
      name: effect.name,
      leaf: { effect: () => effect },
      body: (_, scope) => scope.effect(effect),
    };
    return (scope) => scope.call(tool, effect.input as Json);
  },
} as const;

/** Starts an effect, crashes `crashes` times before its end is recorded, and finishes it. */
async function interrupted(form: keyof typeof FORMS, safety: Safety, crashes: number) {
  const plain = sessionFixture(library);
  const layers = form === 'with a layer' ? [((_, __, perform) => perform()) satisfies Layer] : [];
  const fixture = { ...plain, open: (more = {}) => plain.open({ layers: () => layers, ...more }) };
  /** What was durable about repetitions at each start. */
  const repeatedAtStart: number[] = [];
  const count = async (): Promise<number> =>
    (await fixture.entries()).filter(({ type }) => type === 'effect.repeated').length;
  const effect = fixture.effect('pay', safety, {
    perform: async () => {
      repeatedAtStart.push(await count());
      return 'paid';
    },
  });
  const body = FORMS[form](effect);
  for (let n = 0; n < crashes; n++) await crash(fixture, BEFORE_END, body);
  const outcome = await run(await fixture.open(), body);
  const entries = await fixture.entries();
  return { fixture, body, outcome, entries, repeatedAtStart };
}

for (const form of Object.keys(FORMS) as (keyof typeof FORMS)[]) {
  verifies('kernel.repeated', `an interrupted effect ${form} is recorded before each further start`, async () => {
    for (const safety of ['idempotent', 'keyed'] as const) {
      const { fixture, body, outcome, entries, repeatedAtStart } = await interrupted(form, safety, 3);
      expect(outcome).toEqual({ status: 'ok', output: 'paid' });
      expect(repeatedAtStart, 'an effect started before its start was durable').toEqual([0, 1, 2, 3]);
      const repeated = entries.filter(({ type }) => type === 'effect.repeated');
      expect(new Set(repeated.map(({ key }) => key)).size).toBe(1);
      const [effect] = foldTurn('t1', entries.slice(1), 0, SALT).effects;
      expect(effect).toMatchObject({ name: 'pay', state: 'done', attempts: 4 });
      expect(await run(await fixture.open(), body), 'a replay takes what is recorded').toEqual(outcome);
      expect(await fixture.entries()).toHaveLength(entries.length);
    }
  });

  verifies(
    'kernel.repeated',
    `a pure effect ${form}, and one that is not interrupted, record nothing more`,
    async () => {
      const pure = await interrupted(form, 'pure', 2);
      expect(pure.outcome).toEqual({ status: 'ok', output: 'paid' });
      expect(pure.entries.filter(({ type }) => type === 'effect.repeated')).toEqual([]);
      const { entries } = await interrupted(form, 'keyed', 0);
      expect(entries.filter(({ type }) => type === 'effect.repeated')).toEqual([]);
      expect(foldTurn('t1', entries.slice(1), 0, SALT).effects[0]).not.toHaveProperty('attempts');
    },
  );
}
