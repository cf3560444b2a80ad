// A customer wants money back, twice. Each time another process answers, after the one that asked has ended.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { tell } from '../run-example.mjs';

await tell('A support agent that asks before it pays', import.meta.url, async ({ rondo, loops, folder, holds }) => {
  process.env.LEDGER = join(folder, 'ledger.ndjson');
  const args = ['--loops', loops, '--trust', loops];
  /** @param {string} prompt */
  const say = (prompt) => rondo('run', 'support', ...args, '--session', 'ada', '--input', JSON.stringify({ prompt }));
  const pending = async () => JSON.parse((await rondo('approvals', '--json')).stdout);

  const asked = await say('My lamp of order 1017 came broken. I want my money back.');
  holds('it waits for a person: exit code 2, and no process is left', asked.code === 2);
  holds('nothing is paid yet', paid().length === 0);

  await rondo('approvals');
  const [first] = await pending();
  holds('another process sees the very call', JSON.stringify(first.arguments) === '{"order":"1017","amount":4000}');
  holds('and who makes it', first.path.join(' → ') === 'support → refund');
  const approved = await rondo('approve', first.id, '--as', 'bob', ...args);
  holds('approved, the turn goes on to its end', approved.code === 0);
  holds('the refund ran once', paid().join() === '1017 4000');
  const again = await rondo('approve', first.id, '--as', 'bob', ...args);
  holds('an answer counts once: the second is refused', again.code === 1 && again.stderr.includes('ANSWER_REFUSED'));
  holds('and pays nothing', paid().length === 1);

  const more = await say('Then pay the chair of order 1018 back too. I have changed my mind.');
  const [second] = await pending();
  holds('the next message waits too', more.code === 2 && second.arguments.order === '1018');
  const denied = await rondo('deny', second.id, '--as', 'bob', '--reason', 'older than 30 days', ...args);
  holds('denied, the turn goes on as well', denied.code === 0);
  holds('and nothing more is paid', paid().length === 1);

  await rondo('events', 'ada', '--text');
  const events = (await rondo('events', 'ada', '--json')).stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  /** @param {string} type */
  const of = (type) => events.filter((event) => event.type === type).map(({ content }) => content);
  const [greeting, receipt, regret] = of('assistant-message').map(({ text }) => text);
  holds('the customer is told of the money', greeting.startsWith('I am sorry') && receipt.includes('R-1'));
  holds('and, kindly, that there is no more', /^I am sorry: .* older than 30 days/.test(regret));
  const calls = of('tool-call').filter(({ toolName }) => toolName === 'refund');
  const answers = calls.map(({ approvalStatus }) => approvalStatus).join();
  holds('with what was approved and what was not', answers === 'approved,rejected');
  const [refusal] = of('tool-error');
  holds('the model was told that a person refused', refusal?.isUserRejection === true && refusal.toolName === 'refund');
});

/** What the ledger holds: an order and an amount for each line. */
function paid() {
  const file = process.env.LEDGER ?? '';
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
  return lines.map((line) => JSON.parse(line)).map(({ order, amount }) => `${order} ${amount}`);
}
