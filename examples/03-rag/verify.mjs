// A question goes through three loops: a model picks keywords, a tool finds notes, a model answers from them.

import { tell } from '../run-example.mjs';

const question = 'How often do I water tomatoes?';
const tree = [
  /^✓ rag-answer@1\.0\.0/,
  /^├─ ✓ extract-keywords@1\.0\.0 +garden\.script\.json 31→12 tok/,
  /^├─ ✓ retrieve-context@1\.0\.0/,
  /^│ +info +2 of 6 notes fit/,
  /^└─ ✓ synthesize-answer@1\.0\.0 +garden\.script\.json 148→29 tok/,
  /^4 calls · 179→41 tok/,
];

await tell('RAG: keywords, notes, answer', import.meta.url, async ({ rondo, loops, holds }) => {
  const untrusted = await rondo('check', '--loops', loops);
  holds('a tool that runs code is refused until its directory is trusted', untrusted.code === 1);
  holds('and the reason says how to trust it', untrusted.stdout.includes('--trust'));

  const input = JSON.stringify({ question });
  const args = ['--loops', loops, '--trust', loops, '--session', 'garden', '--watch'];
  const asked = await rondo('run', 'rag-answer', '--input', input, ...args);
  const { answer, sources } = JSON.parse(asked.stdout);
  holds('with trust it ends with exit code 0', asked.code === 0);
  holds('the answer comes from the notes', answer.startsWith('Every second evening'));
  holds('the notes that were used are named', sources.join() === 'tomatoes,seedlings');

  const traced = (await rondo('trace', 'garden')).stdout.split('\n');
  holds(
    'the journal tells the same story',
    tree.every((line, index) => line.test(traced[index] ?? '')),
  );
});
