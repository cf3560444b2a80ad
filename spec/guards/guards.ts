// The table of guards: where each one stands, how its twin is broken, and the check that must notice.

import { type GuardCheck, kernelChecks } from './kernel-checks.js';
import type { Break } from './library.js';

export interface Guard extends Break {
  readonly disaster: string;
  readonly check: GuardCheck;
}

function guard(disaster: keyof typeof kernelChecks, file: string, from: string, to: string): Guard {
  return { disaster, file: `kernel/${file}`, from, to, check: kernelChecks[disaster] };
}

export const guards: readonly Guard[] = [
  guard(
    'a result is reported before it is durable',
    'session.ts',
    'await this.writer.durable();\n      if (this.writer.next',
    'if (this.writer.next',
  ),
  guard(
    'an external effect starts before its intent is durable',
    'effect.ts',
    "if (safety !== 'pure' || run.writer.crowded) await",
    'if (run.writer.crowded) await',
  ),
  guard('a once effect is silently done again after a crash', 'effect.ts', "seen.open.safety !== 'once'", 'true'),
  guard(
    'a recorded result is computed again',
    'effect.ts',
    'if (seen?.close !== undefined) return run.recall(seen.close);',
    '',
  ),
  guard(
    'a finished run is run again',
    'call.ts',
    'if (seen.close !== undefined) return await run.recall(seen.close);',
    '',
  ),
  guard(
    'a keyed effect is repeated under another key',
    'run.ts',
    '`${this.parts.standing.born}:${key}`',
    '`${this.parts.ids.id()}:${key}`',
  ),
  guard(
    'two sessions of one name at different times share an idempotency key',
    'run.ts',
    '`${this.parts.standing.born}:${key}`',
    '`${this.parts.session}:${key}`',
  ),
  guard('code that asks for another step gets the recorded one', 'run.ts', 'if (!alike) return', 'if (false) return'),
  guard(
    'code that asks with another input gets the recorded answer',
    'run.ts',
    'if (!same(value, snapshot(asked.value, asked.type)))',
    'if (false)',
  ),
  guard(
    'a step taken out of the code goes unnoticed',
    'scope.ts',
    'if (untaken === undefined || this.site.life.reason !== undefined) return undefined;',
    'return undefined;',
  ),
  guard('all becomes race and the replay goes on', 'run.ts', 'if (!alike) return', 'if (false) return'),
  guard(
    'a body swallows a fault and goes on',
    'writer.ts',
    'if (this.fault !== undefined) await stall();',
    'if (this.fault !== undefined) throw this.fault;',
  ),
  guard(
    'something is written after an append failed',
    'session.ts',
    'if (this.writer.fault !== undefined) throw this.writer.fault;',
    '',
  ),
  guard('a cancelled run starts another effect', 'effect.ts', '  life.check();\n  if (seen?.open', '  if (seen?.open'),
  guard(
    'a cancel is forgotten by a restart',
    'session.ts',
    'if (known?.cancelled !== undefined) attempt',
    'if (false) attempt',
  ),
  guard(
    'an effect that ends after the cancel leaves no trace',
    'session.ts',
    'while (this.inFlight.size > 0',
    'while (false',
  ),
  guard(
    'a replay takes another winner',
    'group.ts',
    "if ((await openGroup(run, site, 'race', count)) && seen?.close !== undefined) return run.recall(seen.close);",
    "await openGroup(run, site, 'race', count);",
  ),
  guard('a branch that lost goes on', 'group.ts', 'else branch.end(lost, true);', ''),
  guard(
    'which error is thrown depends on who was faster',
    'group.ts',
    'else if (index < first.index)',
    'else if (first.index === count)',
  ),
  guard(
    'two steps of one scope run at once and their keys depend on speed',
    'scope.ts',
    "if (this.busy) throw this.tangled('another step was started');",
    '',
  ),
  guard(
    'a body ends while one of its steps still runs',
    'scope.ts',
    "if (this.busy) throw this.tangled('the body ended');",
    '',
  ),
  guard('a timer begins anew after a restart', 'wait.ts', 'seen?.open?.until ?? clock.now() + ms', 'clock.now() + ms'),
  guard('a timer fires early', 'wait.ts', 'if (clock.now() < until) {', 'if (false) {'),
  guard(
    'a signal delivered twice is taken twice',
    'session.ts',
    'if (known !== undefined) return this.delivered',
    'if (false) return this.delivered',
  ),
  guard(
    'a decision is taken for something that is not in doubt',
    'session.ts',
    'if (!this.doubts.some((doubt) => doubt.key === key))',
    'if (false)',
  ),
  guard('a value that is changed later changes what was journaled', 'writer.ts', 'entry.value = value;', ''),
  guard(
    'a value that is not JSON is journaled as something else',
    'value.ts',
    'Number.isFinite(value) ? value : refuse(path, `${value} is not a JSON number`)',
    'value',
  ),
  guard(
    'a value that is not JSON is journaled as something else',
    'value.ts',
    'if (proto !== null && Object.getPrototypeOf(proto) !== null) {',
    'if (false) {',
  ),
  guard('a value that is not JSON is journaled as something else', 'value.ts', 'if (depth >= DEPTH)', 'if (false)'),
  guard('a forbidden key reaches an object of ours', 'value.ts', "if (key === '__proto__')", 'if (false)'),
  guard(
    'endless recursion takes the process down',
    'call.ts',
    'if (depth > run.parts.maxDepth) throw',
    'if (depth > 500) throw',
  ),
  guard('a large value that was changed in the store is believed', 'run.ts', '&& digest(text) === entry.blob', ''),
  guard(
    'an entry is written that breaks an invariant',
    'writer.ts',
    'if (proposed && this.folds.ruled) this.folds.admit(entry);',
    '',
  ),
  guard('an entry of a newer program is misread', 'upcast.ts', 'if (version > current) {', 'if (false) {'),
  guard(
    'a snapshot of another past is believed',
    'session.ts',
    'tailOf(await this.entryAt(saved.next - 1)) !== saved.tail || ',
    '',
  ),
  guard(
    'a slow store makes the queue grow without end',
    'call.ts',
    'if (run.writer.crowded) await run.writer.barrier();',
    '',
  ),
];
