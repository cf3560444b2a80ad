// The cost of the kernel in memory, as ratios to plain functions in the same round.

import { callCases, flagsOf } from './cases.js';
import { measure, median, ratio } from './measure.js';
import { atMost, note, section } from './table.js';

const ROUNDS = 5;

/** Measures calls. */
export async function benchCalls(): Promise<void> {
  section('Calls, all entries written; each run in a new session, in memory by default');
  const names = Object.keys(callCases) as (keyof typeof callCases)[];
  const times = measure(names, ROUNDS, flagsOf);
  const bare = times['bare sequence'];
  const ten = times['sequence of 10'];
  atMost('10 in sequence, per step', ratio(ten, bare), 8, 'x bare');
  atMost('10,000 in sequence against 10, per step', ratio(times['sequence of 10,000'], ten), 1.3, 'x');
  atMost('depth 1,000 against 10, per level', ratio(times['depth 1,000'], times['depth 10']), 1.3, 'x');
  const waits = ratio(times['waits behind 10,000'], times['waits behind 100']);
  atMost('a wait behind 10,000 signals of another name against 100', waits, 1.3, 'x');
  const wide = 'x (the store keeps nothing)';
  atMost('10,000 side by side against 100, per child', ratio(times['width 10,000'], times['width 100']), 1.3, wide);
  const onDisk = ratio(times['width 10,000, SQLite'], times['width 100, SQLite']);
  atMost('10,000 side by side against 100, per child', onDisk, 1.3, 'x (SQLite, os)');
  const roomy = ratio(times['width 10,000, memory, roomy'], times['width 100, memory, roomy']);
  atMost('10,000 side by side against 100, per child', roomy, 1.3, 'x (memory, large young generation)');
  const inMemory = ratio(times['width 10,000, memory'], times['width 100, memory']);
  atMost('10,000 side by side against 100, per child', inMemory, 1.3, "x (memory, V8's default limits)");
  note(`a step: bare ${median(bare).toFixed(2)} us, ours ${median(ten).toFixed(2)} us`);
  note(`10 nested: ${ratio(times['depth 10'], times['bare depth']).toFixed(1)} x bare a level`);
  note(`100 side by side: ${ratio(times['width 100'], times['bare width']).toFixed(1)} x bare a child`);
  note(
    `10 in sequence, one store that keeps every session: ${ratio(times['sequence of 10, kept'], bare).toFixed(1)} x bare`,
  );
  note(`10 once effects in sequence, a barrier each: ${ratio(times['once effects'], bare).toFixed(1)} x bare`);
}
