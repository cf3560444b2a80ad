// Runs the smallest loop with a valid and with an invalid input.

import { runExample } from '../run-example.mjs';

await runExample('Hello: one prompt with two schemas', import.meta.url, async ({ rondo, loops, check }) => {
  const hello = ['run', 'hello', '--loops', loops];

  const valid = await rondo(...hello, '--input', '{"name":"Ada"}');
  check('the exit code is 0', valid.code === 0);
  check('the greeting is for Ada', /\bAda\b/.test(JSON.parse(valid.stdout).greeting));

  const invalid = await rondo(...hello, '--input', '{"nmae":"Ada"}');
  check('a misspelt member is refused, with exit code 1', invalid.code === 1);
  check('the message names the missing member', /INPUT_VALIDATION_FAILED.*"name"/.test(invalid.stderr));
  check('a refused input prints no output', invalid.stdout === '');
});
