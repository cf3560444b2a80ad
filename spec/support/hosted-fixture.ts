// Hosted loops for tests: a host with receipts on a manual clock, a loop that counts, and the steps of a worker.

import type { Host } from '../../src/host/host.js';
import type { HostOptions, LengthWitness } from '../../src/host/host-options.js';
import type { Store } from '../../src/journal/store.js';
import type { ModelProvider } from '../../src/loops/model.js';
import type { ToolFunction } from '../../src/loops/tool-implementation.js';
import type { PriceOf } from '../../src/policy/prices.js';
import type { HostedLoopDocument } from '../../src/protocol/hosted-loop.js';
import type { TurnResult } from '../../src/protocol/trace.js';
import type { ManualClock } from '../../src/testing/manual-clock.js';
import { HOST_CLASSES, type HostClasses, hostOf, tool } from './host-fixture.js';
import { testKeys } from './receipt-keys.js';

/** The time at which hosted loops of tests start: a Monday, midnight UTC. */
export const START = Date.UTC(2026, 0, 5);

interface HostedFixtureOptions {
  /** @default those of the library itself */
  readonly classes?: HostClasses;
  readonly store?: Store;
  readonly clock?: ManualClock;
  readonly tools?: { readonly [name: string]: ToolFunction };
  readonly providers?: readonly ModelProvider[];
  readonly definitions?: readonly unknown[];
  readonly seed?: number;
  readonly keys?: ReturnType<typeof testKeys>;
  readonly lengthWitness?: LengthWitness;
  readonly priceOf?: PriceOf;
  readonly trusts?: HostOptions['trusts'];
}

/** A host, and what runs its hosted loops. */
export interface HostedFixture {
  readonly host: Host;
  readonly clock: ManualClock;
  readonly store: Store;
  /** The inputs that the counting tool got, in order. */
  readonly inputs: unknown[];
  /** Does everything that is due, as a worker does, and returns the results. */
  work(): Promise<readonly TurnResult[]>;
  /** Does at most one step of a loop. */
  step(loop?: string): Promise<TurnResult | undefined>;
  start(document: HostedLoopDocument): Promise<void>;
  /** Returns another host on the same store and clock, as after a restart; `inputs` goes on. */
  restart(): HostedFixture;
}

/** Returns a host whose tool `count` returns `{ n }`: the number of its calls. */
export function hostedFixture(options: HostedFixtureOptions = {}, inputs: unknown[] = []): HostedFixture {
  const { classes = HOST_CLASSES, tools = {}, providers = [], definitions = [], keys = testKeys(), seed = 1 } = options;
  const { lengthWitness, priceOf, trusts, store = classes.memoryStore() } = options;
  const { clock = new classes.ManualClock(START) } = options;
  const count: ToolFunction = async (input) => ({ n: inputs.push(input) });
  const host = hostOf([tool('count', 'builtin:count'), ...definitions], {
    ...{ classes, store, clock, seed, providers, tools: { count, ...tools }, receiptKeys: keys },
    ...(lengthWitness !== undefined && { lengthWitness }),
    ...(priceOf !== undefined && { priceOf }),
    ...(trusts !== undefined && { trusts }),
  });
  const work = async (): Promise<readonly TurnResult[]> => {
    const results: TurnResult[] = [];
    const ignore = (): void => undefined;
    const reports = { onProblem: ignore, onStop: ignore, onPause: ignore };
    await host.work({ once: true, onResult: (result) => results.push(result), ...reports });
    return results;
  };
  return {
    ...{ host, clock, store, inputs, work },
    step: (loop = 'counter') => host.hosted.driveIfFree(loop, { timers: 0 }),
    start: async (document) => void (await host.hosted.start(document, { by: 'ada' })),
    restart: () => hostedFixture({ ...options, store, clock, seed: seed + 1 }, inputs),
  };
}

/** Returns the document of a hosted loop whose turns call the tool `count`. */
export function counter(more: Partial<HostedLoopDocument> = {}): HostedLoopDocument {
  return {
    id: 'counter',
    loop: 'count',
    input: { from: 0 },
    grant: { allowedTools: ['count'], limits: {} },
    stop: { maxTurns: 3 },
    ...more,
  };
}
