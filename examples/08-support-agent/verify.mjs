// Requests two refunds. After each request the process ends, and another one answers: it approves the first refund and
// denies the second.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runExample } from '../run-example.mjs';

await runExample('A support agent: approve refunds', import.meta.url, async ({ rondo, loops, folder, check }) => {
  process.env.LEDGER = join(folder, 'ledger.ndjson');
  const args = ['--loops', loops, '--trust', loops];
  /** @param {string} prompt */
  const sendPrompt = (prompt) =>
    rondo('run', 'support', ...args, '--session', 'ada', '--input', JSON.stringify({ prompt }));
  const pendingApprovals = async () => JSON.parse((await rondo('approvals', '--json')).stdout).approvals;

  const paused = await sendPrompt('My lamp of order 1017 came broken. I want my money back.');
  check('the turn is paused until a person answers: exit code 2', paused.code === 2);
  check('nothing is paid yet', refunds().length === 0);

  await rondo('approvals');
  const [first] = await pendingApprovals();
  check('another process sees the exact call', JSON.stringify(first.arguments) === '{"order":"1017","amount":4000}');
  check('the approval shows the path of the call', first.path.join(' → ') === 'support → refund');
  const approved = await rondo('approve', first.id, '--as', 'bob', ...args);
  check('an approval continues the turn to its end', approved.code === 0);
  check('the refund is paid once', refunds().join() === '1017 4000');
  const repeated = await rondo('approve', first.id, '--as', 'bob', ...args);
  check('a second answer is refused', repeated.code === 1 && repeated.stderr.includes('ANSWER_REFUSED'));
  check('a refused answer pays nothing', refunds().length === 1);

  const nextTurn = await sendPrompt('Then pay the chair of order 1018 back too. I have changed my mind.');
  const [second] = await pendingApprovals();
  check('the next refund needs an approval too', nextTurn.code === 2 && second.arguments.order === '1018');
  const denied = await rondo('deny', second.id, '--as', 'bob', '--reason', 'older than 30 days', ...args);
  check('a denial continues the turn', denied.code === 0);
  check('a denied refund is not paid', refunds().length === 1);

  await rondo('events', 'ada', '--text');
  const events = (await rondo('events', 'ada', '--json')).stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  /** @param {string} type */
  const contentsOf = (type) => events.filter((event) => event.type === type).map(({ content }) => content);
  const [greeting, receipt, regret] = contentsOf('assistant-message').map(({ text }) => text);
  check('the customer receives the receipt', greeting.startsWith('I am sorry') && receipt.includes('R-1'));
  check('the customer receives the reason of the denial', /^I am sorry: .* older than 30 days/.test(regret));
  const calls = contentsOf('tool-call').filter(({ toolName }) => toolName === 'refund');
  const answers = calls.map(({ approvalStatus }) => approvalStatus).join();
  check('the events contain both answers', answers === 'approved,rejected');
  const [refusal] = contentsOf('tool-error');
  check(
    'the model receives the denial of the person',
    refusal?.isUserRejection === true && refusal.toolName === 'refund',
  );
});

/** Returns the order and the amount of each line in the ledger. */
function refunds() {
  const file = process.env.LEDGER ?? '';
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
  return lines.map((line) => JSON.parse(line)).map(({ order, amount }) => `${order} ${amount}`);
}
