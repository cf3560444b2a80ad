import { expect } from 'vitest';
import { kernelFixture, run } from '../../spec/support/kernel-probe.js';
import { verifies } from '../../spec/verifies.js';
import type { Effect } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { Layer } from '../protocol/session.js';
import { fallbackLayer } from './fallback.js';
import { fixedInput } from './fixed-input.js';

const FALLBACK = [{ id: 'spare', model: 's' }];
const INPUT = { to: 'bob', list: [1] };

/** Performs an effect with this layer behind its admission. Returns what was performed, and the outcome. */
async function performBehind(layer: Layer, kind = 'tool') {
  const k = kernelFixture();
  const performed: Json[] = [];
  const perform: Effect['perform'] = (input) => {
    performed.push(input);
    return null;
  };
  const [note, check] = fixedInput(FALLBACK);
  const session = await k.open({ layers: [note, layer, check] });
  const effect: Effect = { kind, name: 'pay', input: INPUT, safety: 'idempotent', perform };
  const outcome = await run(session, (scope) => scope.effect(effect));
  const code = outcome.status === 'error' ? outcome.error.code : outcome.status;
  return { performed, code, types: (await k.entries()).map(({ type }) => type) };
}

const changing = (change: Partial<Effect>): Layer => {
  return (effect, _scope, next) => next({ ...effect, ...change });
};

const CHANGES: { readonly [name: string]: Layer } = {
  'replaces the input': changing({ input: { to: 'eve', list: [1] } }),
  'adds a member': changing({ input: { ...INPUT, more: true } }),
  'removes the input': changing({ input: undefined }),
  'changes the input in place': (effect, _scope, next) => {
    (effect.input as { list: number[] }).list.push(2);
    return next();
  },
  'changes the name': changing({ name: 'wipe' }),
  'changes the kind': changing({ kind: 'model' }),
  'changes a tool as a fallback changes a model': changing({
    name: 'spare',
    input: { ...INPUT, backendId: 'spare', model: 's' },
  }),
};

for (const [name, layer] of Object.entries(CHANGES))
  verifies('approval.bound', `a layer that ${name} after the admission is refused before anything starts`, async () => {
    const { performed, code, types } = await performBehind(layer);
    expect(performed, 'something else ran than was admitted').toEqual([]);
    expect(code).toBe('TOOL_NOT_ADMITTED');
    expect(types).not.toContain('effect.requested');
  });

verifies(
  'approval.bound',
  'a layer may change how an effect is performed, and a model by a fallback of its policy',
  async () => {
    const wrapping: Layer = (effect, _scope, next) =>
      next({ ...effect, perform: (...args) => effect.perform(...args) });
    expect(await performBehind(wrapping)).toMatchObject({ performed: [INPUT], code: 'ok' });
    const spare = { ...INPUT, backendId: 'spare', model: 's' };
    const permitted = changing({ name: 'spare', input: spare });
    expect(await performBehind(permitted, 'model')).toMatchObject({ performed: [spare], code: 'ok' });
    expect(await performBehind(fallbackLayer(FALLBACK), 'model')).toMatchObject({ performed: [INPUT], code: 'ok' });
    const foreign = changing({ name: 'other', input: { ...INPUT, backendId: 'other', model: 's' } });
    expect(await performBehind(foreign, 'model')).toMatchObject({ performed: [], code: 'TOOL_NOT_ADMITTED' });
    const altered = changing({ name: 'spare', input: { ...spare, to: 'eve' } });
    expect(await performBehind(altered, 'model')).toMatchObject({ performed: [], code: 'TOOL_NOT_ADMITTED' });
  },
);
