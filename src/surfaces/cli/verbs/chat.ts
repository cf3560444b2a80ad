/** `chat`: talks with an agent, in a terminal or through pipes. */
import { createHash, randomBytes } from 'node:crypto';
import type { Host } from '../../../host/host.js';
import type { EventEnvelope } from '../../../protocol/events.js';
import { type ProjectSettings, settingsOf } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { Talk, type TalkParts, wayBack } from '../chat/talk.js';
import { Transcript } from '../chat/transcript.js';
import { findLoop, notFound, warnBad, warnMistakes } from '../definitions.js';
import { openHost } from '../host.js';
import { paint } from '../paint.js';
import type { Terminal } from '../terminal.js';
import { assertSession } from '../turn.js';
import { type Act, exit, type Options, textOf } from '../verb.js';
import { whoOf } from '../who.js';

/** How many of the last messages of a session are told, and the most envelopes. */
const MESSAGES = 3;
const ENVELOPES = 40;

export const chat: Act = async ({ args, options, asked, terminal, json }) => {
  assertSession(textOf(options.session));
  const who = whoOf(options);
  const settings = await settingsOf(asked);
  const given = String(args[0]);
  const { wanted, definitions } = await findLoop(given, textOf(options.version), settings);
  warnBad(definitions.bad, terminal);
  warnMistakes(definitions.warnings, terminal);
  const found = definitions.registry.find(wanted.id, wanted.version)?.definition;
  if (found === undefined) throw notFound(given, wanted, definitions);
  if (found.composite?.agent === undefined)
    throw new UsageError(`"${found.id}" is not an agent. Run it with: rondo run ${found.id}`);
  const { host, close } = await openHost(settings, { definitions, make: true }, terminal);
  const opening = {
    loop: found.id,
    version: found.version,
    sessionId: textOf(options.session) ?? (await freshSession(settings, host)),
    ...principalOf(options),
  };
  const { stdin, stdout } = terminal.streams;
  let code: number = exit.fault;
  try {
    if (json || !stdin.isTTY || !stdout.isTTY) {
      const { pipe } = await import('../chat/piped.js');
      code = await pipe({ host, terminal, opening, json });
    } else code = await talk({ host, opening, who, now: clockOf(settings) }, terminal);
    return code;
  } finally {
    // Who could not wait for the turn does not wait for the store either: both stand any end.
    if (code !== exit.interrupted) await close();
  }
};

function principalOf(options: Options): { principal?: string } {
  const principal = textOf(options.as);
  return principal === undefined ? {} : { principal };
}

function clockOf({ now }: ProjectSettings): () => number {
  const ahead = now === undefined ? 0 : now - Date.now();
  return () => Date.now() + ahead;
}

/** A name that no session has; with a seed, the same one in the same store. */
async function freshSession({ seed }: ProjectSettings, host: Host): Promise<string> {
  if (seed === undefined) return `s-${randomBytes(8).toString('hex')}`;
  const turns = await host.archive.turns();
  return `s-${createHash('sha256').update(`${seed}:${turns.length}`).digest('hex').slice(0, 16)}`;
}

async function talk(given: Pick<TalkParts, 'host' | 'opening' | 'who' | 'now'>, terminal: Terminal): Promise<number> {
  const { Screen } = await import('../chat/screen.js');
  const { stdin: input, stdout: output } = terminal.streams;
  const { color } = terminal.look(output);
  const colors = paint(color);
  const width = (): number => terminal.width(output);
  const transcript: Transcript = new Transcript({ color, width, asks: true, silent: (text) => talking.typed(text) });
  const screen = new Screen({ input, output, color, rest: () => transcript.rest(), aside: `${colors.dim('›')} ` });
  const talking: Talk = new Talk({ ...given, screen, transcript, colors, width });
  terminal.interrupted = () => {
    screen.close();
    return `Interrupted. ${wayBack(given.opening)}`;
  };
  try {
    const { loop, sessionId } = given.opening;
    screen.say(
      `${colors.bold(loop)} in session ${sessionId}`,
      colors.dim(`/help tells more. ${wayBack(given.opening)}`),
    );
    for (const text of recap(await given.host.archive.events(sessionId), transcript, colors.dim)) screen.write(text);
    return await talking.converse();
  } finally {
    terminal.interrupted = undefined;
    screen.close();
  }
}

/** The end of what was said before, from one of the last messages of the user on. */
function* recap(
  events: readonly EventEnvelope[],
  transcript: Transcript,
  dim: (text: string) => string,
): Generator<string> {
  const users = events.flatMap(({ type }, index) => (type === 'user-message' ? [index] : []));
  const from = Math.max(users.at(-MESSAGES) ?? 0, events.length - ENVELOPES);
  for (const envelope of events.slice(0, from)) transcript.learn(envelope);
  if (from > 0) yield dim(`… earlier: rondo events ${events[0]?.sessionId ?? ''}\n`);
  for (const envelope of events.slice(from)) yield transcript.envelope(envelope);
  yield transcript.rest();
}
