// Runs a random plan to its end, with or without a crash, and records what it did. It delivers signals, answers approvals,
// resolves effects in doubt and advances the clock.

import { createHash } from 'node:crypto';
import { memoryStore } from '../../src/adapters/memory/index.js';
import { seededIds } from '../../src/adapters/system/seeded-ids.js';
import { builtinTools } from '../../src/adapters/tools/index.js';
import { Fault, LoopError } from '../../src/base/errors.js';
import { Host } from '../../src/host/host.js';
import { expandLeaves } from '../../src/journal/leaf-entries.js';
import type { Store } from '../../src/journal/store.js';
import { canonicalJson } from '../../src/json/canonical.js';
import { Registry } from '../../src/loops/registry.js';
import type { ToolCallContext } from '../../src/loops/tool-implementation.js';
import type { Entry } from '../../src/protocol/entry.js';
import type { Json } from '../../src/protocol/json.js';
import type { PendingItem, TurnResult } from '../../src/protocol/trace.js';
import { type CrashPoint, crashingStore } from '../../src/testing/crashing-store.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { tool } from './host-fixture.js';
import { isConcurrent, type RandomPlan, TOOL_SAFETIES } from './random-plans.js';

const MAX_ROUNDS = 400;
const KEY = 'the-turn';
const SESSION = 's';

function planDefinition(id: string, plan: object): object {
  const schemas = { inputSchema: true, outputSchema: true };
  return { id, name: id, version: '1.0.0', kind: 'composite', ...schemas, composite: { plan } };
}

const definitionsOf = ({ main, nested }: RandomPlan): readonly unknown[] => [
  ...TOOL_SAFETIES.map((safety) =>
    tool(safety, 'builtin:act', { tool: { implementation: 'builtin:act', safety, config: { safety } } }),
  ),
  planDefinition('nested', nested),
  planDefinition('main', main),
];

/** A number that follows from a text. */
function numberOf(text: string): number {
  return createHash('sha256').update(text).digest().readUInt32BE(0);
}

/** Returns whether a call fails: a share of all calls that its input names. */
function isFailing(input: Json, callNumber: number): boolean {
  const text = JSON.stringify(input ?? null);
  const share = text.includes('often') ? 2 : text.includes('sometimes') ? 4 : 0;
  return share > 0 && callNumber % share === 0;
}

function outputOf(callNumber: number): Json {
  const n = (callNumber >>> 8) % 10;
  return { n, text: `t${callNumber % 100}`, ...(n === 9 && { ok: false }), ...(n === 8 && { errors: 1 }) };
}

/** What happened outside of the journal. It survives a crash. */
class PlanWorldRecord {
  /** The calls in the order of their first performance. */
  readonly order: string[] = [];
  readonly violations: string[] = [];
  /** The calls whose results were durable at the crash. */
  readonly durable = new Set<string>();
  private readonly succeeded = new Set<string>();

  perform(input: Json, { callId, config, idempotencyKey }: ToolCallContext): Json {
    const callNumber = numberOf(`${callId} ${canonicalJson(input)}`);
    if (!this.order.includes(callId)) this.order.push(callId);
    if (this.durable.has(callId)) this.violations.push(`${callId} was performed again although its result was durable`);
    if (idempotencyKey === '') this.violations.push(`${callId} has no idempotency key`);
    if (isFailing(input, callNumber)) {
      const data = { retryable: callNumber % 5 !== 0 };
      throw new LoopError('TOOL_FAILED', `call ${callNumber % 1000} fails by design`, data);
    }
    if (config.safety === 'once' && this.succeeded.has(callId)) this.violations.push(`${callId} happened twice`);
    this.succeeded.add(callId);
    return outputOf(callNumber);
  }

  /** Returns the output of a call that happened; undefined if it did not. */
  happenedOutput(callId: string, input: Json): Json | undefined {
    return this.succeeded.has(callId) ? outputOf(numberOf(`${callId} ${canonicalJson(input)}`)) : undefined;
  }
}

/** The members of events that hold times, or depend on them. */
const TIMES = ['durationMs', 'totalDurationMs', 'delayMs', 'at', 'details', 'id', 'expiresAt'];

type TraceRecord = { readonly callId: string; readonly type: string; readonly payload?: object };

/** A finished run, as far as it must not depend on crashes. */
class PlanCourse {
  readonly status: string;
  readonly appendCount: number;
  private readonly parts: { readonly [name: string]: readonly string[] };

  constructor(
    result: TurnResult,
    entries: readonly Entry[],
    record: PlanWorldRecord,
    plan: RandomPlan,
    appends: number,
  ) {
    // The order of concurrent branches is not determined; their keys are.
    const isOrdered = !isConcurrent(plan);
    const ordered = (texts: readonly string[]): readonly string[] => (isOrdered ? texts : [...texts].sort());
    const races = entries.filter(({ type }) => type === 'race.won');
    const omitted = isOrdered ? TIMES : [...TIMES, 'stepIndex'];
    this.status = result.status;
    this.appendCount = appends;
    this.parts = {
      violations: record.violations,
      result: [JSON.stringify(resultOf(result))],
      effects: ordered(record.order),
      trace: ordered(result.trace.flatMap((event) => traceText(event as TraceRecord, races, omitted))),
      entries: comparableEntries(entries, races),
    };
  }

  /** Returns the first difference; undefined if there is none. */
  differenceFrom(expected: PlanCourse): string | undefined {
    const { violations = [] } = this.parts;
    if (violations.length > 0) return violations.join('; ');
    for (const [name, texts] of Object.entries(this.parts)) {
      const wanted = expected.parts[name] ?? [];
      const index = texts.findIndex((text, at) => text !== wanted[at]);
      if (index !== -1 || texts.length !== wanted.length)
        return `${name} ${index}: ${texts[index] ?? `${texts.length} of`}\n expected ${wanted[Math.max(0, index)] ?? wanted.length}`;
    }
    return undefined;
  }
}

function resultOf(result: TurnResult): unknown {
  if (result.status === 'ok') return { status: 'ok', output: result.output };
  if (result.status === 'stopped') return { status: 'stopped', reason: result.reason };
  return result.status === 'error'
    ? { status: 'error', code: result.error.code, message: result.error.message }
    : { status: result.status };
}

/** Returns an event without its times, in a list; an empty list for one of a losing branch of a race. */
function traceText(event: TraceRecord, races: readonly Entry[], omitted: readonly string[]): string[] {
  const { callId, type, payload = {} } = event;
  // An attempt that is repeated after a crash.
  if (type === 'rondo.tool.invoked' || isInLosingBranch(callId, races)) return [];
  const compared = Object.entries(payload).filter(([name]) => !omitted.includes(name));
  return [JSON.stringify([callId, type, Object.fromEntries(compared)])];
}

function isInLosingBranch(key: string, races: readonly Entry[]): boolean {
  return races.some(
    ({ key: race, winnerIndex }) => key.startsWith(`${race}/`) && !`${key}/`.startsWith(`${race}/${winnerIndex}/`),
  );
}

/** What only a crash leaves in a journal. */
const CRASH_MARKS: ReadonlySet<string> = new Set(['effect.resolved', 'effect.repeated']);

/** Returns the entries of a turn without sequence numbers, times, random numbers and the marks of crashes. */
function comparableEntries(entries: readonly Entry[], races: readonly Entry[]): readonly string[] {
  const compared = entries.filter(
    ({ type, key }) =>
      key.includes('.k-') && !CRASH_MARKS.has(type) && !key.includes('~') && !isInLosingBranch(key, races),
  );
  return compared
    .filter(({ type }) => !/^(?:session\.|signal\.|host\.)/.test(type))
    .map((entry) => JSON.stringify(timelessEntry(entry)))
    .sort();
}

function timelessEntry({ seq: _seq, at: _at, value, error, ...rest }: Entry): object {
  const { type, key, name, safety, kind } = rest;
  const isTimed = /^(?:number\.drawn|time\.read|rondo\.retry|timer\.|wait\.|rondo\.approval\.)/.test(type);
  // The id of an approval depends on when it expires.
  const comparedName = name?.startsWith('approval ') === true ? 'approval' : name;
  return { type, key, name: comparedName, safety, kind, value: isTimed ? undefined : value, code: error?.code };
}

/** A store with one turn of a plan. */
export class PlanWorld {
  readonly inner = memoryStore();
  readonly record = new PlanWorldRecord();
  private readonly clock = new ManualClock(1_000_000);
  private readonly plan: RandomPlan;
  private hostCount = 0;
  private signalCount = 0;

  constructor(plan: RandomPlan) {
    this.plan = plan;
  }

  /** True if the definitions of a plan are accepted. */
  static isValid(plan: RandomPlan): boolean {
    try {
      new PlanWorld(plan).host(memoryStore());
      return true;
    } catch {
      return false;
    }
  }

  private host(store: Store): Host {
    this.hostCount += 1;
    const act = (input: Json, call: ToolCallContext): Json => this.record.perform(input, call);
    const implementation = builtinTools({ act });
    const implementations = new Map([[implementation.scheme, implementation]]);
    const registry = new Registry(implementations);
    for (const definition of definitionsOf(this.plan)) registry.add(definition);
    return new Host({ store, clock: this.clock, ids: seededIds(this.hostCount), registry, implementations });
  }

  /** Delivers the signals that the plan does not have to wait for. */
  async prepare(): Promise<void> {
    const host = this.host(this.inner);
    await host.run({ loop: 'pure', input: {}, sessionId: SESSION });
    this.record.order.length = 0;
    for (const name of new Set(JSON.stringify(this.plan).match(/early-\d+/g)))
      await host.signal({ sessionId: SESSION, name, id: name, payload: 'arrived' });
  }

  /** Runs the turn until it ends. */
  async drive(store: Store): Promise<TurnResult> {
    const host = this.host(store);
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const request = { loop: 'main', input: this.plan.input ?? {}, sessionId: SESSION, key: KEY };
      const result = await host.run(request, { timers: 'pause' });
      if (result.status !== 'paused') return result;
      await this.settle(host, result.turnId, result.pending);
    }
    throw new Error(`The plan does not end within ${MAX_ROUNDS} rounds.`);
  }

  /** Settles what a paused turn waits for. Time passes only if nothing else can continue it. */
  private async settle(host: Host, turnId: string, pending: readonly PendingItem[]): Promise<void> {
    let isSettled = false;
    for (const { kind, key, name = '', id = '', input = null } of pending) {
      if (kind === 'timer' || (kind === 'signal' && name.startsWith('late-'))) continue;
      isSettled = true;
      this.signalCount += 1;
      // A new id each time: after a crash, another branch may have received the signal that was meant for this one.
      if (kind === 'signal') await host.signal({ turnId, name, id: `signal ${this.signalCount}`, payload: 'arrived' });
      else if (kind === 'approval') await host.answer({ id, approved: numberOf(key) % 3 > 0, by: 'ada' });
      else await this.resolve(host, key, input);
    }
    const timers = pending.flatMap(({ until }) => (until === undefined ? [] : [Date.parse(until)]));
    if (!isSettled) await this.clock.advanceTo(Math.min(...timers));
  }

  private async resolve(host: Host, key: string, input: Json): Promise<void> {
    const callId = key.slice(0, key.lastIndexOf('/'));
    const output = this.record.happenedOutput(callId, input);
    if (output === undefined) await host.resolveEffect(key, 'retry', 'ada');
    else await host.resolveEffect(key, 'supply', 'ada', output);
  }

  async entries(): Promise<readonly Entry[]> {
    const all: Entry[] = [];
    for await (const entries of this.inner.journal.read(SESSION, 0)) all.push(...expandLeaves(entries));
    return all;
  }

  /** Notes which results are durable. */
  async noteDurable(): Promise<void> {
    for (const { type, key } of await this.entries())
      if (type === 'effect.returned') this.record.durable.add(key.slice(0, key.lastIndexOf('/')));
  }

  async course(result: TurnResult, appendCount: number): Promise<PlanCourse> {
    return new PlanCourse(result, await this.entries(), this.record, this.plan, appendCount);
  }
}

/** Runs a plan without a crash. */
export async function runIntact(plan: RandomPlan): Promise<PlanCourse> {
  const world = new PlanWorld(plan);
  await world.prepare();
  const store = crashingStore(world.inner);
  return world.course(await world.drive(store), store.appendCount);
}

/** Runs a plan until it crashes, and continues it in another host. */
export async function runCrashed(plan: RandomPlan, point: CrashPoint): Promise<PlanCourse> {
  const world = new PlanWorld(plan);
  await world.prepare();
  const store = crashingStore(world.inner, point);
  try {
    await world.drive(store);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
  }
  await new Promise((resolve) => setImmediate(resolve));
  await world.noteDurable();
  return world.course(await world.drive(world.inner), store.appendCount);
}
