// Output that cannot be written: full disks, closed descriptors and readers that exit. A verb that fails keeps its exit
// code. A verb that succeeds and loses its output on a full disk exits with code 70.

import { expect } from '../../support/store-attack.mjs';

const FIRST = '{PIPESTATUS[0]}';

/** Shell lines that run a verb, $V, with unwritable output. The exit code of the line is that of the verb. */
const sinks = {
  'full-out': '$V >/dev/full',
  'full-err': '$V 2>/dev/full',
  'full-both': '$V >/dev/full 2>&1',
  'closed-out': '$V >&-',
  'closed-err': '$V 2>&-',
  'closed-all': '$V <&- >&- 2>&-',
  'reader-gone': `$V | true; (exit $${FIRST})`,
  'reader-of-one-byte': `$V | head -c 1 >/dev/null; (exit $${FIRST})`,
  'reader-of-errors-gone': '$V 2> >(exec <&-; sleep 0.1)',
  'slow-reader': `$V 2>&1 | (sleep 1.5); (exit $${FIRST})`,
  'read-only': '$V 1</dev/null 2>&1',
  'no-file-size': '(ulimit -f 0; RONDO_STORE=memory: $V > out.txt 2> err.txt)',
  'no-signal-pipe': `(trap '' PIPE; $V | true; exit $${FIRST})`,
  terminal: 'script -qfec "$V" /dev/null >/dev/full 2>&1 </dev/null; $V >/dev/full 2>&1',
};

/** Verbs that fail or pause, and their exit codes. */
const failingVerbs = {
  fail: ['rondo run fail --input \'{"message": "no"}\'', 1],
  'fail-json': ['rondo run fail --input \'{"message": "no"}\' --json', 1],
  'fail-watch': ['rondo run fail --input \'{"message": "no"}\' --watch', 1],
  'fail-large': ['rondo run fail --input @large.json --json', 1],
  ask: ['rondo run ask --input {}', 2],
  'ask-json': ['rondo run ask --input @large.json --json', 2],
  'agent-asks': ['rondo run asker --input \'{"prompt": "go"}\' --watch', 2],
  nobody: ['rondo run nobody --json', 1],
  usage: ['rondo run echo --input [ --json', 64],
  show: ['rondo show nobody --json', 1],
};

/** Verbs that succeed and print to stdout. */
const printingVerbs = ['list', 'list --json', 'runs --json', 'status s --json', 'trace s --json', 'trace s'].concat([
  'show echo --json',
  'check --json',
  'approvals --json',
  'run echo --input {} --json',
  'run echo --input @large.json',
  'diff s s2 --json',
  'replay s --json',
  'trust --json',
]);

/** Writes the loops of the project. */
function prepare(fixture) {
  for (const [id, implementation, extra] of [
    ['echo', 'builtin:echo', {}],
    ['fail', 'builtin:fail', {}],
    ['ask', 'builtin:echo', { policy: { approval: 'ask' } }],
  ])
    fixture.toolLoop(id, implementation, undefined, extra);
  fixture.agent('asker', ['ask'], [{ toolCalls: [{ name: 'ask', args: {} }] }, { text: 'done' }], { mode: undefined });
  fixture.file('p/large.json', { message: 'm'.repeat(400_000) });
}

/** A failing verb keeps its exit code. */
async function checkExitCode(fixture, [verb, code], sink) {
  prepare(fixture);
  const line = sink.replaceAll('$V', verb).replace('script -qfec "rondo', 'script -qfec "$NODE $BIN');
  const { stdout, stderr } = await fixture.shell(`exec 3>code.txt\n${line}\necho "code=$?" >&3\ncat code.txt`);
  const actual = /code=(\d+)/.exec(stdout)?.[1];
  expect(actual === String(code), `exit code ${code}`, {
    actual,
    stdout: stdout.slice(0, 200),
    stderr: stderr.slice(0, 200),
  });
}

/** A verb that loses its output on a full disk reports the loss and exits with code 70. */
async function checkLostOutput(fixture, verb) {
  prepare(fixture);
  await fixture.cli(['run', 'echo', '--input', '{}', '--session', 's']);
  await fixture.cli(['run', 'echo', '--input', '{"a": 1}', '--session', 's2']);
  const written = await fixture.shell(`rondo ${verb} >/dev/null 2>&1; echo "code=$?"`);
  expect(written.stdout.includes('code=0'), 'exit code 0', written);
  const full = await fixture.shell(`rondo ${verb} 2>err.txt >/dev/full; echo "code=$?"; cat err.txt`);
  expect(full.stdout.includes('code=70'), 'exit code 70', full);
  expect(/could not be written/.test(full.stdout), 'a message about the lost output', full.stdout);
}

export function cases() {
  const list = [];
  for (const [verb, failing] of Object.entries(failingVerbs)) {
    for (const [name, sink] of Object.entries(sinks)) {
      if (name === 'terminal' && failing[0].includes("'")) continue;
      if (name === 'no-file-size' && verb === 'agent-asks') continue;
      list.push({ id: `output.code.${verb}.${name}`, run: (fixture) => checkExitCode(fixture, failing, sink) });
    }
  }
  for (const verb of printingVerbs)
    list.push({ id: `output.lost.${verb.replace(/\W+/g, '-')}`, run: (fixture) => checkLostOutput(fixture, verb) });
  return list;
}
