// A chat in a pseudo-terminal: typed keys, the screen, and the exit code.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { EventEnvelope, TurnStatus } from '../../src/protocol/index.js';
import { tool, until } from '../support/cli-project.js';
import { verifies } from '../verifies.js';
import { Agents, call } from './agents.js';
import { attacks } from './attacks.js';
import { hasScript, keys, Pty } from './pty.js';

const PROMPT = '› ';
/** The sequences that readline uses to draw its line. */
const DRAWING = new RegExp(`${String.fromCharCode(27)}\\[(?:\\d+G|0?J|\\d*[ABCD]|K)`, 'g');
const QUESTION = '? Approve? [y]es / [n]o / [l]ater › ';

verifies('cli.chat', 'a chat streams answers and requests an approval before a tool runs', async (context) => {
  context.skip(!hasScript, 'needs script');
  const script = [
    { reasoning: 'Money is due.', text: 'I pay what is due. ', chunks: 4, toolCalls: [call('pay', { amount: 5 })] },
    { text: 'All is paid now.', chunks: 5 },
  ];
  const project = new Agents().agent('payer', script, { tools: ['pay'], approvals: { pay: 'ask' } });
  const pty = new Pty(project, ['chat', 'payer', '--session', 's', '--as', 'ada']);
  await pty.waitFor('payer in session s');
  await pty.waitFor('rondo chat payer --session s');
  await pty.waitFor(PROMPT);
  pty.type('pay please');
  await pty.waitFor('│ Money is due.\n│ I pay what is due.\n● pay {"amount":5}\n');
  await pty.waitFor('  path      payer › pay');
  await pty.waitFor('│ {"amount":5}');
  await pty.waitFor('│ Run pay?');
  await pty.waitFor(QUESTION);
  pty.type('maybe');
  await pty.waitFor('Answer y, n or l.');
  await pty.waitFor(QUESTION);
  expect(project.paid).toEqual([]);
  pty.type('y');
  await pty.waitFor('✓ pay {"paid":5}\n│ All is paid now.\n');
  await pty.waitFor('ok after');
  await pty.waitFor(PROMPT);
  pty.press(keys.end);
  expect(await pty.ended).toBe(0);
  expect(pty.text).toContain('Come back with: rondo chat payer --session s');
  expect(pty.raw).toContain('\u001b[2mMoney is');
  expect(pty.raw).toContain('\u001b[36m│ \u001b[39m');
  expect(project.paid).toEqual(['5']);
  const events = await project.run(['events', 's', '--json']);
  const approved = events.stdout.split('\n').find((line) => line.includes('approvalStatus'));
  expect(JSON.parse(approved ?? '{}')).toMatchObject({ content: { approvalStatus: 'approved' } });
});

verifies('cli.chat', 'Ctrl-C stops a running turn, and the chat continues', async (context) => {
  context.skip(!hasScript, 'needs script');
  const project = new Agents().agent('slow', [{ text: 'At last.', delayMs: 60_000 }, { text: 'Quick.' }]);
  const pty = new Pty(project, ['chat', 'slow', '--session', 's']);
  await pty.waitFor(PROMPT);
  pty.type('take your time');
  await runningTurn(project);
  pty.press(keys.interrupt);
  await pty.waitFor('■ Stopped.');
  await pty.waitFor(PROMPT);
  const { turns } = await project.json<{ turns: TurnStatus[] }>(['status', 's']);
  expect(turns).toMatchObject([{ status: 'cancelled', error: { code: 'CANCELLED' } }]);
  pty.type('once more');
  await pty.waitFor('│ Quick.');
  await pty.waitFor(PROMPT);
  pty.press('half a message');
  await pty.waitFor('half a message');
  pty.press(keys.interrupt);
  await pty.waitFor(PROMPT);
  pty.press(keys.interrupt);
  expect(await pty.ended).toBe(0);
});

verifies('cli.chat', 'Ctrl-C works before the turn starts, and a second one ends the chat', async (context) => {
  context.skip(!hasScript, 'needs script');
  const project = new Agents().agent('slow', [{ text: 'At last.', delayMs: 60_000 }]);
  const pty = new Pty(project, ['chat', 'slow', '--session', 's']);
  await pty.waitFor(PROMPT);
  pty.press(`at once${keys.enter}${keys.interrupt}`);
  await pty.waitFor('■ Stopped.');
  await pty.waitFor(PROMPT);
  pty.press(`again${keys.enter}${keys.interrupt}${keys.interrupt}`);
  expect(await pty.ended).toBe(130);
  expect(pty.text).toContain('Interrupted');
});

/** Waits until a turn of the project runs. */
function runningTurn(project: Agents): Promise<unknown> {
  return until(async () => {
    const { runs = [] } = await project.json<{ runs?: TurnStatus[] }>(['runs', '--status', 'running']);
    return runs[0];
  });
}

verifies('cli.chat', 'a chat that is left during a turn can be resumed', async (context) => {
  context.skip(!hasScript, 'needs script');
  const project = new Agents().agent('slow', [{ toolCalls: [call('hold', { until: 'go' })] }, { text: 'Held.' }], {
    tools: ['hold'],
  });
  const pty = new Pty(project, ['chat', 'slow', '--session', 's']);
  await pty.waitFor(PROMPT);
  pty.type('hold on');
  await pty.waitFor('● hold');
  pty.press(keys.end);
  expect(await pty.ended).toBe(130);
  expect(pty.text).toMatch(/Interrupted\. Continue with: rondo resume s\./);
  project.release('go');
  const back = new Pty(project, ['chat', 'slow', '--session', 's']);
  await back.waitFor('› hold on\n● hold');
  await back.waitFor('/resume continues it');
  await back.waitFor(PROMPT);
  back.type('/resume');
  await back.waitFor('✓ hold {"held":"go"}\n│ Held.');
  await back.waitFor(PROMPT);
  back.type('/quit');
  expect(await back.ended).toBe(0);
});

verifies('cli.chat', 'input typed during a turn is delivered, and does not corrupt the output', async (context) => {
  context.skip(!hasScript, 'needs script');
  const script = [
    { text: 'Working.', toolCalls: [call('drip', { drops: 12, ms: 100 })] },
    { text: 'I heard you.', expect: ['use the blue one'] },
  ];
  const project = new Agents().agent('worker', script, { tools: ['drip'] });
  project.write('loops/drip.json', { ...tool('drip', 'echo'), tool: { implementation: 'module:drip.mjs#drip' } });
  project.write(
    'loops/drip.mjs',
    `export async function drip({ drops, ms }, call) {
      for (let drop = 0; drop < drops; drop++) {
        call.delta('drop ' + drop + (drop % 3 === 2 ? '\\n' : ' '));
        await new Promise((resolve) => setTimeout(resolve, ms));
      }
      return { drops };
    }`,
  );
  const pty = new Pty(project, ['chat', 'worker', '--session', 's']);
  await pty.waitFor(PROMPT);
  pty.type('go');
  await pty.waitFor('│ drop 0 drop 1');
  pty.press('use the ');
  await pty.waitFor('│ drop 6');
  pty.type('blue one');
  await pty.waitFor('✓ drip {"drops":12}\n│ I heard you.\n');
  await pty.waitFor(PROMPT);
  pty.type('/nonsense');
  await pty.waitFor('Unknown command /nonsense');
  pty.type('/session');
  await pty.waitFor('This is session s.');
  pty.type('/help');
  await pty.waitFor('Ctrl-C stops the running turn');
  pty.press(keys.end);
  expect(await pty.ended).toBe(0);
  const rows = pty.text.split('\n').filter((row) => row.includes('drop '));
  // Every row of output starts after its bar, even if the input line was redrawn.
  for (const row of rows) expect(row).toMatch(/(?:^|[GJ]) {2}│ drop \d/);
  const events = (await project.run(['events', 's', '--json'])).stdout.trimEnd().split('\n');
  const users = events.map((line) => JSON.parse(line) as EventEnvelope).filter(({ type }) => type === 'user-message');
  expect(users.map(({ content }) => content)).toEqual([{ text: 'go' }, { text: 'use the blue one' }]);
});

verifies('approval.depth', 'approvals three agents deep survive the death of their chat', async (context) => {
  context.skip(!hasScript, 'needs script');
  const project = new Agents().deep();
  const pty = new Pty(project, ['chat', 'top', '--session', 's']);
  await pty.waitFor(PROMPT);
  pty.type('go');
  await pty.waitFor('    │ I pay twice.\n    ● pay {"amount":1}\n    ● pay {"amount":2}\n');
  await pty.waitFor('  path      top › mid › low › pay');
  await pty.waitFor(QUESTION);
  const [first, second] = await until(async () => {
    const both = await project.approvals();
    return both.length === 2 ? both : undefined;
  });
  const { pid } = JSON.parse(project.read('.rondo/journal.db.owner')) as { pid: number };
  process.kill(pid, 'SIGKILL');
  await pty.ended;
  const no = await project.run(['deny', second?.id ?? '', '--reason', 'once is enough']);
  expect(no.code).toBe(0);
  expect(project.paid).toEqual([]);
  const back = new Pty(project, ['chat', 'top', '--session', 's']);
  await back.waitFor(`? Approval ${first?.id}`);
  await back.waitFor(QUESTION);
  back.type('yes');
  await back.waitFor('    ✓ pay {"paid":1}');
  await back.waitFor('│ All done.');
  await back.waitFor(PROMPT);
  back.press(keys.end);
  expect(await back.ended).toBe(0);
  expect(project.paid).toEqual(['1']);
});

verifies('cli.chat', 'an approval can be postponed, cancelled, or denied with a reason', async (context) => {
  context.skip(!hasScript, 'needs script');
  const script = [
    { toolCalls: [call('pay', { amount: 5 })] },
    { text: 'Then not.', expect: ['not today'] },
    { toolCalls: [call('pay', { amount: 6 })] },
    { toolCalls: [call('pay', { amount: 7 })] },
  ];
  const project = new Agents().agent('payer', script, { tools: ['pay'], approvals: { pay: 'ask' } });
  const pty = new Pty(project, ['chat', 'payer', '--session', 's']);
  await pty.waitFor(PROMPT);
  pty.type('pay');
  await pty.waitFor(QUESTION);
  pty.type('l');
  await pty.waitFor('The approval stays pending.');
  await pty.waitFor('paused after');
  await pty.waitFor(PROMPT);
  pty.type('/resume');
  await pty.waitFor(QUESTION);
  pty.type('n');
  await pty.waitFor('? Why not? (Enter: no reason) › ');
  pty.type('not today');
  await pty.waitFor('✗ pay was not approved');
  await pty.waitFor('│ Then not.');
  await pty.waitFor(PROMPT);
  pty.type('pay again');
  await pty.waitFor(QUESTION);
  pty.press(keys.interrupt);
  await pty.waitFor('■ Stopped.');
  await pty.waitFor(PROMPT);
  pty.type('and again');
  await pty.waitFor('│ {"amount":7}');
  await pty.waitFor(QUESTION);
  // The question appears while the turn still pauses; leaving earlier is an interruption.
  await until(async () => {
    const { turns } = await project.json<{ turns: TurnStatus[] }>(['status', 's']);
    return turns.some(({ status }) => status === 'paused');
  });
  await sleep(500);
  pty.press(keys.end);
  expect(await pty.ended).toBe(2);
  expect(pty.text).toMatch(/rondo approve s\.\w+:/);
  expect(project.paid).toEqual([]);
});

verifies('cli.chat', 'an approval is requested while another tool of the reply still runs', async (context) => {
  context.skip(!hasScript, 'needs script');
  const both = [call('pay', { amount: 5 }), call('hold', { until: 'go' })];
  const project = new Agents().agent('payer', [{ toolCalls: both }, { text: 'Both done.' }], {
    tools: ['pay', 'hold'],
    approvals: { pay: 'ask' },
  });
  const pty = new Pty(project, ['chat', 'payer', '--session', 's']);
  await pty.waitFor(PROMPT);
  pty.type('go');
  await pty.waitFor(QUESTION);
  pty.type('y');
  await pty.waitFor('✓ pay {"paid":5}');
  expect(pty.text).not.toContain('✓ hold');
  project.release('go');
  await pty.waitFor('✓ hold {"held":"go"}\n│ Both done.');
  await pty.waitFor(PROMPT);
  pty.press(keys.end);
  expect(await pty.ended).toBe(0);
  expect(project.paid).toEqual(['5']);
});

verifies(
  'cli.chat',
  'an approval that was answered elsewhere is refused in the chat, and the turn continues',
  async (context) => {
    context.skip(!hasScript, 'needs script');
    const project = new Agents().payer();
    const pty = new Pty(project, ['chat', 'payer', '--session', 's']);
    await pty.waitFor(PROMPT);
    pty.type('pay');
    await pty.waitFor(QUESTION);
    const id = (await project.approvals())[0]?.id ?? '';
    expect((await project.run(['approve', id, '--as', 'bob'])).code).toBe(0);
    expect(project.paid).toEqual(['5']);
    pty.type('n');
    await pty.waitFor('? Why not?');
    pty.type('');
    await pty.waitFor('ANSWER_REFUSED');
    await pty.waitFor('✓ pay {"paid":5}\n│ It is paid.');
    await pty.waitFor('ok after');
    await pty.waitFor(PROMPT);
    pty.press(keys.end);
    expect(await pty.ended).toBe(0);
    expect(project.paid).toEqual(['5']);
  },
);

verifies(
  'cli.owner',
  'a chat works while another process owns the store, and after that process dies',
  async (context) => {
    context.skip(!hasScript, 'needs script');
    const project = new Agents().payer();
    const owner = await project.startHeld('go');
    const pty = new Pty(project, ['chat', 'payer', '--session', 's']);
    await pty.waitFor(PROMPT);
    pty.type('pay');
    await pty.waitFor('│ I pay.\n● pay {"amount":5}');
    await pty.waitFor(QUESTION);
    pty.type('y');
    await pty.waitFor('✓ pay {"paid":5}\n│ It is paid.');
    await pty.waitFor(PROMPT);
    owner.child.kill('SIGKILL');
    await owner.ended;
    pty.press(keys.end);
    expect(await pty.ended).toBe(0);
    expect(project.paid).toEqual(['5']);
  },
);

verifies('approval.display', 'a model cannot control the terminal of a chat', async (context) => {
  context.skip(!hasScript, 'needs script');
  const hostile = attacks.filter((attack) => attack.length < 1000).join('');
  const script = [
    { reasoning: hostile, text: hostile, toolCalls: [call('pay', { amount: hostile })] },
    { text: `${hostile}The end.` },
  ];
  const project = new Agents().agent('payer', script, { tools: ['pay'], approvals: { pay: 'ask' } });
  const pty = new Pty(project, ['chat', 'payer', '--session', 's']);
  await pty.waitFor(PROMPT);
  pty.type('go');
  await pty.waitFor(`\n│ Run pay?\n`);
  await pty.waitFor('? Approve? [y]es / [n]o / [l]ater / [a]ll of it ›');
  pty.type('y');
  await pty.waitFor('The end.');
  await pty.waitFor('ok after');
  pty.press(keys.end);
  expect(await pty.ended).toBe(0);
  // Only the sequences of readline and Rondo's own styles may reach the terminal.
  const content = pty.text.replace(DRAWING, '').replaceAll('\r', '');
  expect(content).not.toMatch(/(?!\n)\p{C}/u);
  expect(content.split('\n').filter((line) => /^\? Approve\?/.test(line))).toHaveLength(1);
});

verifies('approval.hidden', 'a chat shows the end of long arguments, and all of them on request', async (context) => {
  context.skip(!hasScript, 'needs script');
  const amount = `${'a'.repeat(1500)}MIDDLE${'a'.repeat(1500)}; rm -rf /`;
  const script = [{ text: 'I pay.', toolCalls: [call('pay', { amount })] }, { text: 'Done.' }];
  const project = new Agents().agent('payer', script, { tools: ['pay'], approvals: { pay: 'ask' } });
  const pty = new Pty(project, ['chat', 'payer', '--session', 's']);
  await pty.waitFor(PROMPT);
  pty.type('go');
  await pty.waitFor('  hidden    … 1,029 of 3,029 characters are hidden here …');
  await pty.waitFor('; rm -rf /');
  expect(pty.text).not.toContain('MIDDLE');
  await pty.waitFor('? Approve? [y]es / [n]o / [l]ater / [a]ll of it ›');
  pty.type('a');
  await pty.waitFor('; rm -rf /');
  expect(pty.text.replaceAll(/\n│ /g, '')).toContain('MIDDLE');
  await pty.waitFor('? Approve? [y]es / [n]o / [l]ater / [a]ll of it ›');
  pty.type('n');
  await pty.waitFor('Why not?');
  pty.type('no');
  await pty.waitFor('Done.');
  pty.press(keys.end);
  expect(await pty.ended).toBe(0);
  const full = await project.run(['approvals', '--full', 's']);
  expect(full.code).toBe(64);
});
