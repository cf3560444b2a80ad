import { expect } from 'vitest';
import { hostOf } from '../../spec/support/host-fixture.js';
import { verifies } from '../../spec/verifies.js';
import { defineLoop } from '../loops/define.js';
import { type SessionActionDeps, SessionActions } from './session-actions.js';

const ANYTHING = {} as const;
const waits = defineLoop({ id: 'waits', input: ANYTHING, output: ANYTHING, body: (_, scope) => scope.wait('go') });

verifies(
  'sqlite.repeat',
  'a cancel that is recorded is reported as done, although the turn goes on elsewhere',
  async () => {
    const host = hostOf([waits]);
    const { turnId } = await host.run({ loop: 'waits', input: {} });
    const { deps } = Reflect.get(host, 'actions') as unknown as { deps: SessionActionDeps };
    // Another process drives the turn, and has not come to its end.
    const actions = new SessionActions({ ...deps, resume: async () => undefined });
    expect(await actions.cancel(turnId, 'enough')).toBe(true);
    expect((await host.archive.status(turnId))[0]?.status).not.toBe('error');
    expect(await actions.cancel(turnId, 'enough')).toBe(true);
  },
);
