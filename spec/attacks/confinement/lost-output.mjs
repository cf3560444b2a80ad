// Output that cannot be written: full disks, closed descriptors and readers that go away. A verb that did not succeed keeps its
// exit code; one that succeeded and lost its output on a full disk does not end with 0.

import { expect } from '../../support/store-attack.mjs';

const FIRST = '{PIPESTATUS[0]}';

/** Where the output goes; $V is the verb, and the last line of the shell is the exit code of it. */
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

/** Verbs that do not succeed, and their codes. */
const failing = {
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

/** Verbs that succeed and answer on stdout. */
const answering = ['list', 'list --json', 'runs --json', 'status s --json', 'trace s --json', 'trace s'].concat([
  'show echo --json',
  'check --json',
  'approvals --json',
  'run echo --input {} --json',
  'run echo --input @large.json',
  'diff s s2 --json',
  'replay s --json',
  'trust --json',
]);

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

async function failed(fixture, [verb, code], sink) {
  prepare(fixture);
  const line = sink.replaceAll('$V', verb).replace('script -qfec "rondo', 'script -qfec "$NODE $BIN');
  const { stdout, stderr } = await fixture.shell(`exec 3>code.txt\n${line}\necho "code=$?" >&3\ncat code.txt`);
  const got = /code=(\d+)/.exec(stdout)?.[1];
  expect(got === String(code), `exit code ${code}`, {
    got,
    stdout: stdout.slice(0, 200),
    stderr: stderr.slice(0, 200),
  });
}

async function lost(fixture, verb) {
  prepare(fixture);
  await fixture.cli(['run', 'echo', '--input', '{}', '--session', 's']);
  await fixture.cli(['run', 'echo', '--input', '{"a": 1}', '--session', 's2']);
  const fine = await fixture.shell(`rondo ${verb} >/dev/null 2>&1; echo "code=$?"`);
  expect(fine.stdout.includes('code=0'), 'a verb that succeeds', fine);
  const full = await fixture.shell(`rondo ${verb} 2>err.txt >/dev/full; echo "code=$?"; cat err.txt`);
  expect(full.stdout.includes('code=70'), 'exit code 70', full);
  expect(/could not be written/.test(full.stdout), 'that it says so', full.stdout);
}

export function cases() {
  const all = [];
  for (const [verb, one] of Object.entries(failing)) {
    for (const [name, sink] of Object.entries(sinks)) {
      if (name === 'terminal' && one[0].includes("'")) continue;
      if (name === 'no-file-size' && verb === 'agent-asks') continue;
      all.push({ id: `output.code.${verb}.${name}`, run: (fixture) => failed(fixture, one, sink) });
    }
  }
  for (const verb of answering)
    all.push({ id: `output.lost.${verb.replace(/\W+/g, '-')}`, run: (fixture) => lost(fixture, verb) });
  return all;
}
