/** Sample loops of the checks: echoes, whose output is known exactly, prompts, failing tools and composites of them. */
import type { CheckContext } from './check-context.js';
import type { RecordedRun } from './recorded-run.js';

/** The members of a definition, as JSON. */
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

/** Returns a definition that accepts any input and output. */
export function sampleLoop(id: string, kind: string, members: object): SampleDefinition {
  return { id, name: `Loop ${id}`, version: '1.0.0', inputSchema: {}, outputSchema: {}, kind, ...members };
}

/** Returns a tool that returns its input. */
export function echoLoop(context: CheckContext, id: string, members: object = {}): SampleDefinition {
  return sampleLoop(id, 'tool', { tool: context.profile.tool.echo, ...members });
}

/** Returns a tool that always fails. */
export function failingLoop(context: CheckContext, id: string, members: object = {}): SampleDefinition {
  return sampleLoop(id, 'tool', { tool: context.profile.tool.failing, ...members });
}

/** Returns a prompt that always gets an answer. */
export function promptLoop(context: CheckContext, id: string, members: object = {}): SampleDefinition {
  const { profile } = context;
  return sampleLoop(id, 'prompt', {
    prompt: profile.prompt(['Say something.']),
    backend: profile.backend.answering.ref,
    ...members,
  });
}

/** A step of a composite. */
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

/** Returns a composite of these steps. */
export function compositeLoop(id: string, steps: readonly unknown[], members: object = {}): SampleDefinition {
  return sampleLoop(id, 'composite', { composite: { steps }, ...members });
}

/** Registers a loop of each kind with these members, and returns their ids. */
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
    promptLoop(context, 'mute', { backend: profile.backend.failing }),
    sampleLoop('chatty', 'tool', { tool: loggingTool ?? profile.tool.echo }),
    compositeLoop('pair', [sampleStep('tool', { name: `${profile.path.input}.name` }), sampleStep('prompt')]),
    compositeLoop('nest', [sampleStep('pair', { name: `${profile.path.input}.name` }), sampleStep('chatty')]),
    compositeLoop('broken', [sampleStep('prompt'), sampleStep('failing'), sampleStep('prompt')]),
  );
}

/** Runs every path of the lifecycle that needs no policy, once. Other checks verify the results. */
export async function runSampleLoops(context: CheckContext): Promise<readonly RecordedRun[]> {
  await registerSampleLoops(context);
  const runs: RecordedRun[] = [];
  for (const id of ['tool', 'prompt', 'chatty', 'pair', 'nest']) runs.push(await context.tryRun(id, { name: 'n' }));
  for (const id of ['tool', 'strict', 'failing', 'mute', 'broken', 'nest']) runs.push(await context.tryRun(id, {}));
  const { backend, tool } = context.profile;
  const noTool = sampleLoop('no-tool', 'tool', { tool: tool.unknown });
  for (const unknown of [noTool, promptLoop(context, 'no-backend', { backend: backend.unknown })]) {
    if ((await context.registrationRefusal(unknown)) === undefined) runs.push(await context.tryRun(unknown.id, {}));
  }
  return runs;
}
