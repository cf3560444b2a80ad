/** The loops that checks are made with: echoes, whose output is known exactly, prompts, and composites of them. */
import type { Recording } from './recording.js';
import type { Stage } from './stage.js';

/** The members of a definition, as JSON. */
export interface Definition {
  readonly id: string;
  readonly [member: string]: unknown;
}

/** What an object with a name, a text, is. */
export const NAMED = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } as const;

/** What nothing is. */
export const NOTHING = { not: {} } as const;

/** A definition that takes and gives anything. */
export function loop(id: string, kind: string, members: object): Definition {
  return { id, name: `Loop ${id}`, version: '1.0.0', inputSchema: {}, outputSchema: {}, kind, ...members };
}

export function echo(stage: Stage, id: string, members: object = {}): Definition {
  return loop(id, 'tool', { tool: stage.profile.tool.echo, ...members });
}

export function failing(stage: Stage, id: string, members: object = {}): Definition {
  return loop(id, 'tool', { tool: stage.profile.tool.failing, ...members });
}

export function prompt(stage: Stage, id: string, members: object = {}): Definition {
  const { profile } = stage;
  return loop(id, 'prompt', {
    prompt: profile.prompt(['Say something.']),
    backend: profile.backend.answering.ref,
    ...members,
  });
}

export interface Step {
  readonly loopId: string;
  readonly inputMapping: { readonly [member: string]: string };
  readonly outputBinding?: string;
}

export function step(loopId: string, inputMapping: Step['inputMapping'] = {}, outputBinding?: string): Step {
  return outputBinding === undefined ? { loopId, inputMapping } : { loopId, inputMapping, outputBinding };
}

export function composite(id: string, steps: readonly unknown[], members: object = {}): Definition {
  return loop(id, 'composite', { composite: { steps }, ...members });
}

/** One loop of each kind, able to fail on its input or its output. */
export async function eachKind(stage: Stage, members: object): Promise<readonly string[]> {
  await stage.register(
    echo(stage, 'inner'),
    echo(stage, 'a-tool', members),
    prompt(stage, 'a-prompt', members),
    composite('a-composite', [step('inner', { name: stage.profile.path.input })], members),
  );
  return ['a-tool', 'a-prompt', 'a-composite'];
}

/** Registers the loops that `runAll` runs. */
async function registerAll(stage: Stage): Promise<void> {
  const { profile } = stage;
  const chatty = stage.custom((input, voice) => {
    voice.log('info', 'a line');
    voice.emit?.('suite.sample', { seen: true });
    return input;
  });
  await stage.register(
    echo(stage, 'tool', { inputSchema: NAMED }),
    echo(stage, 'strict', { outputSchema: NAMED }),
    failing(stage, 'failing'),
    prompt(stage, 'prompt'),
    prompt(stage, 'mute', { backend: profile.backend.failing }),
    loop('chatty', 'tool', { tool: chatty ?? profile.tool.echo }),
    composite('pair', [step('tool', { name: `${profile.path.input}.name` }), step('prompt')]),
    composite('nest', [step('pair', { name: `${profile.path.input}.name` }), step('chatty')]),
    composite('broken', [step('prompt'), step('failing'), step('prompt')]),
  );
}

/** Every way through the lifecycle that can be made without a policy, each run once; other checks judge how they end. */
export async function runAll(stage: Stage): Promise<readonly Recording[]> {
  await registerAll(stage);
  const made: Recording[] = [];
  for (const id of ['tool', 'prompt', 'chatty', 'pair', 'nest']) made.push(await stage.attempt(id, { name: 'n' }));
  for (const id of ['tool', 'strict', 'failing', 'mute', 'broken', 'nest']) made.push(await stage.attempt(id, {}));
  const { backend, tool } = stage.profile;
  const noTool = loop('no-tool', 'tool', { tool: tool.unknown });
  for (const unknown of [noTool, prompt(stage, 'no-backend', { backend: backend.unknown })]) {
    if ((await stage.refusal(unknown)) === undefined) made.push(await stage.attempt(unknown.id, {}));
  }
  return made;
}
