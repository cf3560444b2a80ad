/** `rondo chat`: chats with an agent, in a terminal or through pipes. */
import { createHash, randomBytes } from 'node:crypto';
import type { Host } from '../../../host/host.js';
import type { EventEnvelope } from '../../../protocol/events.js';
import { loadSettings, type ProjectSettings } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { ChatController, type ChatControllerDeps, chatReturnHint } from '../chat/chat-controller.js';
import { Transcript } from '../chat/transcript.js';
import { findLoop, loopNotFoundError, warnAboutLoop } from '../definitions.js';
import { assertSessionId } from '../find-turn.js';
import { openHost, warnUntrustedEnvFile } from '../open-host.js';
import type { Terminal } from '../terminal.js';
import { createColors } from '../terminal-text.js';
import { userNameOf } from '../user-name.js';
import { exitCodes, textOption, type VerbHandler, type VerbOptions } from '../verb.js';

/**
 * The maximum number of user messages and of envelopes in the recap with which a chat in an existing session begins.
 */
const MAX_RECAP_MESSAGES = 3;
const MAX_RECAP_ENVELOPES = 40;

/** Handles `rondo chat`. */
export const chat: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  assertSessionId(textOption(options.session));
  const userName = userNameOf(options);
  const settings = await loadSettings(settingsInput);
  const reference = String(args[0]);
  const { wanted, definitions } = await findLoop(reference, textOption(options.version), settings);
  warnAboutLoop(wanted, definitions, terminal);
  warnUntrustedEnvFile(settings, terminal);
  const definition = definitions.registry.find(wanted.id, wanted.version)?.definition;
  if (definition === undefined) throw loopNotFoundError(reference, wanted, definitions);
  if (definition.composite?.agent === undefined)
    throw new UsageError(`"${definition.id}" is not an agent. Run it with: rondo run ${definition.id}`);
  const { host, close } = await openHost(settings, { definitions, createIfMissing: true }, terminal);
  const turnTemplate = {
    loop: definition.id,
    version: definition.version,
    sessionId: textOption(options.session) ?? (await newSessionId(settings, host)),
    ...principalOf(options),
  };
  const { stdin, stdout } = terminal.streams;
  let code: number = exitCodes.fault;
  try {
    if (json || !stdin.isTTY || !stdout.isTTY) {
      const { runPipedChat } = await import('../chat/piped-chat.js');
      code = await runPipedChat({ host, terminal, turnTemplate, json });
    } else {
      const now = nowFunctionOf(settings);
      code = await runInteractiveChat({ host, turnTemplate, userName, now, cwd: settings.cwd }, stdin, terminal);
    }
    return code;
  } finally {
    // After an interruption the process exits at once. The turn and the store are crash-safe.
    if (code !== exitCodes.interrupted) await close();
  }
};

function principalOf(options: VerbOptions): { principal?: string } {
  const principal = textOption(options.as);
  return principal === undefined ? {} : { principal };
}

function nowFunctionOf({ clockStartAt }: ProjectSettings): () => number {
  const offsetMs = clockStartAt === undefined ? 0 : clockStartAt - Date.now();
  return () => Date.now() + offsetMs;
}

/** Returns a new session id. With a seed, the id depends only on the seed and the store. */
async function newSessionId({ seed }: ProjectSettings, host: Host): Promise<string> {
  if (seed === undefined) return `s-${randomBytes(8).toString('hex')}`;
  const turns = await host.archive.turns();
  return `s-${createHash('sha256').update(`${seed}:${turns.length}`).digest('hex').slice(0, 16)}`;
}

async function runInteractiveChat(
  deps: Pick<ChatControllerDeps, 'host' | 'turnTemplate' | 'userName' | 'now' | 'cwd'>,
  input: NodeJS.ReadStream,
  terminal: Terminal,
): Promise<number> {
  const { Screen } = await import('../chat/screen.js');
  const { stdout: output } = terminal.streams;
  const { color } = terminal.displayOf(output);
  const colors = createColors(color);
  const width = (): number => terminal.lineWidth(output);
  const transcript: Transcript = new Transcript({
    color,
    width,
    promptsForApprovals: true,
    hidesUserMessage: (text) => controller.takeSentMessage(text),
  });
  const screen = new Screen({
    input,
    output,
    color,
    endRow: () => transcript.endRow(),
    sidePrompt: `${colors.dim('›')} `,
  });
  const controller: ChatController = new ChatController({ ...deps, screen, transcript, colors, width });
  terminal.onInterrupt = () => {
    screen.close();
    return `Interrupted. ${chatReturnHint(deps.turnTemplate)}`;
  };
  try {
    const { loop, sessionId } = deps.turnTemplate;
    screen.printLines(
      `${colors.bold(loop)} in session ${sessionId}`,
      colors.dim(`/help lists the commands. ${chatReturnHint(deps.turnTemplate)}`),
    );
    for (const text of renderRecap(await deps.host.archive.events(sessionId), transcript, colors.dim))
      screen.write(text);
    return await controller.run();
  } finally {
    terminal.onInterrupt = undefined;
    screen.close();
  }
}

/**
 * Renders the end of the earlier conversation: from the third-last user message on, but at most the last 40 envelopes.
 */
function* renderRecap(
  events: readonly EventEnvelope[],
  transcript: Transcript,
  dim: (text: string) => string,
): Generator<string> {
  const userMessages = events.flatMap(({ type }, index) => (type === 'user-message' ? [index] : []));
  const start = Math.max(userMessages.at(-MAX_RECAP_MESSAGES) ?? 0, events.length - MAX_RECAP_ENVELOPES);
  for (const envelope of events.slice(0, start)) transcript.markRendered(envelope);
  if (start > 0) yield dim(`… earlier: rondo events ${events[0]?.sessionId ?? ''}\n`);
  for (const envelope of events.slice(start)) yield transcript.renderEnvelope(envelope);
  yield transcript.endRow();
}
