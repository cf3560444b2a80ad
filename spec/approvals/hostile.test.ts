import { expect } from 'vitest';
import { errorCodes } from '../../src/base/errors.js';
import type { Host } from '../../src/host/host.js';
import type { Json } from '../../src/protocol/json.js';
import type { TurnResult } from '../../src/protocol/trace.js';
import { answerOutcome, type RandomSource, randomFrom, SEED, within } from '../support/approval-fixture.js';
import { hostOf, tool } from '../support/host-fixture.js';
import { repetitions } from '../support/repetitions.js';
import { agentDef } from '../support/scripted-agents.js';
import { errorOf } from '../support/turn-results.js';
import { verifies } from '../verifies.js';
import { type HostileReply, hostileModel, hostileReply } from './hostility.js';

const REPLIES = repetitions(10_000);
const ROUNDS = 8;

const INPUT_SCHEMA = {
  type: 'object',
  properties: { n: { type: 'integer', minimum: 0, maximum: 10 } },
  required: ['n'],
  additionalProperties: false,
} as const;

function isValidInput(input: Json): boolean {
  const fields = input as { readonly n?: unknown };
  const { n } = fields;
  return Object.keys(fields).join() === 'n' && Number.isInteger(n) && Number(n) >= 0 && Number(n) <= 10;
}

interface HostileAgent {
  readonly host: Host;
  /** The tools that ran: the arguments of `safe`, and the names of the others. */
  readonly ran: { readonly safe: Json[]; readonly others: string[] };
  replyCount: number;
}

/** An agent with the tool `safe` and the tool `pay`, which requires an approval. `secret` is not one of its tools. */
function hostileAgent(random: RandomSource): HostileAgent {
  const ran = { safe: [] as Json[], others: [] as string[] };
  let remaining = ROUNDS;
  const next = (): HostileReply | undefined => {
    remaining = remaining === 0 ? ROUNDS : remaining - 1;
    if (remaining === 0) return undefined;
    agent.replyCount += 1;
    return hostileReply(random);
  };
  const model = hostileModel(random, next);
  const provider = { id: 'replies', defaultModel: 'h', open: async () => model };
  const policy = { retry: { attempts: 3, backoffMs: 0, jitter: 0 } };
  const more = { maxRounds: ROUNDS + 2, approvals: { pay: 'ask' } as const };
  const definitions = [
    agentDef('boss', { tools: ['safe', 'pay'], ...more }, { policy }),
    tool('safe', 'builtin:safe', { inputSchema: INPUT_SCHEMA }),
    tool('pay', 'builtin:pay', { inputSchema: INPUT_SCHEMA }),
    tool('secret', 'builtin:secret'),
  ];
  const tools = {
    safe: (input: Json) => ran.safe.push(input),
    pay: () => ran.others.push('pay'),
    secret: () => ran.others.push('secret'),
  };
  const agent = { host: hostOf(definitions, { tools, providers: [provider] }), ran, replyCount: 0 };
  return agent;
}

const STATUSES: readonly string[] = ['ok', 'error', 'stopped'];

/** Runs a turn to its end. Denies every approval after the agent tried to approve it itself. */
async function runToEnd({ host }: HostileAgent, where: string, options: object): Promise<TurnResult> {
  let result = await host.run({ loop: 'boss', input: { prompt: 'go' } }, options);
  for (let pause = 0; result.status === 'paused' && pause < 50; pause++) {
    const pending = await host.archive.approvals(result.sessionId);
    expect(
      pending.every(({ tool: name, arguments: input }) => name === 'pay' && isValidInput(input)),
      where,
    ).toBe(true);
    for (const { id } of pending) {
      expect(await answerOutcome(host, { id, approved: true, by: pause % 2 === 0 ? 'boss' : 'agent:boss' })).not.toBe(
        'accepted',
      );
      await host.answer({ id, approved: false, by: 'ada' });
    }
    result = await host.resume(result.turnId, options);
  }
  return result;
}

verifies(
  'agent.hostile',
  `a hostile model never hangs or crashes a turn, and never runs a tool without permission (${REPLIES} replies)`,
  async () => {
    const random = randomFrom(SEED);
    const agent = hostileAgent(random);
    const outcomes = new Set<string>();
    for (let turn = 0; agent.replyCount < REPLIES; turn++) {
      const where = `RONDO_SEED=${SEED}, turn ${turn}, after ${agent.replyCount} replies`;
      // With a subscriber the model streams; without one it generates. Both paths are attacked.
      const options = turn % 2 === 0 ? {} : { onDelta: () => {} };
      const result = await within(20_000, runToEnd(agent, where, options));
      if (result === 'timed out') throw new Error(`${where}: the turn hangs`);
      expect(STATUSES, where).toContain(result.status);
      const error = errorOf(result);
      if (error !== undefined) {
        expect(Object.keys(errorCodes), `${where}: ${error.message}`).toContain(error.code);
        expect(error.code, `${where}: ${error.message}`).toMatch(/^(BACKEND_FAILED|VALUE_INVALID)$/);
      }
      outcomes.add(error?.code ?? result.status);
      expect(agent.ran.others, where).toEqual([]);
      expect(agent.ran.safe.splice(0).every(isValidInput), where).toBe(true);
      const replay = await agent.host.replay(result.turnId);
      expect(replay.difference ?? 'none', where).toBe('none');
    }
    expect([...outcomes].sort()).toEqual(expect.arrayContaining(['BACKEND_FAILED', 'ok']));
    expect(Object.getOwnPropertyNames(Object.prototype)).not.toContain('n');
  },
  110_000,
);
