import { expect } from 'vitest';
import { verifies } from '../verifies.js';
import { ROUND_LOOPS, roundLoops } from './rounds.js';
import { isTest, readText, sources } from './tree.js';

const faultsOf = (text: string): readonly string[] => roundLoops({ file: 'src/loops/agent/agent.ts', text });

verifies('house.rounds', 'only the driver repeats the steps of a body', () => {
  const files = sources(['src/loops']).filter(({ file }) => !isTest(file));
  const faults = files.flatMap((file) => (ROUND_LOOPS[file.file] === undefined ? roundLoops(file) : []));
  expect(faults).toEqual([]);
});

verifies('house.rounds', 'every exception still has a loop that needs it', () => {
  for (const file of Object.keys(ROUND_LOOPS)) expect(roundLoops({ file, text: readText(file) }), file).not.toEqual([]);
});

verifies('house.rounds', 'a round loop in the agent is rejected', () => {
  const text = readText('src/loops/agent/agent.ts');
  expect(faultsOf(text)).toEqual([]);
  const added = `${text}\nasync function rounds(scope: Scope) { for (;;) { await scope.call(model, null); } }`;
  expect(faultsOf(added)).toHaveLength(1);
});

for (const text of [
  'while (!done) await scope.effect(effect);',
  'do { reply = await this.scope.call(loop, input); } while (reply.calls > 0);',
  'for (const tool of tools) await innerScope.call(tool, input);',
  'async function round(scope) { await scope.call(loop, 1); } for (let i = 0; i < 9; i++) await round(scope);',
  'const round = (scope) => scope.effect(e); const twice = (s) => round(s); while (true) await twice(scope);',
  'class A { turn() { return this.scope.call(l, 1); } all() { for (;;) this.turn(); } }',
  'for await (const part of parts) await runProgram(program, state, scope);',
]) {
  verifies('house.rounds', `this loop is rejected: ${text}`, () => {
    expect(faultsOf(text)).toHaveLength(1);
  });
}

for (const text of [
  'for (const name of names) list.push(name); await scope.call(loop, list);',
  'for (const fn of fns) fn.call(null, 1);',
  '// while (true) scope.call(loop);',
]) {
  verifies('house.rounds', `this is no round loop: ${text}`, () => {
    expect(faultsOf(text)).toEqual([]);
  });
}
