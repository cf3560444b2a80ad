/** A model that is silent does not hold a turn when its running time is used up or its grant expires. */
import { expect } from 'vitest';
import { hostOf, prompt } from '../../../spec/support/host-fixture.js';
import { ticks, within } from '../../../spec/support/kernel-probe.js';
import { agentDef, modelOf } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import type { ModelProvider } from '../../loops/model.js';
import type { Grant } from '../../protocol/grant.js';
import { ManualClock } from '../../testing/manual-clock.js';
import { Ledger } from './ledger.js';

const START = 1_000_000;
const never = (): Promise<never> => new Promise(() => {});

/** Runs a loop whose model is silent, and lets time pass. */
async function runSilent(loop: string, grant: Omit<Grant, 'allowedTools'>, ms: number, policy?: object) {
  const [clock, store] = [new ManualClock(START), memoryStore()];
  let isSilent = true;
  const signals: (AbortSignal | undefined)[] = [];
  const open: ModelProvider['open'] = async () => {
    const model = modelOf([{ text: 'finished' }]);
    const reply = model.doStream;
    const doStream: typeof reply = (call) => {
      signals.push(call.abortSignal);
      return isSilent ? never() : reply(call);
    };
    return {
      ...model,
      doStream,
      doGenerate: (call) => (isSilent ? (doStream(call) as Promise<never>) : model.doGenerate(call)),
    };
  };
  const more = { backend: { id: 'replies' }, ...(policy && { policy }) };
  const host = hostOf([prompt('ask', 'Say it.', more), agentDef('agent')], {
    ...{ clock, store, providers: [{ id: 'replies', defaultModel: 'r', open }] },
  });
  const document = { id: 'g', allowedTools: ['*'], ...grant };
  const running = host.run({ loop, input: { prompt: 'go' }, grant: document });
  await ticks(20);
  await clock.advance(ms - 1);
  await ticks(20);
  expect(signals.map((signal) => signal?.aborted)).toEqual([false]);
  await clock.advance(1);
  const resume = async (next: Grant) => {
    isSilent = false;
    return within(2000, host.resume((await running).turnId, { grant: next }));
  };
  const charged = async () => (await Ledger.open({ store, clock }, 'g', document)).budget.totals();
  return { result: await within(2000, running), resume, charged, signals, clock };
}

const EXPIRY = new Date(START + 500).toISOString();

verifies(
  'grant.interrupt',
  'a silent model is interrupted when the running time is used up, and called again later',
  async () => {
    for (const [loop, policy] of [['ask'], ['agent'], ['ask', { timeoutMs: 60_000 }]] as const) {
      const { result, resume, signals, charged, clock } = await runSilent(
        loop,
        { limits: { wallMs: 500 } },
        500,
        policy,
      );
      expect(result).toMatchObject({ status: 'stopped', reason: expect.stringMatching(/^wallMs/) });
      expect(signals[0]?.aborted, 'the model does not learn that it is interrupted').toBe(true);
      expect(await charged()).toMatchObject({ wallMs: 500, modelRounds: 1 });
      expect(clock.nextWakeAt === undefined || policy !== undefined, 'a timer was left behind').toBe(true);
      expect(await resume({ allowedTools: ['*'], limits: {} })).toMatchObject({ status: 'ok' });
    }
  },
);

verifies('grant.interrupt', 'a silent model is interrupted when the grant of its turn expires', async () => {
  for (const loop of ['ask', 'agent']) {
    const { result, resume } = await runSilent(loop, { limits: { outputTokens: 9 }, expiresAt: EXPIRY }, 500);
    expect(result).toMatchObject({ status: 'stopped', reason: expect.stringMatching(/^expired/) });
    expect(await resume({ allowedTools: ['*'], limits: {} })).toMatchObject({ status: 'ok' });
  }
});

verifies(
  'grant.interrupt',
  'a call that waits for the reservation of a silent one ends with the running time',
  async () => {
    const [clock, store] = [new ManualClock(START), memoryStore()];
    const open: ModelProvider['open'] = async () => ({ ...modelOf([]), doStream: never, doGenerate: never });
    const host = hostOf([prompt('ask', 'Say it.', { backend: { id: 'replies' } })], {
      ...{ clock, store, providers: [{ id: 'replies', defaultModel: 'r', open }] },
    });
    const grant = { id: 'g', allowedTools: ['*'], limits: { outputTokens: 5, wallMs: 800 } };
    const runs = [1, 2].map((n) => host.run({ loop: 'ask', input: {}, sessionId: `s${n}`, grant }));
    await ticks(20);
    for (let n = 0; n < 20; n++) await clock.advance(50);
    for (const result of await within(2000, Promise.all(runs))) expect(result).toMatchObject({ status: 'stopped' });
  },
);
