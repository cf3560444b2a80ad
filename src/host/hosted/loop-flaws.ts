/**
 * What a hosted loop asks of the loop that it runs: that all it calls is there, that it takes the first input, reads the
 * declared context, can use the grant, and needs no trust that the file of the hosted loop does not have.
 */
import type { RegisteredLoop } from '../../loops/registry.js';
import { trustProblem } from '../../loops/trust-boundary.js';
import type { HostedLoopDocument, HostedPauseReason } from '../../protocol/hosted-loop.js';
import type { HostOptions } from '../host-options.js';
import { firstInputFlawsOf } from './first-input.js';
import { type ModelContext, nameFlawsOf, priceFlawsOf } from './grant-flaws.js';
import { missingLoopFlawsOf } from './missing-loops.js';
import { schemaFlawsOf } from './schema-flaws.js';

/** A problem of a hosted loop, at a JSON Pointer into its document. */
export interface LoopFlaw {
  readonly path: string;
  readonly reason: string;
}

/** The loops of a host, and what its operator trusts now. */
export type TrustContext = Pick<HostOptions, 'registry' | 'trusts' | 'untrustedJournal'>;

/** Something about a hosted loop that its operator can repair. */
export interface Obstacle {
  readonly reason: HostedPauseReason;
  readonly message: string;
}

/** Returns the problems that a hosted loop has with the loop that it runs. `hasCode` is true if code makes its inputs. */
export function loopFlawsOf(
  document: HostedLoopDocument,
  registered: RegisteredLoop,
  hasCode: boolean,
  context: ModelContext,
): readonly LoopFlaw[] {
  const { prompt, composite } = registered.definition;
  const readsContext = prompt !== undefined || composite?.agent !== undefined;
  const flaws: LoopFlaw[] = [];
  if (document.turn?.contextSkills !== undefined && !readsContext)
    flaws.push({
      path: '/turn/contextSkills',
      reason: `cannot be used: the loop "${document.loop}" is neither a prompt nor an agent, so it reads no context`,
    });
  return [
    ...missingLoopFlawsOf(registered, context.registry),
    ...flaws,
    ...firstInputFlawsOf(document, registered, hasCode),
    ...schemaFlawsOf(document, registered, hasCode),
    ...priceFlawsOf(document, registered, context),
    ...nameFlawsOf(document, registered, context),
  ];
}

/** Returns what keeps the next turn from succeeding, as the loop and the prices are now. */
export function obstacleOf(
  document: HostedLoopDocument,
  registered: RegisteredLoop,
  context: ModelContext,
): Obstacle | undefined {
  const [missing] = missingLoopFlawsOf(registered, context.registry);
  if (missing !== undefined) return { reason: 'definition', message: `${missing.path}: ${missing.reason}.` };
  const [price] = priceFlawsOf(document, registered, context);
  if (price !== undefined) return { reason: 'price', message: `${price.path}: ${price.reason}.` };
  const [name] = nameFlawsOf(document, registered, context);
  return name && { reason: 'grant', message: `${name.path}: ${name.reason}.` };
}

/**
 * Returns the problem of a hosted loop that is driven by a file of a directory which is not trusted, if its loop runs
 * what needs trust. `untrustedDirectory` is the directory that was not trusted; undefined if there is none.
 */
export function trustFlawOf(
  { loop }: Pick<HostedLoopDocument, 'loop'>,
  { registry, trusts = () => false }: TrustContext,
  untrustedDirectory: string | undefined,
): LoopFlaw | undefined {
  if (untrustedDirectory === undefined || trusts(untrustedDirectory)) return undefined;
  const reason = trustProblem(registry, [{ loopId: loop }], untrustedDirectory);
  // guard: untrusted-hosted-loop-runs-no-trusted-code
  return reason === undefined ? undefined : { path: '/loop', reason };
}
