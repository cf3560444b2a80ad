/** A model call without a timeout in its policy ends after ten minutes, whatever the model does. */
import { expect } from 'vitest';
import { hostOf, prompt } from '../../../spec/support/host-fixture.js';
import { ticks, within } from '../../../spec/support/kernel-probe.js';
import { agentDef } from '../../../spec/support/scripted-agents.js';
import { errorOf } from '../../../spec/support/turn-results.js';
import { verifies } from '../../../spec/verifies.js';
import type { ModelCallOptions, ModelStreamPart } from '../../protocol/model.js';
import { ManualClock } from '../../testing/manual-clock.js';
import type { ModelProvider } from '../model.js';

const DEFAULT_MS = 600_000;

/** A provider whose models ignore their abort signal; `stream` is what they return, or never returns. */
function silentProvider(stream: () => Promise<unknown>, open?: () => Promise<never>) {
  const calls: ModelCallOptions[] = [];
  const start = (call: ModelCallOptions): Promise<never> => {
    calls.push(call);
    void call.abortSignal;
    return stream() as Promise<never>;
  };
  const model = { specificationVersion: 'v3', provider: 'replies', modelId: 'r', supportedUrls: {} } as const;
  const opened = async () => ({ ...model, doGenerate: start, doStream: start });
  const provider: ModelProvider = { id: 'replies', defaultModel: 'r', open: open ?? opened };
  return { provider, calls };
}

const never = (): Promise<never> => new Promise(() => {});
const silentStream = async () => ({ stream: new ReadableStream({ pull: () => never() }) });
const endlessStream = async () => ({
  stream: new ReadableStream<ModelStreamPart>({
    pull: async (controller) => {
      await ticks(1);
      controller.enqueue({ type: 'raw', rawValue: 1 } as never);
    },
  }),
});

/** Starts a turn and returns its result once `ms` have passed. */
async function runFor(ms: number, provider: ModelProvider, policy?: object) {
  const clock = new ManualClock(1000);
  const more = { backend: { id: 'replies' }, ...(policy && { policy }) };
  const host = hostOf([prompt('ask', 'Say it.', more), agentDef('agent', {}, policy && { policy })], {
    clock,
    providers: [provider],
  });
  const results = ['ask', 'agent'].map((loop) => host.run({ loop, input: { prompt: 'go' } }));
  await ticks(20);
  await clock.advance(ms);
  await ticks(20);
  return { results, clock };
}

verifies('grant.interrupt', 'a model that never replies fails with TIMEOUT after ten minutes', async () => {
  for (const stream of [never, silentStream, endlessStream]) {
    const { provider, calls } = silentProvider(stream);
    const { results, clock } = await runFor(DEFAULT_MS - 1, provider);
    expect(calls.map(({ abortSignal }) => abortSignal?.aborted)).toEqual([false, false]);
    await clock.advance(1);
    for (const result of await within(2000, Promise.all(results)))
      expect(errorOf(result)).toMatchObject({ code: 'TIMEOUT', details: { timeoutMs: DEFAULT_MS, retryable: true } });
    expect(calls.map(({ abortSignal }) => abortSignal?.reason)).toMatchObject([
      { code: 'TIMEOUT' },
      { code: 'TIMEOUT' },
    ]);
    expect(clock.nextWakeAt, 'a timer was left behind').toBeUndefined();
  }
});

verifies('grant.interrupt', 'a provider that never opens its model fails after ten minutes', async () => {
  const { provider } = silentProvider(never, never);
  const { results } = await runFor(DEFAULT_MS, provider);
  for (const result of await within(2000, Promise.all(results)))
    expect(errorOf(result)).toMatchObject({ code: 'BACKEND_FAILED' });
});

verifies('grant.interrupt', 'timeoutMs of a policy replaces the default, also with a longer time', async () => {
  const policy = { timeoutMs: 2 * DEFAULT_MS };
  const { results, clock } = await runFor(2 * DEFAULT_MS - 1, silentProvider(never).provider, policy);
  await expect(within(50, Promise.race(results))).rejects.toThrow('HANG');
  await clock.advance(1);
  for (const result of await within(2000, Promise.all(results)))
    expect(errorOf(result)).toMatchObject({ code: 'TIMEOUT', details: policy });
});
