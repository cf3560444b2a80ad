/** `rondo host`: starts a hosted loop from its file, shows hosted loops and their turns, and pauses, resumes or stops one. */
import { dirname } from 'node:path';
import { LoopError } from '../../../base/errors.js';
import { namesHint } from '../../../base/nearest-word.js';
import type { Host } from '../../../host/host.js';
import type { HostedLoopStatus } from '../../../protocol/hosted-loop.js';
import {
  assertStartable,
  findHostedLoopFile,
  loadLoops,
  loadSettings,
  locatedStartError,
  type ProjectSettings,
  unknownToolWarnings,
  untrustedDirectoryOf,
} from '../../compose.js';
import { UsageError } from '../../settings.js';
import { describeBadFile } from '../definitions.js';
import { startedLoopIdOf } from '../hosted-reference.js';
import { openHost, openHostForReading, openHostForRunning, warnUntrustedEnvFile } from '../open-host.js';
import {
  hostedLines,
  hostedRows,
  hostedTurnRows,
  nextStepOf,
  refusedHandoffLines,
  shortTurnRows,
  TURN_TABLE_HEAD,
} from '../render-hosted.js';
import type { Terminal } from '../terminal.js';
import { sanitizeMessage, sanitizeText } from '../terminal-text.js';
import { userNameOf } from '../user-name.js';
import { exitCodes, type Invocation, textOption, type VerbHandler } from '../verb.js';

/** An invocation of a command of `rondo host`. */
interface HostInvocation extends Omit<Invocation, 'args'> {
  /** The loop or the file; undefined if it is absent. */
  readonly reference: string | undefined;
  readonly settings: ProjectSettings;
}

type HostCommand = (invocation: HostInvocation) => Promise<number>;

const TABLE_HEAD = ['LOOP', 'STATUS', 'REASON', 'TURNS', 'NEXT', 'RECEIPT'];

/** Handles `rondo host`. */
export const host: VerbHandler = async ({ args, ...invocation }) => {
  const [name = '', reference] = args.map((argument) => textOption(argument));
  const command = commands.get(name);
  if (command === undefined)
    throw new UsageError(
      `There is no command "host ${name}".${namesHint(name, [...commands.keys()], 'There are')} To list all hosted loops: rondo host status`,
    );
  for (const [option, allowed] of OPTIONS)
    if (invocation.options[option] !== undefined && !allowed.includes(name))
      throw new UsageError(`--${option} belongs to host ${allowed.join(', host ')}.`);
  return command({ ...invocation, reference, settings: await loadSettings(invocation.settingsInput) });
};

/** The options that only some commands have. */
const OPTIONS: readonly (readonly [option: string, commands: readonly string[]])[] = [
  ['turns', ['status']],
  ['as', ['start', 'pause', 'resume', 'stop']],
  ['reason', ['pause', 'resume', 'stop']],
];

async function start({ reference, settings, options, terminal, json }: HostInvocation): Promise<number> {
  const by = userNameOf(options);
  const given = required(reference, 'start FILE');
  const definitions = await loadLoops(settings);
  const { file, document } = await findHostedLoopFile(settings, given, definitions.registry);
  warnUntrustedEnvFile(settings, terminal);
  await assertStartable({ file, document }, definitions.registry, settings);
  for (const warning of await unknownToolWarnings({ file, document }, definitions.registry))
    terminal.printToStderr(`warning: ${describeBadFile(warning)}`);
  const opened = await openHost(settings, { definitions, createIfMissing: true }, terminal);
  try {
    const { hosted } = opened.host;
    const isKnown = (await hosted.definition(document.id)) !== undefined;
    const untrustedDirectory = untrustedDirectoryOf(file, settings);
    const starting = hosted.start(document, { by, untrustedDirectory, directory: dirname(file) });
    const status = await starting.catch(async (thrown) => Promise.reject(await locatedStartError(file, thrown)));
    terminal.printToStderr(`${isKnown ? 'Was started before' : 'Started'}: ${sanitizeText(status.loop)}.`);
    await printStatus(status, terminal, json);
    return exitCodes.ok;
  } finally {
    await opened.close();
  }
}

async function status(invocation: HostInvocation): Promise<number> {
  const { reference, settings, options, terminal, json } = invocation;
  if (reference === undefined && options.turns === true)
    throw new UsageError('--turns needs the id of a hosted loop: rondo host status LOOP --turns');
  const opened = await openHostForReading(settings, terminal);
  try {
    if (reference === undefined) return await printAll(opened.host, terminal, json);
    const loop = await startedLoopIdOf(opened.host, reference, settings);
    if (options.turns === true) return await printTurns(opened.host, loop, terminal, json);
    await printStatus(await opened.host.hosted.status(loop), terminal, json);
    return exitCodes.ok;
  } finally {
    await opened.close();
  }
}

/** Pauses or resumes a hosted loop. Neither runs a turn, so no definition is loaded. */
function controlCommand(name: 'pause' | 'resume'): HostCommand {
  return async ({ reference, settings, options, terminal, json }) => {
    const given = required(reference, `${name} LOOP`);
    const actor = actorOf(options);
    const opened = await openHostForReading(settings, terminal);
    try {
      const loop = await startedLoopIdOf(opened.host, given, settings);
      const before = await opened.host.hosted.status(loop);
      const shown = await opened.host.hosted[name](loop, actor);
      terminal.printToStderr(sanitizeText(changeText(name, before)));
      await printStatus(shown, terminal, json);
      return exitCodes.ok;
    } finally {
      await opened.close();
    }
  };
}

async function stop({ reference, settings, options, terminal, json }: HostInvocation): Promise<number> {
  const given = required(reference, 'stop LOOP');
  const actor = actorOf(options);
  const opened = await openHostForRunning(settings, terminal);
  try {
    const loop = await startedLoopIdOf(opened.host, given, settings);
    const before = await opened.host.hosted.status(loop);
    const shown = await stopLoop(opened.host, loop, actor, terminal);
    terminal.printToStderr(sanitizeText(changeText('stop', before)));
    await printStatus(shown, terminal, json);
    return exitCodes.ok;
  } finally {
    await opened.close();
  }
}

/** Stops a loop. That it has stopped is recorded before its open turn is cancelled, which a worker can do too. */
async function stopLoop(
  { hosted }: Host,
  loop: string,
  actor: { readonly by: string; readonly reason?: string },
  terminal: Terminal,
): Promise<HostedLoopStatus> {
  try {
    return await hosted.stop(loop, actor);
  } catch (thrown) {
    if (!(thrown instanceof LoopError)) throw thrown;
    const known = await hosted.status(loop);
    if (known.status !== 'stopped') throw thrown;
    terminal.printToStderr(`Its open turn is not cancelled here. ${thrown.code}: ${sanitizeMessage(thrown.message)}`);
    terminal.printToStderr('A worker that has the loop cancels it.');
    return known;
  }
}

/** Says what a command did to a loop with this status before, or that it had no effect, so that nothing was recorded. */
function changeText(name: 'pause' | 'resume' | 'stop', { loop, status, reason }: HostedLoopStatus): string {
  const unrecorded = 'Nothing was recorded.';
  if (name === 'stop')
    return status === 'stopped' ? `Was stopped before: ${loop} (${reason}). ${unrecorded}` : `Stopped: ${loop}.`;
  if (name === 'pause') return status === 'paused' ? `Was paused before: ${loop}. ${unrecorded}` : `Paused: ${loop}.`;
  return status === 'paused' ? `Resumed: ${loop}.` : `Was not paused: ${loop}. ${unrecorded}`;
}

const commands: ReadonlyMap<string, HostCommand> = new Map<string, HostCommand>([
  ['start', start],
  ['status', status],
  ['pause', controlCommand('pause')],
  ['resume', controlCommand('resume')],
  ['stop', stop],
]);

function required(reference: string | undefined, usage: string): string {
  if (reference !== undefined && reference !== '') return reference;
  throw new UsageError(`Name the hosted loop: rondo host ${usage}`);
}

function actorOf(options: Invocation['options']): { readonly by: string; readonly reason?: string } {
  const reason = textOption(options.reason);
  return { by: userNameOf(options), ...(reason !== undefined && { reason }) };
}

async function printStatus(shown: HostedLoopStatus, terminal: Terminal, json: boolean): Promise<void> {
  if (json) await terminal.printJson(shown);
  else await terminal.print(`${hostedLines(shown, Date.now()).join('\n')}\n`);
  const next = nextStepOf(shown);
  if (next !== undefined) terminal.printToStderr(next);
}

async function printAll({ hosted }: Host, terminal: Terminal, json: boolean): Promise<number> {
  const loops = await hosted.list();
  if (json) await terminal.printJson({ loops });
  else if (loops.length > 0) await printTable(hostedRows(loops), terminal, TABLE_HEAD);
  if (loops.length === 0) terminal.printToStderr('There are no hosted loops. Start one: rondo host start FILE');
  return exitCodes.ok;
}

async function printTurns({ hosted }: Host, loop: string, terminal: Terminal, json: boolean): Promise<number> {
  const [shown, turns] = [await hosted.status(loop), await hosted.turns(loop)];
  if (json) await terminal.printJson({ ...shown, turnList: turns });
  else if (turns.length > 0 && terminal.streams.stdout.isTTY === true) {
    const document = (await hosted.definition(loop)) ?? {};
    await printTable(shortTurnRows(turns, document, Date.now()), terminal, TURN_TABLE_HEAD);
  } else if (turns.length > 0) await printTable(hostedTurnRows(turns), terminal);
  if (turns.length === 0) terminal.printToStderr('It has had no turn.');
  for (const line of refusedHandoffLines(turns)) terminal.printToStderr(line);
  return exitCodes.ok;
}

/** Prints a table. A program that reads it gets complete ids. */
async function printTable(
  rows: readonly (readonly string[])[],
  terminal: Terminal,
  head?: readonly string[],
): Promise<void> {
  const { renderTable } = await import('../table.js');
  const display = terminal.displayOf();
  const width = terminal.streams.stdout.isTTY === true ? display.width : Number.POSITIVE_INFINITY;
  await terminal.print(`${renderTable(rows, { ...display, width, ...(head !== undefined && { head }) })}\n`);
}
