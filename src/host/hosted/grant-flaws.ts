/**
 * What keeps the grant of a hosted loop from being used by the loop that it runs: a model without a price where costs are
 * limited, and a rule for a name that no loop has.
 */
import { LoopError } from '../../base/errors.js';
import { linkLoop } from '../../loops/link.js';
import type { RegisteredLoop } from '../../loops/registry.js';
import { grantDigest, parseGrant } from '../../policy/grant.js';
import { assertNamesKnown } from '../../policy/grant-names.js';
import { missingPriceText } from '../../policy/prices.js';
import type { Grant } from '../../protocol/grant.js';
import type { HostedLoopDocument } from '../../protocol/hosted-loop.js';
import type { BackendRef } from '../../protocol/loop.js';
import type { HostOptions } from '../host-options.js';
import type { LoopFlaw } from './loop-flaws.js';

/** The loops and models of a host, and their prices now. */
export type ModelContext = Pick<HostOptions, 'registry' | 'providers' | 'priceOf'> & {
  readonly clock: Pick<HostOptions['clock'], 'now'>;
};

/** Returns the pointer to the limit of costs of a hosted loop or of its turns; undefined if costs are not limited. */
export function costLimitOf({ grant, turn }: Pick<HostedLoopDocument, 'grant' | 'turn'>): string | undefined {
  if (grant.limits.costMicros !== undefined) return '/grant/limits/costMicros';
  return turn?.grant?.limits?.costMicros === undefined ? undefined : '/turn/grant/limits/costMicros';
}

/** Returns a problem for each model that the turns would ask and that has no price, if the grant limits costs. */
export function priceFlawsOf(
  document: HostedLoopDocument,
  registered: RegisteredLoop,
  { registry, providers, priceOf, clock }: ModelContext,
): readonly LoopFlaw[] {
  const path = costLimitOf(document);
  if (path === undefined) return [];
  const models = linkLoop(registry, registered).definitions.flatMap((each) => {
    const ref = modelOf(each);
    if (ref === undefined) return [];
    const { id, model = providers?.get(id)?.defaultModel ?? '' } = ref;
    return [{ id, model }];
  });
  // guard: hosted-loop-needs-its-prices
  const unpriced = models.filter(({ id, model }) => priceOf?.(id, model, clock.now()) === undefined);
  return [...new Set(unpriced.map(({ id, model }) => `${id}/${model}`))].map((model) => ({
    path,
    reason: `limits what models cost, and ${missingPriceText(model)}`,
  }));
}

/** Returns the model that a definition asks whatever its input is; undefined for none, and for one that is routed. */
function modelOf({ definition: { kind, backend, composite, policy } }: RegisteredLoop): BackendRef | undefined {
  if (policy?.routing !== undefined) return undefined;
  return kind === 'prompt' ? backend : composite?.agent?.backend;
}

/** Returns the problem of a rule of the grant for a name that no loop has. */
export function nameFlawsOf(
  { grant }: HostedLoopDocument,
  registered: RegisteredLoop,
  { registry }: Pick<ModelContext, 'registry'>,
): readonly LoopFlaw[] {
  const isKnown = (matches: (id: string) => boolean): boolean =>
    [...linkLoop(registry, registered).definitions, ...registry.list()].some(({ definition }) =>
      matches(definition.id),
    );
  try {
    assertNamesKnown(parseGrant(grant, { isOperators: true }), isKnown);
    return [];
  } catch (thrown) {
    if (!(thrown instanceof LoopError)) throw thrown;
    const { path = '', reason = thrown.message } = (thrown.data ?? {}) as { path?: string; reason?: string };
    return [{ path: `/grant${path}`, reason }];
  }
}

/** Returns the grant of all turns: with an id of its own if it has none, and no longer than the deadline. */
export function effectiveGrant({ id, grant, stop: { deadline } }: HostedLoopDocument): Grant {
  const { expiresAt } = grant;
  const isSooner = deadline !== undefined && (expiresAt === undefined || Date.parse(deadline) < Date.parse(expiresAt));
  // guard: grant-ends-at-the-deadline
  const ends = isSooner ? { ...grant, expiresAt: deadline } : grant;
  return { ...ends, id: grant.id ?? `hosted@${id}@${grantDigest(ends).slice(0, 16)}` };
}

/** Returns the problem of a hosted loop whose grant has the id of another one with other content. */
export function sharedGrantFlaw(document: HostedLoopDocument, other: HostedLoopDocument): LoopFlaw | undefined {
  const [grant, others] = [effectiveGrant(document), effectiveGrant(other)];
  if (grant.id !== others.id || grantDigest(grant) === grantDigest(others)) return undefined;
  const reason = `is also the id of the grant of "${other.id}", which has other content`;
  return { path: '/grant/id', reason: `${reason} (its deadline counts too). Make them equal, or change the id` };
}
