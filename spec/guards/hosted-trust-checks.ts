// Checks of hosted loops whose file was not trusted when they were started.

import { deepStrictEqual, match, strictEqual } from 'node:assert';
import type { DefinedLoop } from '../../src/loops/defined-loop.js';
import { counter, type HostedFixture, hostedFixture } from '../support/hosted-fixture.js';
import { HOUR_MS, HOURLY, type HostedCheck, type HostedLibrary } from './hosted-library.js';

const UNTRUSTED = { by: 'ada', untrustedDirectory: '/clone' };

const codeOf = ({ defineLoop }: HostedLibrary, id: string, inputs: unknown[] = []): DefinedLoop => {
  const run = async (input: unknown) => ({ n: inputs.push(input) });
  return defineLoop({ id, version: '2.0.0', input: {}, output: {}, run }) as DefinedLoop;
};

const refusalOf = (work: Promise<unknown>): Promise<{ readonly code?: string; readonly message?: string }> =>
  work.then(
    () => ({}),
    (thrown: { readonly code: string; readonly message: string }) => thrown,
  );

/** A host with a loop in code, and an untrusted loop whose first turn has ended. */
async function untrusted(library: HostedLibrary): Promise<HostedFixture> {
  const fixture = hostedFixture({ classes: library, definitions: [codeOf(library, 'code')] });
  await fixture.host.hosted.start(counter(HOURLY), UNTRUSTED);
  await fixture.work();
  return fixture;
}

export const hostedTrustChecks = {
  'a hosted loop that is not trusted does not start with a loop in code': async (library) => {
    const { host } = await untrusted(library);
    const grant = { allowedTools: ['code'], limits: {} };
    const document = counter({ id: 'other', loop: 'code', grant });
    const { code, message = '' } = await refusalOf(host.hosted.start(document, UNTRUSTED));
    strictEqual(code, 'DEFINITION_INVALID');
    match(message, /rondo trust \/clone/);
  },
  'a hosted loop that is not trusted stops before a turn of a loop in code': async (library) => {
    const fixture = await untrusted(library);
    const inputs: unknown[] = [];
    fixture.host.registry.add(codeOf(library, 'count', inputs), { directory: undefined, trusted: true });
    await fixture.clock.advance(HOUR_MS);
    await fixture.work();
    const { status, reason } = await fixture.host.hosted.status('counter');
    deepStrictEqual([status, reason, inputs.length], ['stopped', 'refused', 0]);
  },
  'a hosted loop whose file is no longer trusted runs no loop in code': async (library) => {
    const inputs: unknown[] = [];
    const definitions = [codeOf(library, 'code', inputs)];
    const fixture = hostedFixture({ classes: library, definitions, trusts: () => false });
    const document = counter({ loop: 'code', grant: { allowedTools: ['code'], limits: {} } });
    await fixture.host.hosted.start(document, { by: 'ada', directory: '/clone' });
    await fixture.work();
    const { status } = await fixture.host.hosted.status('counter');
    deepStrictEqual([status === 'stopped', inputs.length], [false, 0]);
  },
  'a hosted loop that is not trusted hands off to no loop in code': async (library) => {
    const { host } = await untrusted(library);
    const grant = { allowedTools: ['code'], limits: {} };
    const target = counter({ id: 'target', loop: 'code', grant, acceptsHandoffsFrom: ['counter'] });
    await host.hosted.start(target, { by: 'ada' });
    const [turn] = await host.hosted.turns('counter');
    const handoff = { target: 'target', receipt: turn?.receipt ?? '', input: null, reason: '' };
    strictEqual((await refusalOf(host.hosted.handoff(handoff))).code, 'HANDOFF_REFUSED');
  },
} as const satisfies Record<string, HostedCheck>;
