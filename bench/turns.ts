// Typed loops with their complete trace, compared with plain async functions with a compiled validator.

import { flagsOf, turnCases } from './cases.js';
import { measure, median, ratio } from './measure.js';
import { atMost, note, section } from './table.js';

const ROUNDS = 5;

/** Measures turns. */
export async function benchTurns(): Promise<void> {
  section('Typed loops, each turn on a new host and store, all entries kept for its trace');
  const times = measure(Object.keys(turnCases) as (keyof typeof turnCases)[], ROUNDS, flagsOf);
  const bare = times['bare sequence'];
  const ten = times['turn of 10'];
  const unread = times['turn of 10, trace kept'];
  atMost('composite of 10 typed steps, trace read, per step', ratio(ten, bare), 12, 'x bare');
  atMost('the same in code, trace read, per step', ratio(times['code of 10'], bare), 12, 'x bare');
  const long = ratio(times['turn of 10,000, trace kept'], unread);
  atMost('composite of 10,000 against 10, per step', long, 1.3, 'x');
  const longInCode = ratio(times['code of 10,000, trace kept'], times['code of 10, trace kept']);
  atMost('the same in code', longInCode, 1.3, 'x');
  const deep = ratio(times['depth 1,000, trace kept'], times['depth 10, trace kept']);
  atMost('depth 1,000 against 10, per level', deep, 1.3, 'x');
  const wide = ratio(times['width of 1,000'], times['bare width of 1,000']);
  atMost('1,000 side by side, trace read, per child', wide, 15, 'x bare');
  // Microseconds per definition equal milliseconds per thousand.
  atMost('registration of 1,000 definitions', median(times['registration of 1,000']), 1000, 'ms');
  note(`a step: bare ${median(bare).toFixed(2)} us, ours ${median(ten).toFixed(2)} us`);
  note(`10 steps with the trace kept and not read: ${ratio(unread, bare).toFixed(1)} x bare`);
  note(`10,000 steps against 10, trace read: ${ratio(times['turn of 10,000'], ten).toFixed(2)} x`);
  const deepRead = ratio(times['depth 1,000, trace read'], times['depth 10, trace read']);
  note(`depth 1,000 against 10, trace read: ${deepRead.toFixed(2)} x`);
  const roomy = ratio(times['turn of 10,000, roomy'], times['turn of 10, roomy']);
  note(`the same with a large young generation, where V8 does not promote 60,000 events: ${roomy.toFixed(2)} x`);
}
