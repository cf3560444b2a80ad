import { expect } from 'vitest';
import { errorCodes } from '../../src/base/errors.js';
import type { Host } from '../../src/host/host.js';
import type { Json } from '../../src/protocol/json.js';
import type { TurnResult } from '../../src/protocol/trace.js';
import { type Dice, diceOf, SEED, told, within } from '../support/approval-fixture.js';
import { hostOf, tool } from '../support/host-fixture.js';
import { agentDef } from '../support/scripted-agents.js';
import { verifies } from '../verifies.js';
import { type Hostile, hostile, hostileModel } from './hostility.js';

const REPLIES = 10_000;
const ROUNDS = 8;

const INPUT_SCHEMA = {
  type: 'object',
  properties: { n: { type: 'integer', minimum: 0, maximum: 10 } },
  required: ['n'],
  additionalProperties: false,
} as const;

function isFitting(input: Json): boolean {
  const fields = input as { readonly n?: unknown };
  const { n } = fields;
  return Object.keys(fields).join() === 'n' && Number.isInteger(n) && Number(n) >= 0 && Number(n) <= 10;
}

interface Arena {
  readonly host: Host;
  /** What was run: of the admitted tool its arguments, of the others their names. */
  readonly ran: { readonly safe: Json[]; readonly others: string[] };
  given: number;
}

/** An agent with one free tool and one that is asked about; `secret` is none of its tools. */
function arenaOf(dice: Dice): Arena {
  const ran = { safe: [] as Json[], others: [] as string[] };
  let left = ROUNDS;
  const next = (): Hostile | undefined => {
    left = left === 0 ? ROUNDS : left - 1;
    if (left === 0) return undefined;
    arena.given += 1;
    return hostile(dice);
  };
  const model = hostileModel(dice, next);
  const backend = { id: 'told', defaultModel: 'h', open: async () => model };
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
  const arena = { host: hostOf(definitions, { tools, backends: [backend] }), ran, given: 0 };
  return arena;
}

const STATUSES: readonly string[] = ['ok', 'error', 'stopped'];

/** Denies whatever is asked for, after the agent tried to approve it itself. */
async function driven({ host }: Arena, where: string, watching: object): Promise<TurnResult> {
  let result = await host.run({ loop: 'boss', input: { prompt: 'go' } }, watching);
  for (let pause = 0; result.status === 'paused' && pause < 50; pause++) {
    const waiting = await host.archive.approvals(result.sessionId);
    expect(
      waiting.every(({ tool: name, arguments: given }) => name === 'pay' && isFitting(given)),
      where,
    ).toBe(true);
    for (const { id } of waiting) {
      expect(await told(host, { id, approved: true, by: pause % 2 === 0 ? 'boss' : 'agent:boss' })).not.toBe('taken');
      await host.answer({ id, approved: false, by: 'ada' });
    }
    result = await host.resume(result.turnId, watching);
  }
  return result;
}

verifies(
  'agent.hostile',
  `a model that means harm hangs a turn, crashes it, or runs what it may not (${REPLIES} replies)`,
  async () => {
    const dice = diceOf(SEED);
    const arena = arenaOf(dice);
    const seen = new Set<string>();
    for (let turn = 0; arena.given < REPLIES; turn++) {
      const where = `RONDO_SEED=${SEED}, turn ${turn}, after ${arena.given} replies`;
      // Who is watched streams, who is not is asked for the whole: a model can do harm both ways.
      const watching = turn % 2 === 0 ? {} : { onDelta: () => {} };
      const result = await within(20_000, driven(arena, where, watching));
      if (result === 'it hangs') throw new Error(`${where}: it hangs`);
      expect(STATUSES, where).toContain(result.status);
      if (result.error !== undefined) {
        expect(Object.keys(errorCodes), `${where}: ${result.error.message}`).toContain(result.error.code);
        expect(result.error.code, `${where}: ${result.error.message}`).toMatch(/^(BACKEND_FAILED|VALUE_INVALID)$/);
      }
      seen.add(result.error?.code ?? result.status);
      expect(arena.ran.others, where).toEqual([]);
      expect(arena.ran.safe.splice(0).every(isFitting), where).toBe(true);
      const replay = await arena.host.replay(result.turnId);
      expect(replay.difference ?? 'none', where).toBe('none');
    }
    expect([...seen].sort()).toEqual(expect.arrayContaining(['BACKEND_FAILED', 'ok']));
    expect(Object.getOwnPropertyNames(Object.prototype)).not.toContain('n');
  },
  110_000,
);
