/**
 * The host: runs turns of registered loops on a store, finds them again, and says how they stand. A turn is a root call
 * in a session; its id begins with the session's, so it is found without an index. Turns of one session run one after
 * another, those of different sessions side by side.
 */
import type { Clock, Ids } from '../journal/clock.js';
import { Fault, LoopError } from '../journal/errors.js';
import { digest } from '../journal/record.js';
import type { Store } from '../journal/store.js';
import { same, snapshot } from '../journal/value.js';
import type { Outcome } from '../kernel/attempt.js';
import type { Effect } from '../kernel/effect.js';
import type { Layer } from '../kernel/layer.js';
import { Session } from '../kernel/session.js';
import { memoryCache } from '../layers/memory-cache.js';
import { policyLayers } from '../layers/policy.js';
import { RateLimits } from '../layers/rate-limit.js';
import { Bench } from '../loops/bench.js';
import type { DefinedLoop } from '../loops/defined.js';
import type { Implementation } from '../loops/implementation.js';
import { linkedIn } from '../loops/link.js';
import type { Backend } from '../loops/model.js';
import type { Registered, Registry } from '../loops/registry.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { TraceEvent, TurnResult, TurnStatus } from '../protocol/trace.js';
import { Answers } from '../views/answers.js';
import { Tracing } from '../views/trace.js';
import { Archive, type Known, sessionOf } from './archive.js';
import { type Changed, changedSince, type Pinned, pin, unpin } from './pin.js';
import { type Replay, replayTurn } from './replay.js';
import { type Identity, resultOf } from './result.js';

export interface HostOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly registry: Registry;
  readonly backends?: ReadonlyMap<string, Backend>;
  readonly implementations?: ReadonlyMap<string, Implementation>;
  /** Whether the operator trusts a directory to run code; none unless told. */
  readonly trusts?: (directory: string | undefined) => boolean;
  readonly maxDepth?: number;
}

/** What is to be run: a loop by id or as it was defined, and its input. */
export interface TurnRequest<I = unknown, O = unknown> {
  readonly loop: string | DefinedLoop<I, O>;
  readonly version?: string;
  readonly input?: I;
  readonly sessionId?: string;
  /** The same key attaches to the same turn. */
  readonly key?: string;
}

export interface TurnOptions {
  /** Hears of each event of the trace when it happens. */
  readonly onEvent?: (event: TraceEvent) => void;
}

/** A turn that has not ended, and the code it needs that is not what it was. */
export interface InFlight {
  readonly turn: TurnStatus;
  readonly changed: readonly (Changed & { readonly breaks: boolean; readonly why?: string })[];
}

const NONE: ReadonlyMap<string, never> = new Map<string, never>();
const CACHE = { entries: 10_000, bytes: 64 * 1024 * 1024 };
const MAX_DEPTH = 2000;
const NAME = /^[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,99}$/;
const REQUEST: ReadonlySet<string> = new Set(['loop', 'version', 'input', 'sessionId', 'key']);

export class Host {
  readonly registry: Registry;
  /** What the store holds of turns. */
  readonly archive: Archive;
  private readonly options: HostOptions;
  private readonly bench: Bench;
  private readonly layers: (effect: Effect) => readonly Layer[];
  private readonly lanes = new Map<string, Promise<unknown>>();
  private readonly running = new Map<string, { readonly session: Session; readonly answers: Answers }>();

  constructor(options: HostOptions) {
    const { registry, clock, backends = NONE, implementations = NONE } = options;
    this.options = options;
    this.registry = registry;
    this.archive = new Archive(options.store, this.running);
    this.layers = policyLayers(() => ({ clock, cache: memoryCache(CACHE), limits: new RateLimits() }));
    const answered = (turn: string, { id, model }: { readonly id: string; readonly model: string }): number =>
      this.running.get(turn)?.answers.count(id, model) ?? 0;
    this.bench = new Bench({ backends, implementations, answered });
  }

  /** Runs a turn to its end or its pause. Only a failure of the machinery rejects; anything else is a result. */
  async run<I, O>(request: TurnRequest<I, O>, options: TurnOptions = {}): Promise<TurnResult<O>> {
    assertRequest(request);
    const registered = this.resolve(request);
    const identity = this.identify(request, registered);
    if (registered === undefined) return this.refused(identity, notFound(request)) as TurnResult<O>;
    const fresh = (): Promise<TurnResult> =>
      this.drive(identity, pin(linkedIn(this.registry, registered)), request.input, [], options);
    // A session that was just made up has a lane too: whoever hears of the turn may resume or decide it while it runs.
    if (request.key === undefined) return (await this.inLane(identity.sessionId, fresh)) as TurnResult<O>;
    const attach = async (): Promise<TurnResult> => {
      const known = await this.archive.known(identity.turnId);
      if (known === undefined) return fresh();
      try {
        const other = conflict(known, request, identity);
        return other === undefined ? await this.goOn(known, options) : this.refused(identity, other);
      } catch (thrown) {
        if (thrown instanceof LoopError) return this.refused(identity, thrown);
        throw thrown;
      }
    };
    return (await this.inLane(identity.sessionId, attach)) as TurnResult<O>;
  }

  /** Goes on with a turn, or returns how it ended. */
  async resume(turnId: string, options: TurnOptions = {}): Promise<TurnResult> {
    return this.inLane(sessionOf(turnId), async () => this.goOn(await this.archive.require(turnId), options));
  }

  /** Asks a turn to stop, and drives it to its end. False if it had ended. */
  async cancel(turnId: string, reason: string): Promise<boolean> {
    const live = this.running.get(turnId);
    if (live !== undefined) return live.session.cancel(turnId, reason);
    const { turn } = await this.archive.require(turnId);
    if (turn.ended !== undefined) return false;
    await this.inLane(sessionOf(turnId), async () => {
      const session = await this.open(sessionOf(turnId), () => {});
      await session.cancel(turnId, reason);
      await session.close();
    });
    await this.resume(turnId);
    return true;
  }

  /** Says what becomes of an effect in doubt; `value` is what the tool gave back, for one that is supplied. */
  async decide(key: string, decision: 'retry' | 'supply' | 'fail', by: string, value?: Json): Promise<void> {
    const [turnId = ''] = key.split('/', 1);
    const { entries } = await this.archive.require(turnId);
    const asked = entries.find((entry) => entry.type === 'effect.requested' && entry.key === key);
    const supplied = value === undefined ? {} : { value: asked?.kind === 'tool' ? { output: value } : value };
    await this.inLane(sessionOf(turnId), async () => {
      const session = await this.open(sessionOf(turnId), () => {});
      try {
        await session.decide(key, decision, by, supplied);
      } finally {
        await session.close();
      }
    });
  }

  /** Runs a turn's bodies over its record, performing nothing; with the code and definitions of now if asked. */
  async replay(turnId: string, against: 'then' | 'now' = 'then'): Promise<Replay> {
    const known = await this.archive.require(turnId);
    const { loopId, loopVersion, sessionId: session } = known.identity;
    const current = against === 'now' ? this.registry.find(loopId, loopVersion) : undefined;
    const { loop } = current === undefined ? await this.unpinned(known) : pin(linkedIn(this.registry, current));
    const { clock, ids, maxDepth } = this.options;
    const input = (known.turn.started.value ?? null) as Json;
    const parts = { session, turn: turnId, loop, input, entries: known.entries, clock, ids, maxDepth };
    return replayTurn({ ...parts, context: this.bench });
  }

  /** Turns that have not ended and whose code is not what it was: which of them cannot go on. */
  async inFlight(): Promise<readonly InFlight[]> {
    const open = (await this.archive.turns()).filter(({ status }) => status !== 'ok' && status !== 'error');
    return Promise.all(open.map((turn) => this.changesOf(turn)));
  }

  private async changesOf(turn: TurnStatus): Promise<InFlight> {
    const known = await this.archive.require(turn.turnId);
    const text = await this.archive.pinText(known);
    const changed = text === undefined ? [] : changedSince(text, this.registry);
    const judged = changed.map(async (change) => {
      if (change.now === 'missing') return { ...change, breaks: true, why: 'it is not registered any more' };
      const { matches, difference } = await this.replay(turn.turnId, 'now');
      return matches ? { ...change, breaks: false } : { ...change, breaks: true, why: difference ?? '' };
    });
    return { turn, changed: await Promise.all(judged) };
  }

  private resolve({ loop, version }: TurnRequest): Registered | undefined {
    return typeof loop === 'string' ? this.registry.find(loop, version) : this.registry.add(loop);
  }

  private identify({ loop, version = '', key, sessionId }: TurnRequest, found: Registered | undefined): Identity {
    const id = this.options.ids.id();
    const own = id.slice(0, 4) + id.slice(-12);
    const named = key === undefined ? undefined : digest(key).slice(0, 16);
    const session = sessionId ?? (named === undefined ? `s-${own}` : `k-${named}`);
    const suffix = named === undefined ? (sessionId === undefined ? '1' : own) : `k-${named}`;
    const loopId = found?.definition.id ?? (typeof loop === 'string' ? loop : loop.name);
    const loopVersion = found?.definition.version ?? version;
    return { sessionId: session, turnId: `${session}.${suffix}`, loopId, loopVersion };
  }

  /** One turn of a session after another. */
  private inLane<T>(sessionId: string, work: () => Promise<T>): Promise<T> {
    const before = this.lanes.get(sessionId);
    const done = before === undefined ? work() : before.then(work, work);
    this.lanes.set(sessionId, done);
    const leave = (): void => {
      if (this.lanes.get(sessionId) === done) this.lanes.delete(sessionId);
    };
    done.then(leave, leave);
    return done;
  }

  private open(sessionId: string, heard: (entry: Entry) => void): Promise<Session> {
    const { store, clock, ids, maxDepth = MAX_DEPTH } = this.options;
    return Session.open(sessionId, { store, clock, ids, layers: this.layers, context: this.bench, heard, maxDepth });
  }

  private async goOn(known: Known, options: TurnOptions): Promise<TurnResult> {
    const { identity, turn, entries } = known;
    return this.drive(identity, await this.unpinned(known), turn.started.value, entries, options);
  }

  private async drive(
    identity: Identity,
    { loop, text }: Pinned,
    input: unknown,
    past: readonly Entry[],
    { onEvent }: TurnOptions,
  ): Promise<TurnResult> {
    const { sessionId, turnId } = identity;
    const { store, clock } = this.options;
    const entries: Entry[] = [];
    const answers = new Answers();
    const tracing = onEvent === undefined ? undefined : new Tracing(turnId, unharmed(onEvent));
    const hear = (entry: Entry): void => {
      entries.push(entry);
      tracing?.apply(entry);
      answers.apply(entry);
    };
    for (const entry of past) hear(entry);
    const session = await this.open(sessionId, hear);
    this.running.set(turnId, { session, answers });
    try {
      await store.blobs.put(sessionId, loop.digest ?? '', text);
      const outcome = await session.run(turnId, loop, input as Json);
      return resultOf(identity, outcome, entries, clock.now());
    } catch (thrown) {
      return resultOf(identity, mismatch(thrown), entries, clock.now());
    } finally {
      this.running.delete(turnId);
      await session.close();
    }
  }

  private refused(identity: Identity, error: LoopError): TurnResult {
    return resultOf(identity, { status: 'error', error: error.record() }, [], this.options.clock.now());
  }

  /** What the turn was begun with; without a pin, what is registered under its name. */
  private async unpinned(known: Known): Promise<Pinned> {
    const text = await this.archive.pinText(known);
    const { implementations = new Map(), trusts = () => false } = this.options;
    if (text !== undefined) return unpin(text, { registry: this.registry, implementations, trusts });
    const { loopId, loopVersion } = known.identity;
    const registered = this.registry.find(loopId, loopVersion);
    if (registered !== undefined) return pin(linkedIn(this.registry, registered));
    throw notFound({ loop: loopId, version: loopVersion });
  }
}

/** Who only listens must not harm the run: what a listener throws stays with it. */
function unharmed(onEvent: (event: TraceEvent) => void): (event: TraceEvent) => void {
  return (event) => {
    try {
      onEvent(event);
    } catch {
      // The event is in the journal all the same.
    }
  };
}

/** A replay that does not match is told as a result: the turn stands where it stood. */
function mismatch(thrown: unknown): Outcome {
  if (!(thrown instanceof Fault) || thrown.code !== 'REPLAY_MISMATCH') throw thrown;
  const { code, message, data } = thrown;
  return { status: 'error', error: data === undefined ? { code, message } : { code, message, data } };
}

function conflict({ turn }: Known, { input, key }: TurnRequest, { loopId }: Identity): LoopError | undefined {
  const { name, value } = turn.started;
  if (name === loopId && same(value, snapshot(input, 'the input'))) return undefined;
  const message = `The key "${key}" belongs to a turn of "${name}" with ${name === loopId ? 'another input' : 'another loop'}.`;
  return new LoopError('KEY_CONFLICT', message, { key: key ?? '' });
}

function notFound({ loop, version }: TurnRequest): LoopError {
  const id = typeof loop === 'string' ? loop : loop.name;
  const wanted = version === undefined || version === '' ? `"${id}"` : `"${id}" ${version}`;
  return new LoopError('LOOP_NOT_FOUND', `There is no loop ${wanted}.`, { loopId: id });
}

function assertRequest(request: TurnRequest): void {
  for (const key in request) {
    if (!REQUEST.has(key)) throw new TypeError(`A turn has no "${key}"; it has ${[...REQUEST].join(', ')}.`);
  }
  const { sessionId, key } = request;
  if (sessionId !== undefined && !NAME.test(sessionId))
    throw new TypeError(`A session id is 1 to 100 letters, digits or _ . : - ; not ${JSON.stringify(sessionId)}.`);
  if (key !== undefined && (key === '' || key.length > 1000))
    throw new TypeError('A key is text of 1 to 1,000 characters.');
}
