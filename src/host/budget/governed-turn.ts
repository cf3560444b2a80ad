/**
 * A turn under a grant: admits each attempt at an effect, reserves what it can use at most, and settles what it used.
 * Reaching a limit stops the whole turn from outside of its loops: no body, agent or parent can catch it, and the turn
 * continues when there is authority for it.
 */

import { withContext } from '../../base/effect-context.js';
import { NotPerformed } from '../../base/errors.js';
import type { Clock } from '../../journal/clock.js';
import { type EnforcedGrant, effectsOf } from '../../policy/grant.js';
import { assertAdmitted } from '../../policy/grant-admission.js';
import type { PriceOf } from '../../policy/prices.js';
import type { Confinement, Effect } from '../../protocol/body.js';
import type { Entry } from '../../protocol/entry.js';
import type { Json } from '../../protocol/json.js';
import type { RunStop } from '../../protocol/session.js';
import { type Account, type Charge, type ExceededLimit, GRANT_ACCOUNT } from '../../views/budget.js';
import { CallNesting } from '../../views/call-nesting.js';
import type { ChargedEffect, Ledger, Reservation } from './ledger.js';
import { ModelBudget, type ReservedModelCall } from './model-budget.js';

/** What a governed turn works with. */
export interface GovernedTurnDeps {
  readonly turnId: string;
  readonly grant: EnforcedGrant;
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly priceOf: PriceOf;
  /** The recorded entries of the session. */
  readonly entries: readonly Entry[];
  /** Returns the key of the agent whose model requested the innermost tool call around a key; undefined without one. */
  agentAround(key: string): string | undefined;
  /** Stops the turn. */
  stop(stop: RunStop): void;
}

/** The reservation of a tool round. */
type RoundReservation = Pick<Reservation, 'durable'>;

const NO_AMOUNTS = {};
const NO_ROUND: RoundReservation = { durable: Promise.resolve(true) };

/** A turn that runs under a grant in this process. */
export class GovernedTurn {
  readonly grant: EnforcedGrant;
  readonly ledger: Ledger;
  private readonly deps: GovernedTurnDeps;
  private readonly accounts: readonly Account[];
  private readonly nesting: CallNesting | undefined;
  private readonly confinement: Confinement | undefined;
  private readonly modelBudget: ModelBudget;
  private readonly startedAt: number;
  /** The model calls that are reserved and that have not begun. */
  private readonly unperformed = new Set<ReservedModelCall>();
  private stopTimer: AbortController | undefined;

  constructor(deps: GovernedTurnDeps) {
    const { grant, ledger, clock, entries } = deps;
    const { limits, roots, destinations } = grant;
    this.deps = deps;
    this.grant = grant;
    this.ledger = ledger;
    this.accounts = [{ id: GRANT_ACCOUNT, limits }];
    this.nesting = limits.depth === undefined && limits.fanOut === undefined ? undefined : new CallNesting(entries);
    this.confinement = roots === undefined && destinations === undefined ? undefined : { roots, destinations };
    this.modelBudget = new ModelBudget(this.accounts, ledger, deps.priceOf, () => clock.now());
    this.startedAt = clock.elapsed();
  }

  /** Applies an entry of the turn. */
  applyEntry(entry: Entry): void {
    this.nesting?.apply(entry);
  }

  /** Throws TOOL_NOT_ADMITTED if the grant does not permit an effect. */
  assertAdmitted(effect: Effect): void {
    if (!isInternal(effect)) assertAdmitted(this.grant, effect);
  }

  /** Decides on an attempt at an effect; see `Admit`. */
  admit(effect: Effect, key: string): Effect {
    if (isInternal(effect)) return effect.boundary === 'gate' ? this.admitGate(effect, key) : effect;
    assertAdmitted(this.grant, effect);
    const stop = this.expiry() ?? this.exceededNesting(key);
    if (stop !== undefined) {
      this.deps.stop(stop);
      return effect;
    }
    const round = this.reserveRound(key);
    if ('counter' in round) {
      this.deps.stop(stopOf(round));
      return effect;
    }
    return effect.kind === 'model' ? this.admitModel(effect, key, round) : this.admitTool(effect, key, round);
  }

  /** Stops the turn when its time is used up. Call it when the turn starts to run. */
  startTimer(): void {
    const limit = this.grant.limits.wallMs;
    if (limit === undefined) return;
    this.stopTimer = new AbortController();
    const rest = limit - this.ledger.budget.usedOf(GRANT_ACCOUNT, 'wallMs');
    const stopLate = (): void =>
      this.deps.stop(stopOf({ counter: 'wallMs', used: limit, limit, account: GRANT_ACCOUNT }));
    if (rest <= 0) stopLate();
    else this.deps.clock.sleep(rest, this.stopTimer.signal).then(stopLate, () => undefined);
  }

  /** Charges the time since the turn started to run, and waits until the ledger is durable. */
  async end(isFinal: boolean): Promise<void> {
    const { turnId, clock } = this.deps;
    const wallMs = Math.ceil(clock.elapsed() - this.startedAt);
    if (this.grant.limits.wallMs !== undefined) this.ledger.charge(`${turnId}#wall`, { wallMs }, this.accounts);
    // guard: unperformed-call-released
    await Promise.all([...this.unperformed].map((call) => this.modelBudget.release(call)));
    this.unperformed.clear();
    await (isFinal ? this.ledger.endTurn(turnId) : this.ledger.flush());
  }

  /** Stops the timer. Call it when the turn does not run any more, however it ended. */
  close(): void {
    this.stopTimer?.abort();
  }

  /** Counts the call of a body at its gate, if the grant limits the calls of its loop. */
  private admitGate(effect: Effect, key: string): Effect {
    const counter = effectsOf(effect.name);
    if (this.grant.limits[counter] === undefined) return effect;
    const reservation = this.reserve({ perEffect: { [counter]: 1 }, perAttempt: NO_AMOUNTS }, key, false);
    if ('counter' in reservation) {
      this.deps.stop(stopOf(reservation));
      return effect;
    }
    const perform: Effect['perform'] = async (input, context) => {
      await this.assertReserved(reservation);
      return effect.perform(input, context);
    };
    return { ...effect, perform };
  }

  private admitTool(effect: Effect, key: string, round: RoundReservation): Effect {
    const { limits } = this.grant;
    const counter = effectsOf(effect.name);
    const perEffect = limits[counter] === undefined ? { effects: 1 } : { effects: 1, [counter]: 1 };
    const reservation = this.reserve({ perEffect, perAttempt: NO_AMOUNTS }, key, false);
    if ('counter' in reservation) {
      this.deps.stop(stopOf(reservation));
      return effect;
    }
    const isConfined = !this.grant.unconfined.includes(effect.name);
    const confinement = isConfined ? this.confinement : undefined;
    const perform: Effect['perform'] = async (input, context) => {
      await this.assertReserved(reservation, round);
      return effect.perform(input, confinement === undefined ? context : withContext(context, { confinement }));
    };
    return { ...effect, perform };
  }

  private admitModel(effect: Effect, key: string, round: RoundReservation): Effect {
    const reserved = this.modelBudget.reserve(effect, effect.input as Json, this.chargedEffect(key, true));
    // A reservation that only other calls in flight prevent is made when they have ended, before the call starts.
    if ('counter' in reserved) {
      if (this.ledger.nextSettlement() === undefined) {
        this.deps.stop(stopOf(reserved));
        return effect;
      }
    } else this.unperformed.add(reserved);
    const perform: Effect['perform'] = async (input, context) => {
      if (!('counter' in reserved)) this.unperformed.delete(reserved);
      const call = 'counter' in reserved ? await this.waitForReservation(effect, input, key) : reserved;
      await this.assertReserved(call.reservation, round);
      return this.modelBudget.perform(effect, input, context, call, (exceeded) => this.deps.stop(stopOf(exceeded)));
    };
    return { ...effect, perform };
  }

  /** Waits until other model calls have released enough. Stops the turn if they do not. */
  private async waitForReservation(effect: Effect, input: Json, key: string): Promise<ReservedModelCall> {
    for (;;) {
      await this.ledger.nextSettlement();
      const reserved = this.modelBudget.reserve(effect, input, this.chargedEffect(key, true));
      if (!('counter' in reserved)) return reserved;
      if (this.ledger.nextSettlement() !== undefined) continue;
      this.deps.stop(stopOf(reserved));
      throw new NotPerformed();
    }
  }

  private chargedEffect(effect: string, isOpen: boolean): ChargedEffect {
    return { turn: this.deps.turnId, effect, accounts: this.accounts, isOpen };
  }

  private reserve(charge: Charge, key: string, isOpen: boolean): Reservation | ExceededLimit {
    return this.ledger.reserve(this.chargedEffect(key, isOpen), charge);
  }

  /** Waits until reservations are durable. Otherwise stops the turn and throws: the effect must not start. */
  private async assertReserved(...reservations: readonly RoundReservation[]): Promise<void> {
    const problem = await Promise.all(reservations.map(({ durable }) => durable)).then(
      // guard: effect-waits-for-reservation
      (areReserved) => (areReserved.includes(false) ? 'another process used up the budget' : undefined),
      (thrown: unknown) => `the budget could not be written: ${thrown instanceof Error ? thrown.message : ''}`,
    );
    if (problem === undefined) return;
    this.deps.stop({ reason: 'budget', message: `The turn stopped because ${problem}.` });
    throw new NotPerformed();
  }

  /** Reserves the tool round that an effect belongs to, once for each reply. */
  private reserveRound(key: string): RoundReservation | ExceededLimit {
    if (this.grant.limits.toolRounds === undefined) return NO_ROUND;
    const agentKey = this.deps.agentAround(key);
    if (agentKey === undefined) return NO_ROUND;
    const [step = ''] = key.slice(agentKey.length + 1).split('/', 1);
    const charge = { perEffect: { toolRounds: 1 }, perAttempt: NO_AMOUNTS };
    return this.reserve(charge, `${agentKey}/${step}@round`, false);
  }

  private expiry(): RunStop | undefined {
    const { expiresAt } = this.grant;
    // guard: expired-grant-stops-turn
    if (expiresAt === undefined || this.deps.clock.now() < expiresAt) return undefined;
    return { reason: 'expired', message: `The grant expired at ${new Date(expiresAt).toISOString()}.` };
  }

  private exceededNesting(key: string): RunStop | undefined {
    const { depth, fanOut } = this.grant.limits;
    if (this.nesting === undefined) return undefined;
    const at = this.nesting.at(key);
    // guard: nesting-within-grant
    if (depth !== undefined && at.depth > depth)
      return stopOf({ counter: 'depth', used: at.depth, limit: depth, account: GRANT_ACCOUNT });
    if (fanOut !== undefined && at.fanOut > fanOut)
      return stopOf({ counter: 'fanOut', used: at.fanOut, limit: fanOut, account: GRANT_ACCOUNT });
    return undefined;
  }
}

/** True if an effect does nothing outside of the runtime: it asks a person, or reads the context of a call. */
function isInternal({ kind, boundary }: Effect): boolean {
  return kind === 'gate' || kind === 'context' || boundary === 'gate';
}

/** Returns the stop of a turn that reached a limit. */
export function stopOf({ counter, used, limit }: ExceededLimit): RunStop {
  const message = `The turn reached the limit of its grant (${used} of ${limit} ${counter}). It continues under another grant.`;
  return { reason: counter, message, data: { counter, used, limit } };
}
