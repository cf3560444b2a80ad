// A host for tests: a store in memory, the mock and a scripted model, built-in tools, time and ids that follow from a seed.
import { memoryStore } from '../../src/adapters/memory/index.js';
import { mockBackend } from '../../src/adapters/models/index.js';
import { builtinTools } from '../../src/adapters/tools/index.js';
import { Host } from '../../src/host/host.js';
import { Registry } from '../../src/loops/registry.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { seededIds } from '../../src/testing/seeded-ids.js';
/** A host with these definitions registered. */
export function hostOf(definitions, staging = {}) {
    const { store = memoryStore(), tools = {}, backends = [], clock = new ManualClock(1_000_000), seed = 1 } = staging;
    const builtin = builtinTools(tools);
    const implementations = new Map([[builtin.scheme, builtin]]);
    const registry = new Registry(implementations);
    for (const definition of definitions)
        registry.add(definition);
    const known = new Map([mockBackend(), ...backends].map((backend) => [backend.id, backend]));
    const depth = staging.maxDepth === undefined ? {} : { maxDepth: staging.maxDepth };
    return new Host({ store, clock, ids: seededIds(seed), registry, backends: known, implementations, ...depth });
}
const ANYTHING = { name: 'a loop', version: '1.0.0', inputSchema: true, outputSchema: true };
export const tool = (id, implementation = 'builtin:echo', more = {}) => ({
    ...ANYTHING,
    id,
    kind: 'tool',
    tool: { implementation, safety: 'idempotent' },
    ...more,
});
export const prompt = (id, template, more = {}) => ({
    ...ANYTHING,
    id,
    kind: 'prompt',
    prompt: { template },
    ...more,
});
export const composite = (id, steps, more = {}) => ({
    ...ANYTHING,
    id,
    kind: 'composite',
    composite: { steps },
    ...more,
});
/** A backend that answers these texts, one after another, and keeps what it was asked. */
export function answering(texts, id = 'told') {
    const left = [...texts];
    const asked = [];
    return {
        id,
        defaultModel: `${id}-1`,
        asked,
        open: async () => ({
            specificationVersion: 'v3',
            provider: id,
            modelId: `${id}-1`,
            supportedUrls: {},
            doGenerate: () => Promise.reject(new Error('only streams')),
            doStream: async ({ prompt: messages }) => {
                asked.push({ prompt: JSON.stringify(messages) });
                const text = left.shift() ?? '';
                return { stream: new ReadableStream({ start: (out) => speak(out, text) }) };
            },
        }),
    };
}
function speak(out, text) {
    out.enqueue({ type: 'stream-start', warnings: [] });
    out.enqueue({ type: 'text-start', id: '0' });
    out.enqueue({ type: 'text-delta', id: '0', delta: text });
    out.enqueue({ type: 'text-end', id: '0' });
    const usage = { inputTokens: { total: 7 }, outputTokens: { total: 3 } };
    out.enqueue({ type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage });
    out.close();
}
/** The types of the events of one call, in order. */
export function typesOf(trace, callId) {
    return trace.filter((event) => event.callId === callId).map(({ type }) => type);
}
