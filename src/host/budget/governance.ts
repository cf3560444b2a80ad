/**
 * Opens grants for turns: checks them, opens their ledgers, counts the turn, and settles what an interrupted process
 * left open. A ledger is shared by all turns of this process with the same grant id.
 */

import { LoopError } from '../../base/errors.js';
import type { Clock } from '../../journal/clock.js';
import { digestOfText } from '../../journal/record.js';
import type { Store } from '../../journal/store.js';
import type { RegisteredLoop, Registry } from '../../loops/registry.js';
import { grantDigest, parseGrant } from '../../policy/grant.js';
import { assertNamesKnown } from '../../policy/grant-names.js';
import { narrowGrant } from '../../policy/narrow-grant.js';
import type { PriceOf } from '../../policy/prices.js';
import type { Entry } from '../../protocol/entry.js';
import type { Grant } from '../../protocol/grant.js';
import type { TurnGrant } from '../../protocol/hosted-loop.js';
import type { RunOutcome } from '../../protocol/session.js';
import { type Amounts, GRANT_ACCOUNT } from '../../views/budget.js';
import { lastReplyAt } from '../../views/last-reply.js';
import { ledgerLengthOf } from '../../views/receipt/sealed-receipts.js';
import type { LengthWitness } from '../host-options.js';
import { GovernedTurn, type GovernedTurnDeps, stopOf } from './governed-turn.js';
import { Ledger } from './ledger.js';
import { usedBy } from './model-budget.js';

interface GovernanceDeps {
  readonly store: Store;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly priceOf: PriceOf;
  readonly witness: LengthWitness | undefined;
}

/** A grant to open for a turn. */
export interface GrantOpening {
  readonly turnId: string;
  readonly document: Grant;
  /** True if the turn has run under this grant before. */
  readonly isContinued: boolean;
  /** The existing entries of its session. */
  readonly entries: readonly Entry[];
  /** The definitions that the turn is pinned to. */
  readonly definitions: readonly RegisteredLoop[];
  /** Each narrows the grant for this turn. @default none */
  readonly grants?: readonly TurnGrant[] | undefined;
  /** True if another turn has run under this grant before. */
  readonly isKnown?: boolean;
}

/** A grant that a turn may run under, or why it may not. */
export type OpenedGrant =
  | (Pick<GovernedTurnDeps, 'grant' | 'ledger' | 'accounts'> & { readonly refusal?: undefined })
  | { readonly refusal: RunOutcome };

/** The ids of grants that were given without one begin with this. */
const TURN_GRANT_PREFIX = 'turn@';

/** The grants of one host. */
export class Governance {
  private readonly deps: GovernanceDeps;
  private readonly ledgers = new Map<string, Promise<Ledger>>();

  constructor(deps: GovernanceDeps) {
    this.deps = deps;
  }

  /**
   * Opens the grant of a turn and counts the turn. Returns the refusal if the grant has no turns left, is not valid, has
   * expired, or conflicts with a known one.
   */
  async open(opening: GrantOpening): Promise<OpenedGrant> {
    try {
      return await this.openValid(opening);
    } catch (thrown) {
      if (!(thrown instanceof LoopError)) throw thrown;
      return { refusal: { status: 'error', error: thrown.toErrorRecord() } };
    }
  }

  private async openValid(opening: GrantOpening): Promise<OpenedGrant> {
    const { turnId, document, isContinued, entries, definitions } = opening;
    const { grant, accounts } = narrowedGrant(opening);
    // A grant that was opened once stays usable where other loops are registered.
    if (!isContinued)
      assertNamesKnown(grant, (matches) =>
        [...definitions, ...this.deps.registry.list()].some(({ definition }) => matches(definition.id)),
      );
    const { expiresAt } = grant;
    // guard: expired-grant-opens-no-turn
    if (expiresAt !== undefined && this.deps.clock.now() >= expiresAt)
      throw new LoopError('GRANT_EXPIRED', `The grant expired at ${new Date(expiresAt).toISOString()}.`);
    const ledger = await this.ledger(grant.id ?? '', document, isContinued || opening.isKnown === true);
    if (isContinued) await ledger.assertLength(ledgerLengthOf(turnId, entries));
    const charge = { perEffect: { turns: 1 }, perAttempt: {} };
    const reserved = ledger.reserve({ turn: turnId, effect: turnId, accounts, isOpen: false }, charge);
    if ('counter' in reserved) return { refusal: { status: 'stopped', stop: stopOf(reserved) } };
    // guard: turn-counted-before-it-opens
    if (await reserved.durable) return { grant, ledger, accounts };
    const used = ledger.budget.usedOf(GRANT_ACCOUNT, 'turns');
    const exceeded = { account: GRANT_ACCOUNT, counter: 'turns', used, limit: grant.limits.turns ?? 0 };
    return { refusal: { status: 'stopped', stop: stopOf(exceeded) } };
  }

  /** Returns the turn that runs under an opened grant. What an interrupted process left open is settled first. */
  govern(
    opened: Pick<GovernedTurnDeps, 'grant' | 'ledger' | 'accounts'>,
    turn: Pick<GovernedTurnDeps, 'turnId' | 'entries' | 'agentAround' | 'stop'>,
  ): GovernedTurn {
    const { clock, priceOf } = this.deps;
    this.settleOpen(opened.ledger, turn.turnId, turn.entries);
    return new GovernedTurn({ ...opened, ...turn, clock, priceOf });
  }

  /** Settles the reservations of a turn whose results are recorded. The others stay charged with their worst case. */
  private settleOpen(ledger: Ledger, turnId: string, entries: readonly Entry[]): void {
    for (const { key, effect, amounts } of ledger.budget.openReservations(turnId)) {
      const answered = lastReplyAt(entries, effect);
      if (answered === undefined) continue;
      const { backendId, model } = answered.request;
      ledger.settleKey(key, usedBy(answered.reply, this.deps.priceOf(backendId, model, answered.at), amounts));
    }
  }

  /** Returns what all turns under a grant with an id have used. Registers a grant that is not known yet. */
  async usedOf(grant: Grant): Promise<Amounts> {
    return (await this.ledger(grant.id ?? '', grant, false)).budget.totals();
  }

  /** Forgets the ledger of a grant that belongs to one turn, when that turn does not run any more. */
  release(grantId: string): void {
    if (grantId.startsWith(TURN_GRANT_PREFIX)) this.ledgers.delete(grantId);
  }

  private async ledger(grantId: string, document: Grant, mustBeKnown: boolean): Promise<Ledger> {
    const opening = this.ledgers.get(grantId);
    const known = await opening?.catch(() => undefined);
    if (known?.isUsable === true) {
      await known.register(document, mustBeKnown);
      return known;
    }
    // Another turn may have opened it meanwhile.
    if (this.ledgers.get(grantId) !== opening) return this.ledger(grantId, document, mustBeKnown);
    const { store, clock, witness } = this.deps;
    // The length of a ledger of one turn is not kept: there would be a file for each turn.
    const deps = grantId.startsWith(TURN_GRANT_PREFIX) ? { store, clock } : { store, clock, witness };
    const opened = Ledger.open(deps, grantId, document, mustBeKnown);
    this.ledgers.set(grantId, opened);
    return opened;
  }
}

/**
 * Returns the grant of a turn, and the accounts that pay for it: that of the grant and, if the turn has a grant of its
 * own, one of the turn. Throws GRANT_WIDENED if the turn would be permitted more.
 */
function narrowedGrant({ turnId, document, grants = [] }: GrantOpening): Pick<GovernedTurnDeps, 'grant' | 'accounts'> {
  const outer = parseGrant(document, { isOperators: true });
  if (grants.length === 0) return { grant: outer, accounts: [{ id: GRANT_ACCOUNT, limits: outer.limits }] };
  const grant = narrowGrant(document, grants);
  const accounts = [
    { id: GRANT_ACCOUNT, limits: outer.limits },
    // guard: turn-has-its-own-limits
    { id: turnId, limits: grant.limits },
  ];
  return { grant, accounts };
}

/** Returns a grant with an id. One without an id gets one for its turn, which forks of the turn share. */
export function identifiedGrant(turnId: string, grant: Grant | undefined): Grant | undefined {
  if (grant === undefined || grant.id !== undefined) return grant;
  return {
    ...grant,
    id: `${TURN_GRANT_PREFIX}${digestOfText(turnId).slice(0, 22)}@${grantDigest(grant).slice(0, 16)}`,
  };
}
