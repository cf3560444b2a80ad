// Each guard, and its broken twin: the check holds on the library as it is, and fails when the guard is taken out.

import { afterAll, beforeAll, expect } from 'vitest';
import type { RequirementId } from '../requirements.js';
import { verifies } from '../verifies.js';
import { type GuardCheck, kernelChecks } from './kernel-checks.js';
import { type Break, type Library, Workshop } from './library.js';
import { lifeChecks } from './life-checks.js';
import { storeChecks } from './store-checks.js';
import { valueChecks } from './value-checks.js';

interface Guard extends Break {
  readonly id: RequirementId;
  readonly disaster: string;
  readonly check: GuardCheck;
}

const checks = { ...kernelChecks, ...lifeChecks, ...valueChecks, ...storeChecks };

function guard(id: RequirementId, disaster: keyof typeof checks, file: string, from: string, to: string): Guard {
  return { id, disaster, file: file.includes('/') ? file : `kernel/${file}`, from, to, check: checks[disaster] };
}

const guards: readonly Guard[] = [
  guard(
    'kernel.ack',
    'a result is reported before it is durable',
    'session.ts',
    'await this.writer.durable();\n      if (this.recollection.due)',
    'if (this.recollection.due)',
  ),
  guard(
    'kernel.intent',
    'an external effect starts before its intent is durable',
    'effect.ts',
    "effect.safety !== 'pure'",
    'false',
  ),
  guard(
    'kernel.doubt',
    'a once effect is silently done again after a crash',
    'effect.ts',
    "if (seen.open.safety === 'once')",
    'if (false)',
  ),
  guard(
    'kernel.once',
    'a recorded result is computed again',
    'effect.ts',
    'if (seen.close !== undefined) return run.recall(seen.close);',
    '',
  ),
  guard('kernel.once', 'a finished run is run again', 'call.ts', 'if (seen?.close !== undefined) {', 'if (false) {'),
  guard(
    'kernel.doubt',
    'a keyed effect is repeated under another key',
    'effect.ts',
    '`${run.parts.standing.born}:${manner.identity}`',
    '`${run.parts.ids.id()}:${manner.identity}`',
  ),
  guard(
    'kernel.doubt',
    'two sessions of one name at different times share an idempotency key',
    'effect.ts',
    '`${run.parts.standing.born}:${manner.identity}`',
    '`${run.parts.session}:${manner.identity}`',
  ),
  guard(
    'kernel.replay',
    'code that asks for another step gets the recorded one',
    'run.ts',
    'if (!alike) return',
    'if (false) return',
  ),
  guard(
    'kernel.replay',
    'code that asks with another input gets the recorded answer',
    'run.ts',
    'if (!sameAs(value, asked.value))',
    'if (false)',
  ),
  guard(
    'kernel.replay',
    'a step taken out of the code goes unnoticed',
    'scope.ts',
    'if (untaken === undefined || this.life.reason !== undefined) return undefined;',
    'return undefined;',
  ),
  guard(
    'kernel.replay',
    'all becomes race and the replay goes on',
    'run.ts',
    'if (!alike) return',
    'if (false) return',
  ),
  guard('kernel.fault', 'a body swallows a fault and goes on', 'scope.ts', 'if (this.run.over) await stall();', ''),
  guard(
    'kernel.fault',
    'something is written after an append failed',
    'journal/writer.ts',
    'if (this.fault !== undefined) return;\n    const { session',
    'const { session',
  ),
  guard(
    'kernel.cancel',
    'a cancelled run takes up an effect in doubt',
    'effect.ts',
    '  life.check();\n  const landed',
    '  const landed',
  ),
  guard(
    'kernel.cancel',
    'a cancel is forgotten by a restart',
    'session.ts',
    'if (known?.cancelled !== undefined) attempt',
    'if (false) attempt',
  ),
  guard(
    'kernel.cancel',
    'an effect that ends after the cancel leaves no trace',
    'session.ts',
    'while (this.inFlight.size > 0',
    'while (false',
  ),
  guard(
    'kernel.race',
    'a replay takes another winner',
    'group.ts',
    '&& seen?.close !== undefined) return run.recall(seen.close);',
    '&& false) return;',
  ),
  guard('kernel.race', 'a branch that lost goes on', 'group.ts', 'else branch.end(lost, true);', ''),
  guard(
    'kernel.parallel',
    'which error is thrown depends on who was faster',
    'group.ts',
    'else if (index < first.index)',
    'else if (first.index === count)',
  ),
  guard(
    'kernel.parallel',
    'two steps of one scope run at once and their keys depend on speed',
    'scope.ts',
    'return this.busy ? this.refused() : this.take(work);',
    'return this.take(work);',
  ),
  guard(
    'kernel.parallel',
    'a body ends while one of its steps still runs',
    'scope.ts',
    "if (this.busy) throw this.tangled('the body ended');",
    '',
  ),
  guard(
    'kernel.timer',
    'a timer begins anew after a restart',
    'wait.ts',
    'seen?.open?.until ?? clock.now() + ms',
    'clock.now() + ms',
  ),
  guard('kernel.timer', 'a timer fires early', 'wait.ts', 'if (clock.now() < until) {', 'if (false) {'),
  guard(
    'kernel.signal',
    'a signal delivered twice is taken twice',
    'session.ts',
    'if (known !== undefined) return this.delivered',
    'if (false) return this.delivered',
  ),
  guard(
    'kernel.doubt',
    'a decision is taken for something that is not in doubt',
    'session.ts',
    'if (!this.doubts.some((doubt) => doubt.key === key))',
    'if (false)',
  ),
  guard(
    'kernel.value',
    'a value that is changed later changes what was journaled',
    'journal/writer.ts',
    'entry.value = snapshot(entry.value, entry.type, entry.key);',
    'snapshot(entry.value, entry.type, entry.key);',
  ),
  guard(
    'kernel.value',
    'a value that is not JSON is journaled as something else',
    'journal/value.ts',
    'if (!Number.isFinite(value))',
    'if (false)',
  ),
  guard(
    'kernel.value',
    'a value that is not JSON is journaled as something else',
    'journal/value.ts',
    'if (proto !== PLAIN && proto !== null && Object.getPrototypeOf(proto) !== null) {',
    'if (false) {',
  ),
  guard(
    'kernel.value',
    'a value that is not JSON is journaled as something else',
    'journal/value.ts',
    'if (depth >= DEPTH)',
    'if (false)',
  ),
  guard(
    'kernel.value',
    'a forbidden key reaches an object of ours',
    'journal/value.ts',
    "if (key === '__proto__')",
    'if (false)',
  ),
  guard(
    'kernel.depth',
    'endless recursion takes the process down',
    'call.ts',
    'if (depth > maxDepth) throw',
    'if (depth > 500) throw',
  ),
  guard(
    'kernel.blob',
    'a large value that was changed in the store is believed',
    'journal/fetch.ts',
    '&& digest(text) === blob',
    '',
  ),
  guard(
    'kernel.invariant',
    'an entry is written that breaks an invariant',
    'journal/writer.ts',
    'if (proposed && folds.ruled) folds.admit(entry);',
    '',
  ),
  guard(
    'kernel.version',
    'an entry of a newer program is misread',
    'journal/upcast.ts',
    'if (version > current) {',
    'if (false) {',
  ),
  guard(
    'kernel.snapshot',
    'an old session spends more on its snapshots than on its entries',
    'journal/recollection.ts',
    'this.every = Math.max(EVERY, weighed() / SHARE);',
    '',
  ),
  guard(
    'kernel.signal',
    'a signal that was given back is taken after the younger ones',
    'journal/inbox.ts',
    'list.splice(after + 1, 0, signal);',
    'list.push(signal);',
  ),
  guard(
    'kernel.snapshot',
    'a snapshot of another past is believed',
    'journal/recollection.ts',
    'if (tailOf(await reader.at(saved.next - 1)) !== saved.tail) return 0;',
    '',
  ),
  guard(
    'kernel.pressure',
    'a slow store makes the queue grow without end',
    'call.ts',
    'if (seen === undefined && run.writer.crowded) await run.ease(scope.life);',
    '',
  ),
  guard(
    'kernel.fence',
    'an overtaken writer goes on writing',
    'adapters/memory/index.ts',
    'stream.fence !== batch.fence || ',
    '',
  ),
  guard(
    'journal.cases',
    'a store in memory breaks its promise',
    'adapters/memory/index.ts',
    ' || stream.next !== batch.first',
    '',
  ),
  guard(
    'journal.cases',
    'a store in memory breaks its promise',
    'adapters/memory/index.ts',
    'this.streams.delete(session);',
    '',
  ),
  guard(
    'journal.cases',
    'a store in memory breaks its promise',
    'adapters/memory/index.ts',
    'stream.fence = this.claims;',
    'stream.fence = 1;',
  ),
  guard(
    'journal.cases',
    'a store in memory breaks its promise',
    'adapters/memory/index.ts',
    'batch.entries.slice(from - batch.first)',
    'batch.entries',
  ),
  guard(
    'kernel.fault',
    'a body that outlives its attempt writes its end',
    'run.ts',
    'push(life: Lifetime, entry: Fresh, weight?: number): Entry {\n    if (this.over) throw OVER;',
    'push(life: Lifetime, entry: Fresh, weight?: number): Entry {',
  ),
  guard(
    'kernel.fault',
    'an effect starts after the session was closed',
    'effect.ts',
    'if (run.over) return undefined;',
    '',
  ),
  guard(
    'kernel.signal',
    'a branch that lost keeps the signal it took',
    'journal/standing.ts',
    'if (!won) this.keep(signal);',
    '',
  ),
  guard(
    'kernel.once',
    'an effect still in flight is begun again by the next attempt',
    'effect.ts',
    'return flying && life.bound(flying);',
    'return undefined;',
  ),
  guard(
    'kernel.cancel',
    'a body that will not hear of its cancel spins for ever',
    'scope.ts',
    'if (this.refusals > PATIENCE) return this.run.attempt.giveUp();\n    try {',
    'try {',
  ),
  guard(
    'kernel.parallel',
    'a scope is used after its body ended',
    'scope.ts',
    "if (this.busy) throw this.tangled('the body ended');\n    // Whoever kept this scope meets the same refusal as a second step at once.\n    this.busy = true;",
    '',
  ),
  guard(
    'kernel.invariant',
    'what an invariant refused is allowed by a replay',
    'run.ts',
    "if (!(thrown instanceof LoopError) || thrown.code !== 'INVARIANT_VIOLATED') throw thrown;",
    'throw thrown;',
  ),
  guard(
    'kernel.value',
    'an effect is performed with other arguments than were journaled',
    'effect.ts',
    'await effect.perform(copy(manner.input) as Json, performance)',
    'await effect.perform(effect.input as Json, performance)',
  ),
  guard(
    'kernel.cancel',
    'a cancelled run starts another effect',
    'lifetime.ts',
    'if (this.reason !== undefined) throw this.reason;',
    '',
  ),
  guard(
    'kernel.cancel',
    'two effects at once are told to stop by one signal',
    'effect.ts',
    'this.life.idle.pop() ??',
    'this.life.idle[0] ??',
  ),
  guard(
    'kernel.cancel',
    'a signal that is used again does not hear of the cancel',
    'effect.ts',
    'if (this.borrowed !== undefined) this.life.idle.push(this.borrowed);',
    'this.borrowed?.release();\n    if (this.borrowed !== undefined) this.life.idle.push(this.borrowed);',
  ),
  guard(
    'sqlite.damage',
    'a record that was changed is read as if it were whole',
    'journal/record.ts',
    'if (link(prev, first, count, fence, body) !== record.hash)',
    'if (false)',
  ),
  guard(
    'kernel.ack',
    'something is acknowledged that was not synced, or a failed sync is tried again',
    'adapters/sqlite/commits.ts',
    'return () => resolve(value);',
    'resolve(value);\n        return () => {};',
  ),
  guard(
    'sqlite.failure',
    'something is acknowledged that was not synced, or a failed sync is tried again',
    'adapters/sqlite/commits.ts',
    "if (fault.code === 'SYNC_FAILED' || fault.code === 'STORE_DAMAGED') this.stop(fault);",
    '',
  ),
  guard(
    'sqlite.failure',
    'a statement that commits by itself and fails is taken for harmless',
    'adapters/sqlite/commits.ts',
    'let committing = alone;',
    'let committing = false;',
  ),
  guard(
    'sqlite.damage',
    'a session goes on after a last record that was changed',
    'adapters/sqlite/heads.ts',
    'if (flaw !== undefined) throw damagedAt(name, tail?.first ?? 0, flaw);',
    '',
  ),
  guard(
    'kernel.fence',
    'a writer whose claim is gone from the table writes once more',
    'adapters/sqlite/writes.ts',
    '? FROM sessions WHERE sid = ? AND fence = ?`',
    '? FROM sessions WHERE sid = ? AND ? > 0`',
  ),
  guard(
    'kernel.options',
    'an option with a slip in it switches a guard off',
    'session.ts',
    'if (OPTIONS.has(key)) continue;',
    'continue;',
  ),
];

let workshop: Workshop;
let whole: Library;

beforeAll(async () => {
  workshop = new Workshop();
  whole = await workshop.load();
});
afterAll(() => workshop.close());

/** A check that hangs has noticed too: the broken library never came to an end. */
function within<T>(ms: number, work: Promise<T>): Promise<T> {
  return Promise.race([work, new Promise<never>((_, reject) => setTimeout(reject, ms, new Error('no end')))]);
}

for (const { id, disaster, check, ...broken } of guards) {
  const named = broken.from.replaceAll(/\s+/g, ' ').slice(0, 60);
  verifies(id, `${disaster} (and that is noticed when this guard is broken: ${named})`, async () => {
    await within(20_000, check(whole));
    const twin = await workshop.load(broken);
    await expect(within(5_000, check(twin))).rejects.toThrow();
  });
}
