/** The loops that checks are made with: echoes, whose output is known exactly, prompts, and composites of them. */

import type { CheckContext } from './check-context.js';
import type { RecordedRun } from './recorded-run.js';

/** The members of a definition, as JSON. */
export interface SampleDefinition {
  readonly id: string;
  readonly [member: string]: unknown;
}

/** What an object with a name, a text, is. */
export const NAMED_OBJECT_SCHEMA = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
} as const;

/** What nothing is. */
export const NEVER_SCHEMA = { not: {} } as const;

/** A definition that takes and gives anything. */
export function sampleLoop(id: string, kind: string, members: object): SampleDefinition {
  return { id, name: `Loop ${id}`, version: '1.0.0', inputSchema: {}, outputSchema: {}, kind, ...members };
}

export function echoLoop(stage: CheckContext, id: string, members: object = {}): SampleDefinition {
  return sampleLoop(id, 'tool', { tool: stage.profile.tool.echo, ...members });
}

export function failingLoop(stage: CheckContext, id: string, members: object = {}): SampleDefinition {
  return sampleLoop(id, 'tool', { tool: stage.profile.tool.failing, ...members });
}

export function promptLoop(stage: CheckContext, id: string, members: object = {}): SampleDefinition {
  const { profile } = stage;
  return sampleLoop(id, 'prompt', {
    prompt: profile.prompt(['Say something.']),
    backend: profile.backend.answering.ref,
    ...members,
  });
}

export interface SampleStep {
  readonly loopId: string;
  readonly inputMapping: { readonly [member: string]: string };
  readonly outputBinding?: string;
}

export function sampleStep(
  loopId: string,
  inputMapping: SampleStep['inputMapping'] = {},
  outputBinding?: string,
): SampleStep {
  return outputBinding === undefined ? { loopId, inputMapping } : { loopId, inputMapping, outputBinding };
}

export function compositeLoop(id: string, steps: readonly unknown[], members: object = {}): SampleDefinition {
  return sampleLoop(id, 'composite', { composite: { steps }, ...members });
}

/** One loop of each kind, able to fail on its input or its output. */
export async function registerEachKind(stage: CheckContext, members: object): Promise<readonly string[]> {
  await stage.register(
    echoLoop(stage, 'inner'),
    echoLoop(stage, 'a-tool', members),
    promptLoop(stage, 'a-prompt', members),
    compositeLoop('a-composite', [sampleStep('inner', { name: stage.profile.path.input })], members),
  );
  return ['a-tool', 'a-prompt', 'a-composite'];
}

/** Registers the loops that `runAll` runs. */
async function registerSampleLoops(stage: CheckContext): Promise<void> {
  const { profile } = stage;
  const chatty = stage.customTool((input, voice) => {
    voice.log('info', 'a line');
    voice.emit?.('suite.sample', { seen: true });
    return input;
  });
  await stage.register(
    echoLoop(stage, 'tool', { inputSchema: NAMED_OBJECT_SCHEMA }),
    echoLoop(stage, 'strict', { outputSchema: NAMED_OBJECT_SCHEMA }),
    failingLoop(stage, 'failing'),
    promptLoop(stage, 'prompt'),
    promptLoop(stage, 'mute', { backend: profile.backend.failing }),
    sampleLoop('chatty', 'tool', { tool: chatty ?? profile.tool.echo }),
    compositeLoop('pair', [sampleStep('tool', { name: `${profile.path.input}.name` }), sampleStep('prompt')]),
    compositeLoop('nest', [sampleStep('pair', { name: `${profile.path.input}.name` }), sampleStep('chatty')]),
    compositeLoop('broken', [sampleStep('prompt'), sampleStep('failing'), sampleStep('prompt')]),
  );
}

/** Every way through the lifecycle that can be made without a policy, each run once; other checks judge how they end. */
export async function runSampleLoops(stage: CheckContext): Promise<readonly RecordedRun[]> {
  await registerSampleLoops(stage);
  const made: RecordedRun[] = [];
  for (const id of ['tool', 'prompt', 'chatty', 'pair', 'nest']) made.push(await stage.tryRun(id, { name: 'n' }));
  for (const id of ['tool', 'strict', 'failing', 'mute', 'broken', 'nest']) made.push(await stage.tryRun(id, {}));
  const { backend, tool } = stage.profile;
  const noTool = sampleLoop('no-tool', 'tool', { tool: tool.unknown });
  for (const unknown of [noTool, promptLoop(stage, 'no-backend', { backend: backend.unknown })]) {
    if ((await stage.registrationRefusal(unknown)) === undefined) made.push(await stage.tryRun(unknown.id, {}));
  }
  return made;
}
