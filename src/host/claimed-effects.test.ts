import { expect } from 'vitest';
import { hostOf } from '../../spec/support/host-fixture.js';
import { verifies } from '../../spec/verifies.js';
import { defineLoop } from '../loops/define.js';
import type { Effect } from '../protocol/body.js';

verifies('grant.tools', 'an effect in code cannot pass for one that the runtime made', async () => {
  const performed: unknown[] = [];
  const claims: readonly Partial<Effect>[] = [
    { kind: 'gate' },
    { kind: 'model' },
    { kind: 'context' },
    { kind: 'tool', boundary: 'gate' },
    { kind: 'tool', boundary: 'toolbox' },
  ];
  for (const claim of claims) {
    const loop = defineLoop({
      id: 'claiming',
      input: true,
      output: true,
      run: (_, scope) => {
        const perform = (): number => performed.push(claim);
        return scope.effect({ kind: 'code', name: 'pay', input: null, safety: 'once', perform, ...claim });
      },
    });
    const grant = { allowedTools: [], limits: { effects: 0 } };
    expect(await hostOf([]).run({ loop, input: {}, grant })).toMatchObject({
      status: 'error',
      error: { code: 'VALUE_INVALID' },
    });
  }
  expect(performed).toEqual([]);
});
