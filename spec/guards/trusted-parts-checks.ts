// Checks of the boundary of trust: what needs trust runs only if everything that takes part is trusted.

import { deepStrictEqual } from 'node:assert';
import type { HostOptions } from '../../src/host/host-options.js';
import type { DefinedLoop } from '../../src/loops/defined-loop.js';
import { CODE_ORIGIN, type DefinitionOrigin } from '../../src/loops/origin.js';
import type { RegistryOptions } from '../../src/loops/registry.js';
import { composite } from '../support/host-fixture.js';
import { type HostLibrary, hostParts, type LibraryParts } from './library.js';

export const trustedParts: LibraryParts = [...hostParts, 'loops/define-plan.js'];

type Library = HostLibrary & typeof import('../../src/loops/define-plan.js');
type Check = (library: Library) => Promise<void>;

const TRUSTED: DefinitionOrigin = { directory: '/project', trusted: true };
const CLONE: DefinitionOrigin = { directory: '/clone', trusted: false };
const UNTRUSTED_CONFIG = { file: '/clone/rondo.toml', directory: '/clone', trusted: false, providerIds: [] };

/** A host with a loop in code, and what that got. */
function hostOf(library: Library, options: RegistryOptions = {}, more: Partial<HostOptions> = {}) {
  const inputs: unknown[] = [];
  const run = async (input: unknown): Promise<object> => ({ n: inputs.push(input) });
  const registry = new library.Registry(new Map(), options);
  registry.add(library.defineLoop({ id: 'danger', input: {}, output: {}, run }), CODE_ORIGIN);
  const [store, clock, ids] = [library.memoryStore(), new library.ManualClock(0), library.seededIds(1)];
  const host = new library.Host({ store, clock, ids, registry, ...more });
  return { host, registry, inputs };
}

const plan = (steps: readonly unknown[]): object => ({ ...composite('plan', []), composite: { plan: { steps } } });

const codeOf = (work: Promise<{ readonly error?: { readonly code: string } }>): Promise<string | undefined> =>
  work.then(
    ({ error }) => error?.code,
    ({ code }: { readonly code: string }) => code,
  );

const untrustedConfig: Check = async (library) => {
  const options = { verbs: { analyze: 'danger' }, config: UNTRUSTED_CONFIG };
  const { host, registry, inputs } = hostOf(library, options);
  registry.add(plan([{ action: 'analyze all' }]), TRUSTED);
  const code = await codeOf(host.run({ loop: 'plan', input: {} }) as never);
  deepStrictEqual([code, inputs], ['DEFINITION_INVALID', []]);
};

/** A plan that code calls, with a loop of a clone in it whose output the code gets. */
const calledPlan: Check = async (library) => {
  const { host, registry, inputs } = hostOf(library);
  registry.add(
    { ...plan([{ name: 'nap', type: 'wait', wait: { for: '1ms' } }]), id: 'choose', version: '9.9.9' },
    CLONE,
  );
  const called = library.definePlan({ id: 'called', input: {}, output: {}, steps: [{ loop: 'choose', input: {} }] });
  const run = async (_: unknown, scope: { call(loop: never, input: unknown): Promise<unknown> }): Promise<object> => ({
    n: inputs.push(await scope.call(called as never, {})),
  });
  registry.add(
    library.defineLoop({ id: 'caller', input: {}, output: {}, run: run as never }) as DefinedLoop,
    CODE_ORIGIN,
  );
  const code = await codeOf(host.run({ loop: 'caller', input: {} }) as never);
  deepStrictEqual([code, inputs], ['DEFINITION_INVALID', []]);
};

/** A recorded plan without a file, which is not registered where it continues. */
const unknownDefinition: Check = async (library) => {
  const waiting = plan([
    { type: 'wait', wait: { signal: 'go' } },
    { loop: 'danger', input: {} },
  ]);
  const store = library.memoryStore();
  const first = hostOf(library, {}, { store });
  first.registry.add(waiting);
  const { turnId } = await first.host.run({ loop: 'plan', input: {} });
  const second = hostOf(library, {}, { store, trusts: () => false });
  await second.host.signal({ turnId, name: 'go' });
  deepStrictEqual([await codeOf(second.host.resume(turnId) as never), second.inputs], ['DEFINITION_INVALID', []]);
  second.registry.add(waiting, TRUSTED);
  const { status } = await second.host.resume(turnId);
  deepStrictEqual([status, second.inputs.length], ['ok', 1]);
};

export const trustedPartsChecks = {
  'an untrusted config starts no loop in code': untrustedConfig,
  'code runs no plan with a part that is not trusted': calledPlan,
  'a recorded definition without a file drives no loop in code': unknownDefinition,
} as const satisfies Record<string, Check>;
