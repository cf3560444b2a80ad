/**
 * The conformance driver of Rondo: each runtime is a host on a store in memory, with the given model providers and
 * tools.
 */
import { memoryStore } from '../adapters/memory/index.js';
import { LoopError } from '../base/errors.js';
import { Host, type HostOptions } from '../host/host.js';
import type { ModelProvider } from '../loops/model.js';
import { Registry } from '../loops/registry.js';
import type { ToolImplementation } from '../loops/tool-implementation.js';
import type { Json } from '../protocol/json.js';
import type { PlanStep } from '../protocol/plan.js';
import type { LsemDriver, LsemProfile, LsemRuntime, PromptPiece, ToolBody } from './driver.js';
import { CALLER_BACKEND_ID, CodeComposite, callerProvider, codeCompositeLoop } from './rondo-bodies.js';

/** Dependencies of `rondoDriver`. The providers must include `mock`, the tool implementations `builtin:`. */
export type RondoDriverOptions = Pick<HostOptions, 'clock' | 'ids'> & {
  readonly providers: readonly ModelProvider[];
  readonly implementations: readonly ToolImplementation[];
};

/**
 * Returns the conformance driver of Rondo.
 *
 * @example
 * const driver = rondoDriver({ clock, ids, providers: [mockProvider()], implementations: [builtinTools()] });
 * const report = await checkConformance(driver);
 */
export function rondoDriver(options: RondoDriverOptions): LsemDriver {
  const bodies = new Map<string, ToolBody>();
  const implementations = new Map([...options.implementations, suiteTools(bodies)].map((item) => [item.scheme, item]));
  const providers = new Map(
    [...options.providers, failingProvider, callerProvider].map((provider) => [provider.id, provider]),
  );
  const { clock, ids } = options;
  const open = (): LsemRuntime => {
    // LSEM makes `backend` optional, and leaves the model of a prompt without one to the runtime: here it is `mock`.
    const registry = new Registry(implementations, {
      providerIds: [...providers.keys()],
      defaultModel: { id: 'mock' },
    });
    const host = new Host({ store: memoryStore(), clock, ids, registry, providers, implementations });
    return {
      register: (definition) =>
        void registry.add(definition instanceof CodeComposite ? codeCompositeLoop(definition, registry) : definition),
      definition: (id) => registry.find(id)?.definition,
      run: (loop, input, onEvent) => host.run({ loop, input }, onEvent === undefined ? {} : { onEvent }),
    };
  };
  return { name: 'Rondo', open, profile: profileOf(bodies) };
}

const planSteps = (loopIds: readonly string[]): readonly PlanStep[] => loopIds.map((loop) => ({ loop }));

const templateOf = (pieces: readonly PromptPiece[]): string =>
  pieces.map((piece) => (typeof piece === 'string' ? piece : `{{${piece.variable}}}`)).join('');

function profileOf(bodies: Map<string, ToolBody>): LsemProfile {
  return {
    prompt: (pieces) => ({ template: templateOf(pieces) }),
    systemPrompt: (pieces, systemPrompt) => ({ template: templateOf(pieces), systemPrompt }),
    code: (id, body) => new CodeComposite(id, body),
    agent: (id, tools) => ({
      ...{ id, name: id, version: '1.0.0', kind: 'composite', inputSchema: true, outputSchema: true },
      composite: { agent: { backend: { id: CALLER_BACKEND_ID }, tools } },
    }),
    plan: (id, loopIds) => ({
      ...{ id, name: id, version: '1.0.0', kind: 'composite', inputSchema: true, outputSchema: true },
      composite: {
        plan: { steps: [{ type: 'repeat', repeat: { steps: planSteps(loopIds), until: 'iteration == 1' } }] },
      },
    }),
    backend: {
      answering: { ref: { id: 'mock' }, id: 'mock', model: 'mock-1' },
      failing: { id: 'mute' },
      unknown: { id: 'unknown' },
    },
    tool: {
      echo: { implementation: 'builtin:echo' },
      failing: { implementation: 'builtin:fail' },
      unknown: { implementation: 'builtin:nothing' },
      custom(name, body) {
        bodies.set(name, body);
        return { implementation: `suite:${name}` };
      },
    },
    path: { input: '$.input', binding: (name) => `$.${name}` },
  };
}

/** Returns the tool implementation whose bodies are functions of the suite. */
function suiteTools(bodies: ReadonlyMap<string, ToolBody>): ToolImplementation {
  return {
    scheme: 'suite',
    approvalDescriber: () => undefined,
    targetResolver: () => undefined,
    unavailableReason: (name) => (bodies.has(name) ? undefined : `the suite has no tool "${name}"`),
    open: async (name) => {
      const body = bodies.get(name);
      if (body === undefined) throw new LoopError('TOOL_FAILED', `The suite has no tool "${name}".`);
      return (input, call) =>
        body(input, {
          log: (level, message) => call.log(level as 'info', message),
          emit: (type, payload) => call.emit(type, payload as Json),
        });
    },
  };
}

/** A provider that cannot open a model, so that every call of it fails. */
const failingProvider: ModelProvider = {
  id: 'mute',
  defaultModel: 'mute-1',
  open: async () => {
    throw new LoopError('BACKEND_FAILED', 'This backend never answers.', { retryable: false });
  },
};
