// A host of the campaign of budgets: agents, prompts, groups and tools, with a model that writes as much as it may.

import { defineAgent, defineLoop } from 'rondo';
import { Host, Registry } from 'rondo/host';
import { ManualClock, seededIds } from 'rondo/testing';
import { PRICE } from './budget-sink.mjs';

const MODEL = 'hungry:hungry-1';

/**
 * The loops, whose tools report to a sink.
 * @param {(name: string) => (input: unknown, context: { idempotencyKey: string }) => Promise<string>} perform
 */
function loopsOf(perform) {
  const any = { input: true, output: true };
  const tool = (/** @type {string} */ id) =>
    defineLoop(/** @type {never} */ ({ id, ...any, safety: 'idempotent', tool: perform(id) }));
  const [act, look] = [tool('act'), tool('look')];
  const ask = defineLoop(/** @type {never} */ ({ id: 'ask', ...any, prompt: 'Say it.', model: MODEL }));
  const agentOf = (/** @type {string} */ id, /** @type {readonly unknown[]} */ tools) =>
    defineAgent(/** @type {never} */ ({ id, model: MODEL, tools, maxRounds: 8 }));
  const agent = agentOf('agent', [act, look]);
  const boss = agentOf('boss', [agent, act]);
  return [
    act,
    look,
    ask,
    agent,
    boss,
    group('act', [act]),
    group('ask-act', [ask, act]),
    group('agent-act', [agent, act]),
  ];
}

/**
 * Calls loops side by side, and ignores their errors.
 * @param {string} name @param {readonly unknown[]} loops
 */
function group(name, loops) {
  const run = async (/** @type {any} */ input, /** @type {any} */ scope) => {
    const { width = 3 } = input ?? {};
    try {
      const branches = Array.from(
        { length: width },
        (_, index) => (/** @type {any} */ branch) =>
          branch.call(loops[index % loops.length], { prompt: `${index}` }).catch(() => null),
      );
      await scope.all(branches);
      await scope.call(loops[0], { prompt: 'last' });
    } catch {
      // A body that ignores every error must not hide a stop.
    }
    return 'done';
  };
  return defineLoop(/** @type {never} */ ({ id: `group-${name}`, input: true, output: true, run }));
}

export const LOOPS = ['agent', 'boss', 'ask', 'act', 'group-act', 'group-ask-act', 'group-agent-act'];

/**
 * Creates a host. `random` decides what the model does.
 * @param {{ store: import('rondo/host').Store, sink: import('./budget-sink.mjs').BudgetSink,
 *   random: () => number, seed: number }} options
 */
export function budgetHost({ store, sink, random, seed }) {
  const perform = (/** @type {string} */ name) => async (/** @type {unknown} */ _input, /** @type {any} */ context) => {
    sink.effect(name, context.idempotencyKey);
    if (random() < 0.3) await new Promise((resolve) => setImmediate(resolve));
    if (random() < 0.1) throw new Error('It fails at random.');
    return 'done';
  };
  const registry = new Registry(new Map());
  for (const loop of loopsOf(perform)) registry.add(/** @type {never} */ (loop));
  const providers = new Map([['hungry', hungryProvider(sink, random)]]);
  return new Host(
    /** @type {never} */ ({
      ...{ store, registry, providers },
      ...{ clock: new ManualClock(1_000_000), ids: seededIds(seed), priceOf: () => PRICE },
    }),
  );
}

/**
 * A model that writes up to its limit, and reports its input and output in some of its replies.
 * @param {import('./budget-sink.mjs').BudgetSink} sink @param {() => number} random
 */
function hungryProvider(sink, random) {
  let calls = 0;
  const reply = (/** @type {any} */ request, /** @type {string} */ turn) => {
    calls += 1;
    const { maxOutputTokens = 60, prompt, tools = [] } = request;
    const input = Math.ceil(Buffer.byteLength(JSON.stringify(prompt)) * random() * 0.2);
    const names = tools.map((/** @type {any} */ one) => one.name);
    const toolCount = names.length === 0 || random() < 0.3 ? 0 : 1 + Math.floor(random() * 4);
    const isReported = random() < 0.7;
    // A reply that is not reported counts with its bytes, so it must not be longer than its limit.
    const words = isReported ? 1 + Math.floor(random() * 5) : 1;
    const output = isReported ? Math.max(1, Math.floor(random() * maxOutputTokens)) : 1;
    const isShort = words + toolCount * 3 > maxOutputTokens || (!isReported && toolCount > 0);
    const text = 'a '.repeat(isShort ? 1 : words).trim();
    const chosen = isShort
      ? []
      : Array.from({ length: toolCount }, (_, n) => [names[n % names.length], `call-${calls}-${n}`]);
    const used = Math.max(output, isShort ? 1 : words + chosen.length * 3);
    sink.modelCall(turn, input, Math.min(used, Math.max(1, maxOutputTokens)));
    return { text, chosen, input, output: isReported ? Math.min(used, maxOutputTokens) : undefined };
  };
  return {
    id: 'hungry',
    defaultModel: 'hungry-1',
    open: async (/** @type {unknown} */ _ref, /** @type {{ turnId: string }} */ { turnId }) => ({
      ...{ specificationVersion: 'v3', provider: 'hungry', modelId: 'hungry-1', supportedUrls: {} },
      doGenerate: async () => {
        throw new Error('The replies are streamed.');
      },
      doStream: async (/** @type {unknown} */ request) => {
        if (random() < 0.2) await new Promise((resolve) => setImmediate(resolve));
        return { stream: ReadableStream.from(partsOf(reply(request, turnId))) };
      },
    }),
  };
}

/** @param {{ text: string, chosen: readonly string[][], input: number, output: number | undefined }} reply */
function partsOf({ text, chosen, input, output }) {
  return [
    { type: 'stream-start', warnings: [] },
    { type: 'text-start', id: '0' },
    ...text.split(/(?<= )/).map((delta) => ({ type: 'text-delta', id: '0', delta })),
    { type: 'text-end', id: '0' },
    ...chosen.flatMap(([toolName, toolCallId]) => [
      { type: 'tool-call', toolCallId, toolName, input: JSON.stringify({ prompt: 'go' }) },
    ]),
    {
      type: 'finish',
      finishReason: { unified: chosen.length > 0 ? 'tool-calls' : 'stop', raw: '' },
      usage: { inputTokens: { total: output === undefined ? undefined : input }, outputTokens: { total: output } },
    },
  ];
}
