// A host for tests: an in-memory store, mock and scripted models, built-in tools, a manual clock and seeded ids.

import { memoryStore } from '../../src/adapters/memory/index.js';
import { mockProvider } from '../../src/adapters/models/index.js';
import { seededIds } from '../../src/adapters/system/seeded-ids.js';
import { builtinTools } from '../../src/adapters/tools/index.js';
import { Host } from '../../src/host/host.js';
import type { HostOptions, LengthWitness, ReceiptKeys } from '../../src/host/host-options.js';
import type { Clock } from '../../src/journal/clock.js';
import type { Store } from '../../src/journal/store.js';
import type { ModelProvider, ModelRequest } from '../../src/loops/model.js';
import { Registry } from '../../src/loops/registry.js';
import type { ToolFunction } from '../../src/loops/tool-implementation.js';
import type { PriceOf } from '../../src/policy/prices.js';
import type { LoopDef } from '../../src/protocol/loop.js';
import type { ModelCallOptions } from '../../src/protocol/model.js';
import type { TraceEvent } from '../../src/protocol/trace.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { partsOf, wholeOf } from './scripted-agents.js';

/** The classes that a host is made of: those of the library, or of a copy of it. */
export interface HostClasses {
  readonly Host: typeof Host;
  readonly Registry: typeof Registry;
  readonly memoryStore: typeof memoryStore;
  readonly ManualClock: typeof ManualClock;
  readonly seededIds: typeof seededIds;
}

/** The classes of the library itself. */
export const HOST_CLASSES: HostClasses = { Host, Registry, memoryStore, ManualClock, seededIds };

/** The options of a test host. */
interface HostFixtureOptions {
  /** @default those of the library itself */
  readonly classes?: HostClasses;
  readonly store?: Store;
  readonly tools?: { readonly [name: string]: ToolFunction };
  readonly providers?: readonly ModelProvider[];
  readonly clock?: Clock;
  readonly maxDepth?: number;
  readonly seed?: number;
  readonly build?: string;
  readonly priceOf?: PriceOf;
  readonly receiptKeys?: ReceiptKeys;
  readonly lengthWitness?: LengthWitness;
  readonly trusts?: HostOptions['trusts'];
}

/** Returns a host with these definitions registered. */
export function hostOf(definitions: readonly unknown[], options: HostFixtureOptions = {}): Host {
  const { classes = HOST_CLASSES, tools = {}, providers: added = [], seed = 1 } = options;
  const { store = classes.memoryStore(), clock = new classes.ManualClock(1_000_000) } = options;
  const builtin = builtinTools(tools);
  const implementations = new Map([[builtin.scheme, builtin]]);
  const registry = new classes.Registry(implementations);
  for (const definition of definitions) registry.add(definition);
  const providers = new Map([mockProvider(), ...added].map((provider) => [provider.id, provider]));
  const { maxDepth, build, priceOf, receiptKeys, lengthWitness, trusts } = options;
  const optional = {
    ...(maxDepth !== undefined && { maxDepth }),
    ...(build !== undefined && { build }),
    ...(priceOf !== undefined && { priceOf }),
    ...(receiptKeys !== undefined && { receiptKeys }),
    ...(lengthWitness !== undefined && { lengthWitness }),
    ...(trusts !== undefined && { trusts }),
  };
  const ids = classes.seededIds(seed);
  return new classes.Host({ store, clock, ids, registry, providers, implementations, ...optional });
}

type LoopDraft = Partial<LoopDef> & { readonly id: string };

const ANYTHING = { name: 'a loop', version: '1.0.0', inputSchema: true, outputSchema: true } as const;

/** The definition of a tool. */
export const tool = (id: string, implementation = 'builtin:echo', more: Partial<LoopDef> = {}): LoopDraft => ({
  ...ANYTHING,
  id,
  kind: 'tool',
  tool: { implementation, safety: 'idempotent' },
  ...more,
});

/** The definition of a prompt, answered by the mock model if `more` names no other. */
export const prompt = (id: string, template: string, more: Partial<LoopDef> = {}): LoopDraft => ({
  ...ANYTHING,
  id,
  kind: 'prompt',
  prompt: { template },
  backend: { id: 'mock' },
  ...more,
});

/** The definition of a composite. */
export const composite = (id: string, steps: readonly unknown[], more: object = {}): object => ({
  ...ANYTHING,
  id,
  kind: 'composite',
  composite: { steps },
  ...more,
});

/** The definition of a composite whose steps get its input, one after another. */
export const sequence = (id: string, ...steps: readonly string[]): object =>
  composite(
    id,
    steps.map((loopId) => ({ loopId, inputMapping: '$.input' })),
  );

/** Returns a provider that answers these texts, one after another, and records its requests in `requests`. */
export function textProvider(
  texts: readonly string[],
  id = 'replies',
): ModelProvider & { readonly requests: ModelRequest[] } {
  const remaining = [...texts];
  const requests: ModelRequest[] = [];
  const next = ({ prompt: messages }: ModelCallOptions): string => {
    requests.push({ prompt: JSON.stringify(messages) } as ModelRequest);
    return remaining.shift() ?? '';
  };
  return {
    id,
    defaultModel: `${id}-1`,
    requests,
    open: async () => ({
      specificationVersion: 'v3',
      provider: id,
      modelId: `${id}-1`,
      supportedUrls: {},
      doGenerate: async (call) => wholeOf(partsOf({ text: next(call) }, 0)),
      doStream: async (call) => {
        const text = next(call);
        return { stream: new ReadableStream({ start: (controller) => streamText(controller, text) }) };
      },
    }),
  };
}

function streamText(controller: ReadableStreamDefaultController, text: string): void {
  controller.enqueue({ type: 'stream-start', warnings: [] });
  controller.enqueue({ type: 'text-start', id: '0' });
  controller.enqueue({ type: 'text-delta', id: '0', delta: text });
  controller.enqueue({ type: 'text-end', id: '0' });
  const usage = { inputTokens: { total: 7 }, outputTokens: { total: 3 } };
  controller.enqueue({ type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage });
  controller.close();
}

/** Returns the types of the events of one call, in order. */
export function typesOf(trace: readonly TraceEvent[], callId: string): readonly string[] {
  return trace.filter((event) => event.callId === callId).map(({ type }) => type);
}
