/** Sample definitions for the conformance checks: tools that return their input or fail, prompts, and composites. */
import type { CheckContext } from './check-context.js';
import type { RecordedRun } from './recorded-run.js';

/** A definition that a check registers. Its members are not typed, because checks also register invalid definitions. */
export interface SampleDefinition {
  readonly id: string;
  readonly [member: string]: unknown;
}

/** Accepts objects with a string `name`. */
export const NAMED_OBJECT_SCHEMA = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
} as const;

/** Accepts no value. */
export const NEVER_SCHEMA = { not: {} } as const;

/** Returns a definition without the given members. */
export function withoutMembers(definition: SampleDefinition, ...members: readonly string[]): object {
  return Object.fromEntries(Object.entries(definition).filter(([name]) => !members.includes(name)));
}

/** Returns a definition with these members. Its schemas accept everything if `members` has none. */
export function sampleLoop(id: string, kind: string, members: object): SampleDefinition {
  return { id, name: `Loop ${id}`, version: '1.0.0', inputSchema: {}, outputSchema: {}, kind, ...members };
}

/** Returns the definition of a tool that returns its input. */
export function echoLoop(context: CheckContext, id: string, members: object = {}): SampleDefinition {
  return sampleLoop(id, 'tool', { tool: context.profile.tool.echo, ...members });
}

/** Returns the definition of a tool that always fails. */
export function failingLoop(context: CheckContext, id: string, members: object = {}): SampleDefinition {
  return sampleLoop(id, 'tool', { tool: context.profile.tool.failing, ...members });
}

/** Returns the definition of a prompt. Its model always answers if `members` has no other backend. */
export function promptLoop(context: CheckContext, id: string, members: object = {}): SampleDefinition {
  const { profile } = context;
  return sampleLoop(id, 'prompt', {
    prompt: profile.prompt(['Say something.']),
    backend: profile.backend.answering.ref,
    ...members,
  });
}

/** A step of a composite: the loop to call, the input it gets, and the name under which its result is bound. */
export interface SampleStep {
  readonly loopId: string;
  readonly inputMapping: { readonly [member: string]: string };
  readonly outputBinding?: string;
}

/** Returns a step of a composite. */
export function sampleStep(
  loopId: string,
  inputMapping: SampleStep['inputMapping'] = {},
  outputBinding?: string,
): SampleStep {
  return outputBinding === undefined ? { loopId, inputMapping } : { loopId, inputMapping, outputBinding };
}

/** Returns the definition of a composite with these steps. */
export function compositeLoop(id: string, steps: readonly unknown[], members: object = {}): SampleDefinition {
  return sampleLoop(id, 'composite', { composite: { steps }, ...members });
}

/** Registers a loop of each kind with these members, and returns the three ids. The composite calls a fourth loop. */
export async function registerEachKind(context: CheckContext, members: object): Promise<readonly string[]> {
  await context.register(
    echoLoop(context, 'inner'),
    echoLoop(context, 'a-tool', members),
    promptLoop(context, 'a-prompt', members),
    compositeLoop('a-composite', [sampleStep('inner', { name: context.profile.path.input })], members),
  );
  return ['a-tool', 'a-prompt', 'a-composite'];
}

/** Registers the loops of `runSampleLoops`. */
async function registerSampleLoops(context: CheckContext): Promise<void> {
  const { profile } = context;
  const loggingTool = context.customTool((input, toolContext) => {
    toolContext.log('info', 'a line');
    toolContext.emit?.('suite.sample', { seen: true });
    return input;
  });
  await context.register(
    echoLoop(context, 'tool', { inputSchema: NAMED_OBJECT_SCHEMA }),
    echoLoop(context, 'strict', { outputSchema: NAMED_OBJECT_SCHEMA }),
    failingLoop(context, 'failing'),
    promptLoop(context, 'prompt'),
    promptLoop(context, 'failing-prompt', { backend: profile.backend.failing }),
    sampleLoop('logging', 'tool', { tool: loggingTool ?? profile.tool.echo }),
    compositeLoop('pair', [sampleStep('tool', { name: `${profile.path.input}.name` }), sampleStep('prompt')]),
    compositeLoop('nest', [sampleStep('pair', { name: `${profile.path.input}.name` }), sampleStep('logging')]),
    compositeLoop('broken', [sampleStep('prompt'), sampleStep('failing'), sampleStep('prompt')]),
  );
}

/**
 * Runs sample loops that succeed or fail in every way that needs no policy: invalid input, invalid output, failing
 * tools and models, steps that are not reached, and unknown tools and backends unless they are refused at registration.
 * Returns the recorded runs, which the caller verifies.
 */
export async function runSampleLoops(context: CheckContext): Promise<readonly RecordedRun[]> {
  await registerSampleLoops(context);
  const runs: RecordedRun[] = [];
  for (const id of ['tool', 'prompt', 'logging', 'pair', 'nest']) runs.push(await context.tryRun(id, { name: 'n' }));
  for (const id of ['tool', 'strict', 'failing', 'failing-prompt', 'broken', 'nest'])
    runs.push(await context.tryRun(id, {}));
  const { backend, tool } = context.profile;
  const noTool = sampleLoop('no-tool', 'tool', { tool: tool.unknown });
  for (const unknown of [noTool, promptLoop(context, 'no-backend', { backend: backend.unknown })]) {
    if ((await context.tryRegister(unknown)) === undefined) runs.push(await context.tryRun(unknown.id, {}));
  }
  return runs;
}
