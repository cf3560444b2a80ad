/** `chat`: talks with an agent, in a terminal or through pipes. */
import { createHash, randomBytes } from 'node:crypto';
import type { Host } from '../../../host/host.js';
import type { EventEnvelope } from '../../../protocol/events.js';
import { loadSettings, type ProjectSettings } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { ChatController, type ChatControllerDeps, chatReturnHint } from '../chat/chat-controller.js';
import { Transcript } from '../chat/transcript.js';
import { findLoop, loopNotFoundError, warnBadFiles, warnIgnoredKeys } from '../definitions.js';
import { assertSessionId } from '../find-turn.js';
import { openHost } from '../open-host.js';
import type { Terminal } from '../terminal.js';
import { createColors } from '../terminal-text.js';
import { userNameOf } from '../user-name.js';
import { exitCodes, textOption, type VerbHandler, type VerbOptions } from '../verb.js';

/** How many of the last messages of a session are told, and the most envelopes. */
const MAX_RECAP_MESSAGES = 3;
const MAX_RECAP_ENVELOPES = 40;

export const chat: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  assertSessionId(textOption(options.session));
  const who = userNameOf(options);
  const settings = await loadSettings(settingsInput);
  const given = String(args[0]);
  const { wanted, definitions } = await findLoop(given, textOption(options.version), settings);
  warnBadFiles(definitions.badFiles, terminal);
  warnIgnoredKeys(definitions.warnings, terminal);
  const found = definitions.registry.find(wanted.id, wanted.version)?.definition;
  if (found === undefined) throw loopNotFoundError(given, wanted, definitions);
  if (found.composite?.agent === undefined)
    throw new UsageError(`"${found.id}" is not an agent. Run it with: rondo run ${found.id}`);
  const { host, close } = await openHost(settings, { definitions, createIfMissing: true }, terminal);
  const opening = {
    loop: found.id,
    version: found.version,
    sessionId: textOption(options.session) ?? (await newSessionId(settings, host)),
    ...principalOf(options),
  };
  const { stdin, stdout } = terminal.streams;
  let code: number = exitCodes.fault;
  try {
    if (json || !stdin.isTTY || !stdout.isTTY) {
      const { runPipedChat } = await import('../chat/piped-chat.js');
      code = await runPipedChat({ host, terminal, turnTemplate: opening, json });
    } else
      code = await runInteractiveChat(
        { host, turnTemplate: opening, userName: who, now: nowFunctionOf(settings) },
        terminal,
      );
    return code;
  } finally {
    // Who could not wait for the turn does not wait for the store either: both stand any end.
    if (code !== exitCodes.interrupted) await close();
  }
};

function principalOf(options: VerbOptions): { principal?: string } {
  const principal = textOption(options.as);
  return principal === undefined ? {} : { principal };
}

function nowFunctionOf({ clockStartAt }: ProjectSettings): () => number {
  const ahead = clockStartAt === undefined ? 0 : clockStartAt - Date.now();
  return () => Date.now() + ahead;
}

/** A name that no session has; with a seed, the same one in the same store. */
async function newSessionId({ seed }: ProjectSettings, host: Host): Promise<string> {
  if (seed === undefined) return `s-${randomBytes(8).toString('hex')}`;
  const turns = await host.archive.turns();
  return `s-${createHash('sha256').update(`${seed}:${turns.length}`).digest('hex').slice(0, 16)}`;
}

async function runInteractiveChat(
  given: Pick<ChatControllerDeps, 'host' | 'turnTemplate' | 'userName' | 'now'>,
  terminal: Terminal,
): Promise<number> {
  const { Screen } = await import('../chat/screen.js');
  const { stdin: input, stdout: output } = terminal.streams;
  const { color } = terminal.displayOf(output);
  const colors = createColors(color);
  const width = (): number => terminal.lineWidth(output);
  const transcript: Transcript = new Transcript({
    color,
    width,
    promptsForApprovals: true,
    hidesUserMessage: (text) => talking.takeSentMessage(text),
  });
  const screen = new Screen({
    input,
    output,
    color,
    endRow: () => transcript.endRow(),
    sidePrompt: `${colors.dim('›')} `,
  });
  const talking: ChatController = new ChatController({ ...given, screen, transcript, colors, width });
  terminal.onInterrupt = () => {
    screen.close();
    return `Interrupted. ${chatReturnHint(given.turnTemplate)}`;
  };
  try {
    const { loop, sessionId } = given.turnTemplate;
    screen.printLines(
      `${colors.bold(loop)} in session ${sessionId}`,
      colors.dim(`/help tells more. ${chatReturnHint(given.turnTemplate)}`),
    );
    for (const text of renderRecap(await given.host.archive.events(sessionId), transcript, colors.dim))
      screen.write(text);
    return await talking.run();
  } finally {
    terminal.onInterrupt = undefined;
    screen.close();
  }
}

/** The end of what was said before, from one of the last messages of the user on. */
function* renderRecap(
  events: readonly EventEnvelope[],
  transcript: Transcript,
  dim: (text: string) => string,
): Generator<string> {
  const users = events.flatMap(({ type }, index) => (type === 'user-message' ? [index] : []));
  const from = Math.max(users.at(-MAX_RECAP_MESSAGES) ?? 0, events.length - MAX_RECAP_ENVELOPES);
  for (const envelope of events.slice(0, from)) transcript.markRendered(envelope);
  if (from > 0) yield dim(`… earlier: rondo events ${events[0]?.sessionId ?? ''}\n`);
  for (const envelope of events.slice(from)) yield transcript.renderEnvelope(envelope);
  yield transcript.endRow();
}
