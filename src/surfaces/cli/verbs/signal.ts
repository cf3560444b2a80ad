/**
 * `rondo signal`: sends a signal to a turn or a session, then resumes the turn that waits for it; or to a hosted loop, whose
 * next turn it causes.
 */
import { randomUUID } from 'node:crypto';
import { LoopError } from '../../../base/errors.js';
import { ownProperty } from '../../../base/own-property.js';
import type { Host } from '../../../host/host.js';
import { signalNameProblem } from '../../../loops/signal-name.js';
import type { Json } from '../../../protocol/json.js';
import type { TurnResult, TurnStatus } from '../../../protocol/trace.js';
import { loadSettings, type ProjectSettings } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { findTurns, hostedLoopNamed, LAST_TURN } from '../find-turn.js';
import { hostedLoopHint } from '../hosted-reference.js';
import { readJsonInput } from '../input.js';
import { openHostForRunning } from '../open-host.js';
import { resumeTurn } from '../resume-turn.js';
import type { Terminal } from '../terminal.js';
import { sanitizeText } from '../terminal-text.js';
import { exitCodes, textOption, type VerbHandler } from '../verb.js';

/** Handles `rondo signal`. */
export const signal: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const [reference, name] = [String(args[0]), String(args[1])];
  const problem = signalNameProblem(name);
  if (problem !== undefined) throw new UsageError(`The signal "${name}" cannot be sent: ${problem}.`);
  const [payloadText, givenId] = [textOption(options.payload), textOption(options.id)];
  if (givenId === '') throw new UsageError('--id must not be empty.');
  const payload = payloadText === undefined ? undefined : await readJsonInput('--payload', payloadText, terminal);
  const settings = await loadSettings(settingsInput);
  const { host, close } = await openHostForRunning(settings, terminal);
  try {
    const loop = await hostedLoopNamed(host, reference);
    if (loop !== undefined) {
      const delivery = { loop, name, payload: payload as Json | undefined, id: givenId ?? randomUUID() };
      return await signalHostedLoop(host, delivery, terminal, json);
    }
    const turns = await turnsToSignal(host, reference, settings);
    const { target, address, waiting, otherNames } = targetOf(turns, reference, name);
    const id = givenId ?? randomUUID();
    // A new id was not sent before, also if the first reply was lost and the signal was sent again.
    const isNew = (await host.signal({ ...address, name, payload, id })) || givenId === undefined;
    const shown = `"${sanitizeText(name)}" to ${sanitizeText(target)}`;
    terminal.printToStderr(isNew ? `Sent ${shown}.` : `Not sent again: ${shown}, with the id "${sanitizeText(id)}".`);
    if (otherNames.length > 0)
      terminal.printToStderr(
        `The turn waits for ${otherNames.map((other) => `"${sanitizeText(other)}"`).join(' and ')}; "${sanitizeText(name)}" is kept until it asks for it.`,
      );
    if (waiting === undefined)
      terminal.printToStderr('No turn of the session waits for it: it is kept until one does.');
    const resumed =
      waiting === undefined
        ? undefined
        : await resumeTurn(waiting, { host, settings, terminal }, 'The signal is recorded.');
    for (const warning of resumed !== undefined && 'turn' in resumed ? discardWarnings(resumed.turn, id) : [])
      terminal.printToStderr(sanitizeText(warning));
    if (json) await terminal.printJson({ ...address, name, id, isNew, ...resumed });
    return exitCodes.ok;
  } finally {
    await close();
  }
};

/** Returns the turns that a reference names. The error for none also says which hosted loop may be meant. */
async function turnsToSignal(host: Host, reference: string, settings: ProjectSettings): Promise<readonly TurnStatus[]> {
  try {
    return await findTurns(host, reference);
  } catch (thrown) {
    if (!(thrown instanceof LoopError) || thrown.code !== 'TURN_NOT_FOUND' || reference === LAST_TURN) throw thrown;
    if (ownProperty(thrown.data, 'hostedLoop') !== undefined) throw thrown;
    const message = `There is no turn or session "${reference}" in the store, and no hosted loop with this id was started.`;
    const hint = await hostedLoopHint(host, reference, settings);
    throw new LoopError(thrown.code, `${message}${hint}`, thrown.data);
  }
}

/** Puts a signal into the inbox of a hosted loop. A worker runs the turn that it causes. */
async function signalHostedLoop(
  { hosted }: Host,
  { loop, name, payload, id }: { loop: string; name: string; payload: Json | undefined; id: string },
  terminal: Terminal,
  json: boolean,
): Promise<number> {
  const status = await hosted.signal({ loop, name, id, ...(payload !== undefined && { payload }) });
  if (json) await terminal.printJson({ loop, name, id, status });
  else await terminal.print(`${status}\n`);
  if (status === 'accepted') terminal.printToStderr('To run the turn that it causes: rondo worker');
  else terminal.printToStderr(`The id "${sanitizeText(id)}" was received before, so no other turn follows.`);
  return exitCodes.ok;
}

interface SignalTarget {
  /** The id of the turn or session. */
  readonly target: string;
  readonly address: { readonly turnId: string } | { readonly sessionId: string };
  /** The turn to resume afterwards; undefined if no turn of the session waits for the signal. */
  readonly waiting: string | undefined;
  /** The signals that the turn waits for, if this one is not among them. */
  readonly otherNames: readonly string[];
}

/** Returns what the signal is addressed to. Of a session, the oldest turn that waits for the signal is resumed. */
function targetOf(turns: readonly TurnStatus[], reference: string, name: string): SignalTarget {
  const [first] = turns;
  if (first !== undefined && first.sessionId !== reference) {
    const { turnId, pending = [] } = first;
    const names = pending.flatMap((item) => (item.kind === 'signal' ? [item.name ?? ''] : []));
    return { target: turnId, address: { turnId }, waiting: turnId, otherNames: names.includes(name) ? [] : names };
  }
  const waiting = turns.find(({ pending = [] }) =>
    pending.some((item) => item.kind === 'signal' && item.name === name),
  );
  return { target: reference, address: { sessionId: reference }, waiting: waiting?.turnId, otherNames: [] };
}

/** Returns the warnings of the turn that this delivery was discarded, because its payload does not fit. */
function discardWarnings({ trace }: TurnResult, id: string): readonly string[] {
  return trace.flatMap(({ type, payload }) => {
    const { message = '' } = (payload ?? {}) as { readonly message?: string };
    return type === 'log' && message.includes(` ${id}") was discarded: `) ? [message] : [];
  });
}
