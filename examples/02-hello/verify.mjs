// The smallest loop, run twice: with an input that fits, and with one that does not.

import { tell } from '../run-example.mjs';

await tell('Hello: one prompt, checked on both ends', import.meta.url, async ({ rondo, loops, holds }) => {
  const hello = ['run', 'hello', '--loops', loops];

  const greeted = await rondo(...hello, '--input', '{"name":"Ada"}');
  holds('it ends with exit code 0', greeted.code === 0);
  holds('the greeting is for Ada', /\bAda\b/.test(JSON.parse(greeted.stdout).greeting));

  const refused = await rondo(...hello, '--input', '{"nmae":"Ada"}');
  holds('a misspelt member is refused, with exit code 1', refused.code === 1);
  holds('the reason says what is wrong', /INPUT_VALIDATION_FAILED.*"name"/.test(refused.stderr));
  holds('and nothing is printed that could be taken for an answer', refused.stdout === '');
});
