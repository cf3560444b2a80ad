/**
 * A turn under a grant: admits each attempt at an effect, reserves what it can use at most, and settles what it used.
 * Reaching a limit stops the whole turn from outside of its loops: no body, agent or parent can catch it, and the turn
 * continues when there is authority for it.
 */

import { withContext } from '../../base/effect-context.js';
import { NotPerformed } from '../../base/errors.js';
import type { Clock } from '../../journal/clock.js';
import type { EnforcedGrant } from '../../policy/grant.js';
import { assertAdmitted } from '../../policy/grant-admission.js';
import { effectsOf } from '../../policy/grant-names.js';
import type { PriceOf } from '../../policy/prices.js';
import type { Confinement, Effect } from '../../protocol/body.js';
import type { Entry } from '../../protocol/entry.js';
import type { Json } from '../../protocol/json.js';
import type { RunStop } from '../../protocol/session.js';
import { type Account, type ExceededLimit, GRANT_ACCOUNT } from '../../views/budget.js';
import { CallNesting } from '../../views/call-nesting.js';
import { Interruption, whenExpired } from './interruption.js';
import type { ChargedEffect, Ledger, Reservation } from './ledger.js';
import { ModelBudget, type ReservedModelCall } from './model-budget.js';
import { WallTime } from './wall-time.js';

/** What a governed turn works with. */
export interface GovernedTurnDeps {
  readonly turnId: string;
  readonly grant: EnforcedGrant;
  readonly ledger: Ledger;
  /** The accounts that pay for the turn, that of the grant first. */
  readonly accounts: readonly Account[];
  readonly clock: Clock;
  readonly priceOf: PriceOf;
  /** The recorded entries of the session. */
  readonly entries: readonly Entry[];
  /** Returns the key of the agent whose model requested the innermost tool call around a key; undefined without one. */
  agentAround(key: string): string | undefined;
  /** Stops the turn. */
  stop(stop: RunStop): void;
}

const NO_AMOUNTS = {};

/** A turn that runs under a grant in this process. */
export class GovernedTurn {
  readonly grant: EnforcedGrant;
  readonly ledger: Ledger;
  private readonly deps: GovernedTurnDeps;
  private readonly accounts: readonly Account[];
  private readonly nesting: CallNesting | undefined;
  private readonly confinement: Confinement | undefined;
  private readonly modelBudget: ModelBudget;
  /** The model calls that are reserved and that have not begun. */
  private readonly unperformed = new Set<ReservedModelCall>();
  private readonly interruption = new Interruption();
  /** Stops waiting for the expiry of the grant. */
  private readonly ended = new AbortController();
  private wallTime: WallTime | undefined;
  /** Set when no running time is left: nothing starts any more. */
  private usedUpTime: ExceededLimit | undefined;

  constructor(deps: GovernedTurnDeps) {
    const { grant, ledger, accounts, clock, entries } = deps;
    const { limits, roots, destinations } = grant;
    this.deps = deps;
    this.grant = grant;
    this.ledger = ledger;
    this.accounts = accounts;
    this.nesting = limits.depth === undefined && limits.fanOut === undefined ? undefined : new CallNesting(entries);
    this.confinement = roots === undefined && destinations === undefined ? undefined : { roots, destinations };
    this.modelBudget = new ModelBudget(this.accounts, ledger, deps.priceOf, () => clock.now());
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
    const stop = this.expiry() ?? this.timeStop() ?? this.exceededNesting(key);
    if (stop !== undefined) {
      this.deps.stop(stop);
      return effect;
    }
    return effect.kind === 'model' ? this.admitModel(effect, key) : this.admitTool(effect, key);
  }

  /**
   * Counts the running time, and stops the turn when it is used up or when the grant expires. Model calls in flight are
   * then interrupted; other effects end. Call it before the turn starts to run.
   */
  startTimer(): void {
    const { turnId, ledger, clock } = this.deps;
    const { expiresAt, limits } = this.grant;
    const stop = (reason: RunStop): void => {
      // Stopped first: what the interrupted effects return must reach no body.
      this.deps.stop(reason);
      this.interruption.interrupt();
    };
    if (expiresAt !== undefined)
      void whenExpired(clock, expiresAt, this.ended.signal, () => stop(expiredStop(expiresAt)));
    if (limits.wallMs === undefined) return;
    const onExceeded = (exceeded: ExceededLimit): void => {
      this.usedUpTime = exceeded;
      stop(stopOf(exceeded));
    };
    this.wallTime = WallTime.start({ turnId, ledger, accounts: this.accounts, clock, onExceeded });
  }

  /** Ends the running time. Call it when the turn does not run any more, before its receipt states what was used. */
  endTimer(): void {
    this.ended.abort();
    this.wallTime?.end();
  }

  /** Charges what the turn used, and waits until the ledger is durable. */
  async end(isFinal: boolean): Promise<void> {
    this.endTimer();
    // guard: unperformed-call-released
    await Promise.all([...this.unperformed].map((call) => this.modelBudget.release(call)));
    this.unperformed.clear();
    await (isFinal ? this.ledger.endTurn(this.deps.turnId) : this.ledger.flush());
  }

  /** Releases what a turn that failed did not use. Call it when the turn does not run any more, however it ended. */
  close(): void {
    this.endTimer();
    // Otherwise model calls of other turns would wait for these.
    // guard: calls-of-failed-turn-released
    for (const call of this.unperformed) void this.modelBudget.release(call);
    this.unperformed.clear();
  }

  /** Counts the call of a body at its gate, if the grant limits the calls of its loop. */
  private admitGate(effect: Effect, key: string): Effect {
    const counter = effectsOf(effect.name);
    if (this.grant.limits[counter] === undefined) return effect;
    // The effects inside count as the tool round.
    const charged = { ...this.chargedEffect(key, false), round: undefined };
    const reservation = this.ledger.reserve(charged, { perEffect: { [counter]: 1 }, perAttempt: NO_AMOUNTS });
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

  private admitTool(effect: Effect, key: string): Effect {
    const { limits } = this.grant;
    const counter = effectsOf(effect.name);
    const perEffect = limits[counter] === undefined ? { effects: 1 } : { effects: 1, [counter]: 1 };
    const charge = { perEffect, perAttempt: NO_AMOUNTS };
    const reservation = this.ledger.reserve(this.chargedEffect(key, false), charge);
    if ('counter' in reservation) {
      this.deps.stop(stopOf(reservation));
      return effect;
    }
    const isConfined = !this.grant.unconfined.includes(effect.name);
    const confinement = isConfined ? this.confinement : undefined;
    const perform: Effect['perform'] = async (input, context) => {
      await this.assertReserved(reservation);
      return effect.perform(input, confinement === undefined ? context : withContext(context, { confinement }));
    };
    return { ...effect, perform };
  }

  private admitModel(admitted: Effect, key: string): Effect {
    const { expiresAt, limits } = this.grant;
    const isTimed = expiresAt !== undefined || limits.wallMs !== undefined;
    const effect = isTimed ? this.interruption.interruptible(admitted) : admitted;
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
      await this.assertReserved(call.reservation);
      return this.modelBudget.perform(effect, input, context, call, (exceeded) => this.deps.stop(stopOf(exceeded)));
    };
    return { ...effect, perform };
  }

  /** Waits until other model calls have released enough. Stops the turn if they do not. */
  private async waitForReservation(effect: Effect, input: Json, key: string): Promise<ReservedModelCall> {
    for (;;) {
      await this.interruption.until(this.ledger.nextSettlement());
      const reserved = this.modelBudget.reserve(effect, input, this.chargedEffect(key, true));
      if (!('counter' in reserved)) return reserved;
      if (this.ledger.nextSettlement() !== undefined) continue;
      this.deps.stop(stopOf(reserved));
      throw new NotPerformed();
    }
  }

  private chargedEffect(effect: string, isOpen: boolean): ChargedEffect {
    return { turn: this.deps.turnId, effect, round: this.roundOf(effect), accounts: this.accounts, isOpen };
  }

  /** Waits until a reservation is durable. Otherwise stops the turn and throws: the effect must not start. */
  private async assertReserved({ durable }: Reservation): Promise<void> {
    const problem = await durable.then(
      // guard: effect-waits-for-reservation
      (isReserved) => (isReserved === false ? 'another process used up the budget' : undefined),
      (thrown: unknown) => `the budget could not be written: ${thrown instanceof Error ? thrown.message : ''}`,
    );
    // The running time is reserved before the effect, so it is known by now whether there is any.
    const timeStop = this.timeStop();
    if (problem === undefined && timeStop === undefined) return;
    this.deps.stop(timeStop ?? { reason: 'budget', message: `The turn stopped because ${problem}.` });
    throw new NotPerformed();
  }

  /** Returns the tool round that an effect belongs to, one for each reply; undefined if rounds are not limited. */
  private roundOf(key: string): string | undefined {
    if (this.grant.limits.toolRounds === undefined) return undefined;
    const agentKey = this.deps.agentAround(key);
    if (agentKey === undefined) return undefined;
    const [step = ''] = key.slice(agentKey.length + 1).split('/', 1);
    return `${agentKey}/${step}@round`;
  }

  private expiry(): RunStop | undefined {
    const { expiresAt } = this.grant;
    // guard: expired-grant-stops-turn
    if (expiresAt === undefined || this.deps.clock.now() < expiresAt) return undefined;
    return expiredStop(expiresAt);
  }

  private timeStop(): RunStop | undefined {
    // guard: nothing-starts-without-time
    return this.usedUpTime === undefined ? undefined : stopOf(this.usedUpTime);
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

function expiredStop(expiresAt: number): RunStop {
  return { reason: 'expired', message: `The grant expired at ${new Date(expiresAt).toISOString()}.` };
}

const LIMIT_ADVICE = ' It continues under another grant.';

/** Returns the stop of a turn that reached a limit. */
export function stopOf({ counter, used, limit, needed }: ExceededLimit): RunStop {
  const left = limit - used;
  const isUnaffordable = needed !== undefined && left > 0;
  const why = isUnaffordable
    ? `The next model call does not fit into the grant of the turn: it needs at most ${needed} ${counter}, and ${left} of ${limit} are left.`
    : `The turn reached the limit of its grant (${used} of ${limit} ${counter}).`;
  const data = { counter, used, limit, ...(isUnaffordable && { needed }) };
  return { reason: counter, message: `${why}${LIMIT_ADVICE}`, data };
}

/** Returns the text of such a stop without its advice, for a turn that gets no other grant. */
export function withoutLimitAdvice(message: string): string {
  return message.replace(LIMIT_ADVICE, '');
}
