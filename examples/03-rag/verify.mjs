// Runs a composite of three loops: a model extracts keywords, a tool finds notes, a model answers from them.

import { runExample } from '../run-example.mjs';

const question = 'How often do I water tomatoes?';
const tree = [
  /^✓ rag-answer@1\.0\.0/,
  /^├─ ✓ extract-keywords@1\.0\.0 +garden\.script\.json 31→12 tok/,
  /^├─ ✓ retrieve-context@1\.0\.0/,
  /^│ +info +2 of 6 notes fit/,
  /^└─ ✓ synthesize-answer@1\.0\.0 +garden\.script\.json 148→29 tok/,
  /^4 calls · 179→41 tok/,
];

await runExample('RAG: keywords, notes, answer', import.meta.url, async ({ rondo, loops, check }) => {
  const untrusted = await rondo('check', '--loops', loops);
  check('a tool in code is refused until its directory is trusted', untrusted.code === 1);
  check('the message explains how to trust the directory', untrusted.stdout.includes('--trust'));

  const input = JSON.stringify({ question });
  const args = ['--loops', loops, '--trust', loops, '--session', 'garden', '--watch'];
  const answered = await rondo('run', 'rag-answer', '--input', input, ...args);
  const { answer, sources } = JSON.parse(answered.stdout);
  check('with a trusted directory, the exit code is 0', answered.code === 0);
  check('the answer comes from the notes', answer.startsWith('Every second evening'));
  check('the output lists the notes that were used', sources.join() === 'tomatoes,seedlings');

  const traceLines = (await rondo('trace', 'garden')).stdout.split('\n');
  check(
    'the trace shows the same calls',
    tree.every((line) => traceLines.some((traceLine) => line.test(traceLine))),
  );
});
