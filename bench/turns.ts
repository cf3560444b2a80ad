/** Typed loops with their whole trace, beside plain async functions with a compiled validator. */
import { flagsOf, turnCases } from './cases.js';
import { measure, median, ratio } from './measure.js';
import { atMost, note, section } from './table.js';

const ROUNDS = 5;

export async function benchTurns(): Promise<void> {
  section('Typed loops, each turn on a host and a store of its own, all entries kept for its trace');
  const seen = measure(Object.keys(turnCases) as (keyof typeof turnCases)[], ROUNDS, flagsOf);
  const bare = seen['bare sequence'];
  const ten = seen['turn of 10'];
  const kept = seen['turn of 10, trace kept'];
  atMost('composite of 10 typed steps, trace read, per step', ratio(ten, bare), 12, 'x bare');
  atMost('the same in code, trace read, per step', ratio(seen['code of 10'], bare), 12, 'x bare');
  const long = ratio(seen['turn of 10,000, trace kept'], kept);
  atMost('composite of 10,000 against 10, per step', long, 1.3, 'x');
  const longInCode = ratio(seen['code of 10,000, trace kept'], seen['code of 10, trace kept']);
  atMost('the same in code', longInCode, 1.3, 'x');
  const deep = ratio(seen['depth 1,000, trace kept'], seen['depth 10, trace kept']);
  atMost('depth 1,000 against 10, per level', deep, 1.3, 'x');
  const wide = ratio(seen['width of 1,000'], seen['bare width of 1,000']);
  atMost('1,000 side by side, trace read, per child', wide, 15, 'x bare');
  // Microseconds for one of a thousand are milliseconds for all.
  atMost('registration of 1,000 definitions', median(seen['registration of 1,000']), 1000, 'ms');
  note(`a step: bare ${median(bare).toFixed(2)} us, ours ${median(ten).toFixed(2)} us`);
  note(`10 steps with the trace kept and not read: ${ratio(kept, bare).toFixed(1)} x bare`);
  note(`10,000 steps against 10, trace read: ${ratio(seen['turn of 10,000'], ten).toFixed(2)} x`);
  const deepRead = ratio(seen['depth 1,000, trace read'], seen['depth 10, trace read']);
  note(`depth 1,000 against 10, trace read: ${deepRead.toFixed(2)} x`);
  const roomy = ratio(seen['turn of 10,000, roomy'], seen['turn of 10, roomy']);
  note(`the same with room for the young, where the collector need not move 60,000 events: ${roomy.toFixed(2)} x`);
}
