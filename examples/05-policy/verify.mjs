// Runs a prompt whose first model fails, and checks the effects of its policy.

import { runExample } from '../run-example.mjs';

await runExample('Policy: a model that fails', import.meta.url, async ({ rondo, loops, check }) => {
  const reply = ['run', 'reply-twice', '--loops', loops, '--session', 'outage', '--input'];
  const input = JSON.stringify({ message: 'My lamp is broken, write to ada@example.com' });
  const { code, stdout } = await rondo(...reply, input);
  const { first, second } = JSON.parse(stdout);
  check('the first model fails, and the turn succeeds', code === 0);
  check('no address was sent', first.includes('an address') && !first.includes('ada'));
  check('the second reply equals the first', second === first);

  const tree = (await rondo('trace', 'outage')).stdout;
  check('the late answer times out, and the call is retried', /retry 1 after \d+ ms \(TIMEOUT\)/.test(tree));
  check('the fallback model is called', tree.includes('fell back to mock'));
  check('the second reply comes from the cache', tree.match(/from cache/g)?.length === 1);

  const events = (await rondo('trace', 'outage', '--json')).stdout.trim().split('\n');
  const types = events.map((event) => JSON.parse(event).type);
  const policyEvents = ['rondo.retry', 'rondo.backend.fallback'].filter((type) => types.includes(type));
  check('the JSON trace contains the retry and the fallback as events', policyEvents.length === 2);

  const refundMessage = JSON.stringify({ message: 'I was promised a refund of 20' });
  const refused = await rondo('run', 'reply', '--loops', loops, '--input', refundMessage);
  check('a reply that promises a refund is refused, with exit code 1', refused.code === 1);
  check('the message contains the reason of the filter', /CONTENT_REFUSED.*promised by people/.test(refused.stderr));
});
