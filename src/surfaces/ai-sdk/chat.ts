/**
 * The back end of `useChat`: a fetch-style handler whose chats are sessions of a host. A message of the user is a turn, an
 * answered approval resumes one, and both are durable: a client that goes away stops nothing. The client's messages are
 * read as chat-request.ts says; everything it is told comes from the journal.
 *
 * Mount it behind your own authentication: `principal` names the user, and each user has chats of their own (chat-session.ts).
 */

import { compositeId, isWellFormed } from '../../base/composite-id.js';
import { LoopError } from '../../base/errors.js';
import { assertKnownKeys, optionKeys } from '../../base/option-keys.js';
import type { Clock } from '../../journal/clock.js';
import type { DefinedLoop } from '../../loops/defined-loop.js';
import type { Approval } from '../../protocol/approval.js';
import type { TurnResult } from '../../protocol/trace.js';
import { type AnswersRequest, type PromptRequest, parseChatId, readChatRequest } from './chat-request.js';
import { type ChatAccess, chatSession } from './chat-session.js';
import type { UiChunk } from './chunk.js';
import type { ChunkStreamOptions, ReaderProgress } from './chunk-log.js';
import { HttpProblem, problemResponse } from './problem.js';
import { createRequestCheck } from './request-origin.js';
import type { ErrorFormatter, ToolKindLookup } from './tool-calls.js';
import { type ChatHost, type ChatRunOptions, TurnStream } from './turn-stream.js';

export interface ChatOptions {
  readonly host: ChatHost;
  /** The loop that answers, usually an agent: it gets `{prompt}`. */
  readonly agent: string | DefinedLoop;
  /**
   * The user who sends a request, as your server has authenticated them: chats belong to this principal, turns run and
   * answers are given on their behalf. A request for which it returns nothing is refused. Without it, everybody who reaches
   * the handler shares all chats, and only requests to a loopback host are served (see `hosts`): for local use.
   */
  readonly principal?: (request: Request) => string | undefined | Promise<string | undefined>;
  /** Whether this user may use this chat, beyond chats being their own. */
  readonly authorise?: (request: Request, access: ChatAccess) => boolean | Promise<boolean>;
  /** What users are shown of an error; what its code means, unless told. */
  readonly errorText?: ErrorFormatter;
  /** Hears what went wrong in the machinery, which clients are not told. */
  readonly onError?: (thrown: unknown) => void;
  /** Whether a turn is cancelled when the last client that reads it goes away; it goes on unless told. */
  readonly abortOnDisconnect?: boolean;
  /**
   * The largest request body, in bytes.
   * @default 1048576
   */
  readonly maxBytes?: number;
  /** Origins whose pages may send requests, beside pages of the handler's own host; CORS headers are your server's. */
  readonly origins?: readonly string[];
  /**
   * The hosts that are served, as `app.example` or `localhost:3000`.
   * @default any host with `principal`, loopback hosts without
   */
  readonly hosts?: readonly string[];
  /** With it, a stream that is quiet for long is kept open with comments. */
  readonly clock?: Clock;
}

/** Answers requests of `DefaultChatTransport`. */
export type ChatHandler = (request: Request) => Promise<Response>;

const OPTION_KEYS = optionKeys<ChatOptions>({
  host: true,
  agent: true,
  principal: true,
  authorise: true,
  errorText: true,
  onError: true,
  abortOnDisconnect: true,
  maxBytes: true,
  origins: true,
  hosts: true,
  clock: true,
});
const DEFAULT_MAX_BYTES = 1024 * 1024;
const ANONYMOUS_PRINCIPAL = 'chat user';
const MAX_PRINCIPAL_CHARS = 200;

/**
 * Makes the handler. `POST` takes a message or answers and streams what follows; `POST {id, abort: true}` stops what
 * runs; `GET …/CHAT/stream` streams the message that is being written, or answers 204.
 */
export function chatHandler(options: ChatOptions): ChatHandler {
  assertKnownKeys(options, OPTION_KEYS, 'chatHandler has no option');
  const { maxBytes = DEFAULT_MAX_BYTES } = options;
  if (!(Number.isSafeInteger(maxBytes) && maxBytes > 0))
    throw new TypeError(`"maxBytes" is a whole number of bytes above zero, not ${String(maxBytes)}.`);
  const chats = new ChatServer(options);
  return async (request) => {
    try {
      return await chats.serve(request);
    } catch (thrown) {
      if (!(thrown instanceof HttpProblem)) options.onError?.(thrown);
      return problemResponse(thrown);
    }
  };
}

/** What the names are that the model of an agent may call, for `uiMessages` to show a history as it was streamed. */
export function toolKinds(host: Pick<ChatHost, 'registry'>, agent: string | DefinedLoop): ToolKindLookup {
  const definition = typeof agent === 'string' ? host.registry.find(agent)?.definition : agent.definition;
  const spec = definition?.composite?.agent;
  const [tools, handoffs] = [new Set(spec?.tools), new Set(spec?.handoffs)];
  return (name) => {
    if (handoffs.has(name)) return 'handoff';
    return tools.has(name) ? host.registry.find(name)?.definition.kind : undefined;
  };
}

/** A chat that a request was admitted to. */
interface AdmittedChat {
  readonly sessionId: string;
  readonly principal: string | undefined;
}

class ChatServer {
  private readonly options: ChatOptions;
  private readonly assertAllowed: (request: Request) => void;
  /** What is being told, by what began it: a message of a session, or the turn that goes on. */
  private readonly turnStreams = new Map<string, TurnStream>();

  constructor(options: ChatOptions) {
    this.options = options;
    this.assertAllowed = createRequestCheck(options, options.principal === undefined);
  }

  async serve(request: Request): Promise<Response> {
    this.assertAllowed(request);
    const principal = await this.authenticate(request);
    if (request.method === 'GET') return this.reconnect(request, principal);
    const asked = await readChatRequest(request, this.options.maxBytes ?? DEFAULT_MAX_BYTES);
    const admitted = await this.admit(request, { chatId: asked.chatId, principal });
    if (asked.kind === 'stop') return this.stopTurns(admitted);
    return asked.kind === 'prompt' ? this.handlePrompt(asked, admitted) : this.handleAnswers(asked, admitted);
  }

  /** The user who asks; undefined only if the handler knows no users. */
  private async authenticate(request: Request): Promise<string | undefined> {
    const { principal } = this.options;
    if (principal === undefined) return undefined;
    const who: unknown = await principal(request);
    if (typeof who === 'string' && who.trim() !== '' && who.length <= MAX_PRINCIPAL_CHARS && isWellFormed(who))
      return who;
    // guard: unknown-user-refused
    throw new HttpProblem(403, 'NOT_AUTHORISED', 'The server does not know who asks; sign in first.');
  }

  private async admit(request: Request, access: ChatAccess): Promise<AdmittedChat> {
    const { authorise, host } = this.options;
    if (authorise !== undefined && (await authorise(request, access)) !== true)
      throw new HttpProblem(403, 'NOT_AUTHORISED', 'This chat is not yours to use.');
    return { sessionId: await chatSession(host, access), principal: access.principal };
  }

  /** A message that was sent before is the turn that it began. */
  private async handlePrompt(asked: PromptRequest, { sessionId, principal }: AdmittedChat): Promise<Response> {
    const { host, agent: loop } = this.options;
    const { chatId, messageId, text: prompt, isRegeneration } = asked;
    const key = compositeId(chatId, messageId, ...(isRegeneration ? await this.regenerationKey(sessionId) : []));
    const turn = { loop, input: { prompt }, sessionId, key, ...(principal !== undefined && { principal }) };
    return this.respond(
      this.streamTurn(sessionId, /* guard: stream-bound-to-chat */ ['message', sessionId, key], (driven) =>
        host.run(turn, driven),
      ),
    );
  }

  /** Tells one wish for another answer from the next: it is the same as long as nothing has ended. */
  private async regenerationKey(sessionId: string): Promise<readonly string[]> {
    const turns = await this.options.host.archive.turns(sessionId);
    return ['again', String(turns.filter(({ endedAt }) => endedAt !== undefined).length)];
  }

  /** Gives the answers to the host, which alone knows what was asked, and goes on with the turn. */
  private async handleAnswers(
    asked: AnswersRequest,
    { sessionId, principal = ANONYMOUS_PRINCIPAL }: AdmittedChat,
  ): Promise<Response> {
    const { host } = this.options;
    const { answers } = asked;
    const before = await host.archive.approvals(sessionId);
    const refused = new Set<string>();
    for (const { approvalId: id, approved, reason } of answers) {
      const said = reason === undefined ? {} : { reason };
      const taken = await isAccepted(host.answer({ id, approved, by: principal, sessionId, ...said }));
      if (!taken) refused.add(id);
    }
    const turnId = await this.findAnsweredTurn(asked, sessionId, before);
    const pending = refused.size === 0 ? [] : await host.archive.approvals(sessionId);
    const known = readerProgressOf(asked, new Set(pending.map(({ id }) => id)));
    const first = [...refused].map((approvalId): UiChunk => {
      return { type: 'data-rondo-refused', data: { approvalId }, transient: true };
    });
    // With an answer to go on with, the turn is driven anew, behind whatever drives it now; else it is only watched.
    const news = answers.flatMap(({ approvalId }) => (refused.has(approvalId) ? [] : [approvalId]));
    const watched = [...this.turnStreams.values()].find((telling) => telling.turnId === turnId);
    const resume = (): TurnStream =>
      this.streamTurn(sessionId, ['turn', turnId, ...news], (driven) => host.resume(turnId, driven), turnId);
    return this.respond(news.length > 0 ? resume() : (watched ?? resume()), { progress: known, leadingChunks: first });
  }

  private async findAnsweredTurn(
    { messageId, answers }: AnswersRequest,
    sessionId: string,
    pending: readonly Approval[],
  ): Promise<string> {
    const about = pending.find(({ id }) => answers.some(({ approvalId }) => approvalId === id));
    if (about !== undefined) return about.turnId;
    const turns = await this.options.host.archive.turns(sessionId);
    if (turns.some(({ turnId }) => turnId === messageId)) return messageId;
    throw new HttpProblem(404, 'TURN_NOT_FOUND', 'The answers are about nothing that this chat has asked.');
  }

  private async reconnect(request: Request, principal: string | undefined): Promise<Response> {
    const [, named] = /\/([^/]+)\/stream\/?$/.exec(new URL(request.url).pathname) ?? [];
    if (named === undefined) throw new HttpProblem(404, 'TURN_NOT_FOUND', 'There is only GET …/CHAT/stream.');
    const { sessionId } = await this.admit(request, { chatId: parseChatId(decodePathSegment(named)), principal });
    const { host } = this.options;
    const telling = [...this.turnStreams.values()].find((one) => one.sessionId === sessionId);
    if (telling !== undefined) return this.respond(telling);
    // Somebody else in this process drives it: it is watched, and how it ended is known once it has.
    const running = (await host.archive.turns(sessionId)).find(({ status }) => status === 'running');
    if (running === undefined) return new Response(null, { status: 204 });
    const { turnId } = running;
    return this.respond(this.streamTurn(sessionId, ['turn', turnId], (driven) => host.resume(turnId, driven), turnId));
  }

  private async stopTurns({ sessionId }: AdmittedChat): Promise<Response> {
    const { host } = this.options;
    for (const { turnId, status } of await host.archive.turns(sessionId)) {
      if (status === 'running') await host.cancel(turnId, 'The user stopped it.');
    }
    return new Response(null, { status: 204 });
  }

  /** Drives a turn and tells it; the same one only once at a time. */
  private streamTurn(
    sessionId: string,
    began: readonly [kind: 'message' | 'turn', ...string[]],
    drive: (driven: ChatRunOptions) => Promise<TurnResult>,
    turnId?: string,
  ): TurnStream {
    const key = compositeId(...began);
    const known = this.turnStreams.get(key);
    if (known !== undefined) return known;
    const { host, agent, errorText, onError } = this.options;
    const shown = { kindOf: toolKinds(host, agent), ...(errorText !== undefined && { errorText }) };
    const telling = new TurnStream(sessionId, host, shown, (thrown) => onError?.(thrown));
    this.turnStreams.set(key, telling);
    const forget = (): void => void this.turnStreams.delete(key);
    telling.run(drive, turnId).then(forget, forget);
    return telling;
  }

  private respond(telling: TurnStream, reading: Pick<ChunkStreamOptions, 'progress' | 'leadingChunks'> = {}): Response {
    const { abortOnDisconnect = false, clock } = this.options;
    telling.addReader();
    const left = (): void => telling.removeReader(abortOnDisconnect);
    const headers = {
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache',
      'x-vercel-ai-ui-message-stream': 'v1',
      'x-accel-buffering': 'no',
    };
    return new Response(telling.log.stream({ ...reading, clock, onDisconnect: left }), { headers });
  }
}

/** What the client has of the message; what it was asked and nobody has answered is asked again. */
function readerProgressOf(
  { stepCount, toolCallIds, approvalIds, answers }: AnswersRequest,
  pending: ReadonlySet<string>,
): ReaderProgress {
  return {
    stepCount,
    toolCallIds: new Set(toolCallIds),
    approvalIds: new Set(approvalIds.filter((id) => !pending.has(id))),
    unsettledToolCallIds: new Set(answers.map(({ toolCallId }) => toolCallId)),
  };
}

/** Whether an answer was taken. One that was not is in the journal with its reason, and no error of the client's. */
async function isAccepted(given: Promise<unknown>): Promise<boolean> {
  try {
    await given;
    return true;
  } catch (thrown) {
    if (thrown instanceof LoopError) return false;
    throw thrown;
  }
}

function decodePathSegment(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}
