// A prompt whose first backend is out of order, and what its policy makes of that.

import { tell } from '../run-example.mjs';

await tell('Policy: a bad day for a backend', import.meta.url, async ({ rondo, loops, holds }) => {
  const reply = ['run', 'reply-twice', '--loops', loops, '--session', 'outage', '--input'];
  const input = JSON.stringify({ message: 'My lamp is broken, write to ada@example.com' });
  const { code, stdout } = await rondo(...reply, input);
  const { first, second } = JSON.parse(stdout);
  holds('the backend is out of order, and the turn is ok', code === 0);
  holds('no address was sent', first.includes('an address') && !first.includes('ada'));
  holds('the second reply is the first', second === first);

  const tree = (await rondo('trace', 'outage')).stdout;
  holds('the late answer was not waited for, but tried again', /retry 1 after \d+ ms \(TIMEOUT\)/.test(tree));
  holds('then another backend was asked', tree.includes('fell back to mock'));
  holds('once: the second reply is from the cache', tree.match(/from cache/g)?.length === 1);

  const events = (await rondo('trace', 'outage', '--json')).stdout.trim().split('\n');
  const types = events.map((event) => JSON.parse(event).type);
  const facts = ['rondo.retry', 'rondo.backend.fallback'].filter((type) => types.includes(type));
  holds('programs read the same facts as events', facts.length === 2);

  const promised = JSON.stringify({ message: 'I was promised a refund of 20' });
  const refused = await rondo('run', 'reply', '--loops', loops, '--input', promised);
  holds('a reply that may not go out is refused, with exit code 1', refused.code === 1);
  holds('and the reason says why, not what', /CONTENT_REFUSED.*promised by people/.test(refused.stderr));
});
