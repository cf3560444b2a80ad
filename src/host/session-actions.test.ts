import { expect } from 'vitest';
import { hostOf } from '../../spec/support/host-fixture.js';
import { verifies } from '../../spec/verifies.js';
import { defineLoop } from '../loops/define.js';
import { type SessionActionDeps, SessionActions } from './session-actions.js';

const ANYTHING = {} as const;
const waits = defineLoop({ id: 'waits', input: ANYTHING, output: ANYTHING, body: (_, scope) => scope.wait('go') });

verifies(
  'sqlite.repeat',
  'a recorded cancel is reported as successful, even if the turn continues in another process',
  async () => {
    const host = hostOf([waits]);
    const { turnId } = await host.run({ loop: 'waits', input: {} });
    const { deps } = Reflect.get(host, 'actions') as unknown as { deps: SessionActionDeps };
    // As if another process ran the turn and had not finished it.
    const actions = new SessionActions({ ...deps, resume: async () => undefined });
    expect(await actions.cancel(turnId, 'enough')).toBe(true);
    expect((await host.archive.status(turnId))[0]?.status).not.toBe('error');
    expect(await actions.cancel(turnId, 'enough')).toBe(true);
  },
);
