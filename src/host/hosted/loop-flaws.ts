/**
 * What a hosted loop asks of the loop that it runs: that it takes the first input, reads the declared context, and needs
 * no trust that the file of the hosted loop does not have.
 */
import type { RegisteredLoop } from '../../loops/registry.js';
import { trustProblem } from '../../loops/trust-boundary.js';
import type { HostedLoopDocument } from '../../protocol/hosted-loop.js';
import type { Json } from '../../protocol/json.js';
import type { HostOptions } from '../host-options.js';

/** A problem of a hosted loop, at a JSON Pointer into its document. */
export interface LoopFlaw {
  readonly path: string;
  readonly reason: string;
}

/** The loops of a host, and what its operator trusts now. */
export type TrustContext = Pick<HostOptions, 'registry' | 'trusts' | 'untrustedJournal'>;

/** Returns the problems that a hosted loop has with the loop that it runs. `hasCode` is true if code makes its inputs. */
export function loopFlawsOf(
  document: HostedLoopDocument,
  registered: RegisteredLoop,
  hasCode: boolean,
): readonly LoopFlaw[] {
  const { prompt, composite } = registered.definition;
  const readsContext = prompt !== undefined || composite?.agent !== undefined;
  const flaws: LoopFlaw[] = [];
  if (document.turn?.contextSkills !== undefined && !readsContext)
    flaws.push({
      path: '/turn/contextSkills',
      reason: `cannot be used: the loop "${document.loop}" is neither a prompt nor an agent, so it reads no context`,
    });
  const input = firstInputOf(document, hasCode);
  // guard: first-input-fits-the-loop
  if (input !== undefined)
    for (const { path, message } of registered.input.issues(input))
      flaws.push({ path: `/input${path}`, reason: `does not fit the loop "${document.loop}": it ${message}` });
  return flaws;
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

/** True if turns are caused by signals and handoffs alone. */
export function isEventDriven({ schedule, signals, acceptsHandoffsFrom }: HostedLoopDocument): boolean {
  return schedule === undefined && (signals !== undefined || acceptsHandoffsFrom !== undefined);
}

/** Returns the input of the first turn, as far as the document says it; undefined if it depends on what happens. */
function firstInputOf(document: HostedLoopDocument, hasCode: boolean): Json | undefined {
  const { input, next } = document;
  const isMade = next !== undefined || hasCode;
  if (isEventDriven(document)) return isMade ? undefined : input;
  return input ?? (isMade ? undefined : null);
}
