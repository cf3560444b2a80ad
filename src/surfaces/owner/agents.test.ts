import { once } from 'node:events';
import { request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';
import { agentDef, type Scripted, told } from '../../../spec/turns/agents.js';
import { hostOf, tool } from '../../../spec/turns/stage.js';
import { verifies } from '../../../spec/verifies.js';
import type { Host } from '../../host/host.js';
import { LoopError } from '../../journal/errors.js';
import type { EventEnvelope } from '../../protocol/events.js';
import type { LiveDelta } from '../../protocol/live.js';
import { UsageError } from '../settings.js';
import { type Desk, hostDesk } from './desk.js';
import { type Listener, listen } from './listener.js';
import { remoteDesk } from './remote.js';
import type { Line } from './wire.js';

interface Stage {
  readonly host: Host;
  readonly near: Desk;
  readonly far: Desk;
  readonly listener: Listener;
  /** What the tool was given. */
  readonly paid: unknown[];
  /** Lets the tool go on that holds. */
  release(): void;
}

/** An agent that is asked about what it pays, and a desk that reaches it over the wire. */
async function stage(replies: readonly Scripted[]): Promise<Stage> {
  const paid: unknown[] = [];
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const host = hostOf(
    [
      agentDef('agent', { tools: ['pay', 'hold'], approvals: { pay: 'ask' } }),
      tool('pay', 'builtin:pay'),
      tool('hold', 'builtin:hold'),
    ],
    {
      backends: [told(replies)],
      tools: {
        pay: (input) => paid.push(input),
        hold: async () => {
          await released;
          return 'held';
        },
      },
    },
  );
  const near = hostDesk(host);
  const listener = await listen(near);
  onTestFinished(() => {
    release();
    return listener.close();
  });
  return { host, near, far: remoteDesk(listener.url, listener.token), listener, paid, release };
}

const PAY: readonly Scripted[] = [
  { reasoning: 'Hm. ', text: 'I pay now. ', calls: [['pay', { amount: 5 }]] },
  { text: 'It is paid.' },
];

verifies(
  'cli.owner',
  'an agent that is driven from afar is mute until it is done, or says something else',
  async () => {
    const { near, far, paid } = await stage(PAY);
    const envelopes = new Map<string, EventEnvelope>();
    const deltas: LiveDelta[] = [];
    const hearing = {
      onEnvelope: (envelope: EventEnvelope) => void envelopes.set(envelope.id, envelope),
      onDelta: (delta: LiveDelta) => void deltas.push(delta),
    };
    const request = { loop: 'agent', input: { prompt: 'pay' }, sessionId: 's', principal: 'ada', approvers: ['bob'] };
    const paused = await far.run(request, hearing);
    expect(paused).toMatchObject({ status: 'paused', pending: [{ kind: 'approval' }] });
    const said = (kind: string): string => deltas.flatMap((delta) => (delta.kind === kind ? delta.text : [])).join('');
    expect([said('text'), said('reasoning')]).toEqual(['I pay now. ', 'Hm. ']);
    const [approval] = await far.approvals();
    expect(await near.approvals('s')).toEqual([approval]);
    expect(approval).toMatchObject({ tool: 'pay', principal: 'ada', approvers: ['bob'], arguments: { amount: 5 } });
    const id = approval?.id ?? '';
    await expect(far.answer({ id, approved: true, by: 'eve' })).rejects.toThrow(LoopError);
    expect(await far.answer({ id, approved: true, by: 'bob', tool: 'pay' })).toEqual(approval);
    expect(await far.resume(paused.turnId, hearing)).toMatchObject({ status: 'ok', output: { text: 'It is paid.' } });
    expect(paid).toEqual([{ amount: 5 }]);
    const events = await far.events('s');
    expect(events).toEqual(await near.events('s'));
    // An answer changes how a call was told, whether or not anybody watched when it came.
    const told = ({ id, type }: EventEnvelope): unknown => ({ id, type });
    expect([...envelopes.values()].map(told)).toEqual(events.map(told));
  },
);

verifies('cli.owner', 'who did not ask for pieces and envelopes is sent them', async () => {
  const { listener } = await stage(PAY);
  const lines = async (args: object): Promise<readonly Line[]> => {
    const asking = request(`${listener.url}/call`, {
      method: 'POST',
      headers: { authorization: `Bearer ${listener.token}` },
    });
    asking.end(JSON.stringify({ verb: 'run', args: { loop: 'agent', input: { prompt: 'x' }, ...args } }));
    const [response] = await once(asking, 'response');
    let text = '';
    for await (const piece of response.setEncoding('utf8')) text += piece;
    return text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Line);
  };
  const kinds = (all: readonly Line[]): Set<string> => new Set(all.map((line) => Object.keys(line)[0] ?? ''));
  expect(kinds(await lines({ sessionId: 'a' }))).toEqual(new Set(['event', 'result']));
  expect(kinds(await lines({ sessionId: 'b', live: true }))).toEqual(new Set(['event', 'envelope', 'delta', 'result']));
});

verifies('cli.owner', 'something that is no answer, message or request gets to the host', async () => {
  const { listener, far, paid } = await stage(PAY);
  await far.run({ loop: 'agent', input: { prompt: 'pay' }, sessionId: 's' });
  const id = (await far.approvals())[0]?.id ?? '';
  const refused = async (verb: string, args: object): Promise<void> => {
    const asking = request(`${listener.url}/call`, {
      method: 'POST',
      headers: { authorization: `Bearer ${listener.token}` },
    });
    asking.end(JSON.stringify({ verb, args }));
    const [response] = await once(asking, 'response');
    let text = '';
    for await (const piece of response.setEncoding('utf8')) text += piece;
    expect(JSON.parse(text)).toMatchObject({ error: { family: 'usage' } });
  };
  await refused('answer', { id, by: 'ada' });
  await refused('answer', { id, by: 'ada', approved: 'true' });
  await refused('answer', { id, by: 'ada', approved: 1 });
  await refused('answer', { id: { toString: 'x' }, by: 'ada', approved: true });
  await refused('answer', { id, by: '', approved: true });
  await refused('answer', { id, by: 'ada', approved: true, reason: ['x'] });
  await refused('say', { sessionId: 's', text: 5 });
  await refused('say', { sessionId: 's', text: 'x', mode: 'shout' });
  await refused('run', { loop: 'agent', live: 'yes' });
  await refused('run', { loop: 'agent', approvers: 'bob' });
  await refused('run', { loop: 'agent', approvers: [1] });
  await refused('run', { loop: 'agent', principal: {} });
  await refused('events', {});
  await refused('approvals', { session: 1 });
  expect(paid).toEqual([]);
  await expect(far.say({ sessionId: 'none', text: 'x' })).rejects.toThrow(LoopError);
  await expect(far.answer({ id, approved: true, by: ' ' })).rejects.toThrow(UsageError);
});

verifies('cli.owner', 'a client that goes away takes the turn with it', async () => {
  const { near, listener, release } = await stage([{ calls: [['hold', {}]] }, { text: 'Done.' }]);
  const asking = request(`${listener.url}/call`, {
    method: 'POST',
    headers: { authorization: `Bearer ${listener.token}` },
  });
  asking.on('error', () => undefined);
  const args = { loop: 'agent', input: { prompt: 'x' }, sessionId: 's', live: true };
  asking.end(JSON.stringify({ verb: 'run', args }));
  const [response] = await once(asking, 'response');
  await once(response, 'data');
  asking.destroy();
  await setTimeout(50);
  expect(await near.turns('s')).toMatchObject([{ status: 'running' }]);
  await near.say({ sessionId: 's', text: 'And more?' });
  release();
  while ((await near.turns('s'))[0]?.status === 'running') await setTimeout(10);
  expect(await near.turns('s')).toMatchObject([{ status: 'ok' }]);
  const texts = (await near.events('s')).map(({ content }) => ('text' in content ? content.text : ''));
  expect(texts).toEqual(expect.arrayContaining(['And more?', 'Done.']));
});
