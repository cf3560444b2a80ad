// A host of the campaign of budgets: agents, prompts, groups and tools, with a model that writes as much as it may.

import { createHash } from 'node:crypto';
import { defineAgent, defineLoop } from 'rondo';
import { Host, Registry } from 'rondo/host';
import { PRICE } from './budget-sink.mjs';

const MODEL = 'hungry:hungry-1';

/**
 * Receives what a host performs. Each call is answered when the effect or the model call may go on.
 * @typedef {object} Recorder
 * @property {(effect: { tool: string, key: string }) => Promise<void>} effect
 * @property {(call: { turn: string, request: string, input: number, output: number }) => Promise<void>} modelCall
 */

/**
 * The loops, whose tools report to a sink.
 * @param {(name: string) => (input: unknown, context: { idempotencyKey: string }) => Promise<string>} perform
 */
function loopsOf(perform) {
  const any = { input: true, output: true };
  const tool = (/** @type {string} */ id) =>
    defineLoop(/** @type {never} */ ({ id, ...any, safety: 'idempotent', tool: perform(id) }));
  const [act, look] = [tool('act'), tool('look')];
  const ask = defineLoop(/** @type {never} */ ({ id: 'ask', ...any, prompt: 'Say {{prompt}}.', model: MODEL }));
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
 * @param {{ store: import('rondo/host').Store, clock: unknown, ids: unknown, recorder: Recorder,
 *   random: () => number }} options
 */
export function budgetHost({ store, clock, ids, recorder, random }) {
  const perform = (/** @type {string} */ tool) => async (/** @type {unknown} */ _input, /** @type {any} */ context) => {
    await recorder.effect({ tool, key: context.idempotencyKey });
    if (random() < 0.1) throw new Error('It fails at random.');
    return 'done';
  };
  const registry = new Registry(new Map());
  for (const loop of loopsOf(perform)) registry.add(/** @type {never} */ (loop));
  const providers = new Map([['hungry', hungryProvider(recorder, random)]]);
  const parts = { store, registry, providers, clock, ids, priceOf: () => PRICE };
  return new Host(/** @type {never} */ (parts));
}

/**
 * A model that writes up to its limit, and reports its input and output in some of its replies. Each of its tool calls
 * has a prompt of its own, so that the requests of a turn differ, and a repeated one is equal.
 * @param {Recorder} recorder @param {() => number} random
 */
function hungryProvider(recorder, random) {
  const reply = async (/** @type {any} */ request, /** @type {string} */ turn) => {
    const { maxOutputTokens = 60, prompt, tools = [] } = request;
    const conversation = JSON.stringify(prompt);
    const digest = createHash('sha256').update(conversation).digest('hex').slice(0, 16);
    const input = Math.ceil(Buffer.byteLength(conversation) * random() * 0.2);
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
      : Array.from({ length: toolCount }, (_, n) => [names[n % names.length], `${digest}-${n}`]);
    const used = Math.max(output, isShort ? 1 : words + chosen.length * 3);
    const counted = Math.min(used, Math.max(1, maxOutputTokens));
    await recorder.modelCall({ turn, request: digest, input, output: counted });
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
        const parts = partsOf(await reply(request, turnId));
        return { stream: ReadableStream.from(parts) };
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
      { type: 'tool-call', toolCallId, toolName, input: JSON.stringify({ prompt: `go ${toolCallId}` }) },
    ]),
    {
      type: 'finish',
      finishReason: { unified: chosen.length > 0 ? 'tool-calls' : 'stop', raw: '' },
      usage: { inputTokens: { total: output === undefined ? undefined : input }, outputTokens: { total: output } },
    },
  ];
}
