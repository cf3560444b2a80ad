/**
 * The server side of `useChat`: a fetch-style handler that maps chats to sessions of a host. A user message starts a
 * turn, an approval answer resumes one. Turns are durable: they continue after the client disconnects, except with
 * `abortOnDisconnect`. The client's messages are untrusted (see chat-request.ts); the content of an assistant message
 * comes from the journal or from live deltas.
 */

import { compositeId, isWellFormed } from '../../base/composite-id.js';
import { LoopError } from '../../base/errors.js';
import { assertKnownKeys, optionKeys } from '../../base/option-keys.js';
import { ignoringErrors } from '../../host/session-feed.js';
import type { Clock } from '../../journal/clock.js';
import type { DefinedLoop } from '../../loops/defined-loop.js';
import { CODE_ORIGIN } from '../../loops/origin.js';
import type { Approval } from '../../protocol/approval.js';
import type { TurnResult } from '../../protocol/trace.js';
import { warnOfError } from '../http/operator-warning.js';
import { HttpProblem, problemResponse } from '../http/problem.js';
import { type AnswersRequest, type PromptRequest, parseChatId, readChatRequest } from './chat-request.js';
import { type ChatAccess, chatSession } from './chat-session.js';
import type { UiChunk } from './chunk.js';
import type { ChunkStreamOptions, ReaderProgress } from './chunk-log.js';
import { type HostOption, hostOf } from './host-option.js';
import { createRequestCheck } from './request-origin.js';
import type { ErrorFormatter } from './tool-calls.js';
import { toolKinds } from './tool-kinds.js';
import { type ChatHost, type ChatRunOptions, TurnStream } from './turn-stream.js';

/** Options of `chatHandler`. */
export interface ChatOptions {
  /** Runs the turns: a runtime made with `createRondo`, or a host. */
  readonly host: HostOption<ChatHost>;
  /** The loop that replies to messages, usually an agent. Its input is `{prompt}`. */
  readonly agent: string | DefinedLoop;
  /**
   * Returns the authenticated user of a request. Chats belong to this principal; turns run, and approvals are answered,
   * on its behalf. A request without a principal is refused with status 403.
   *
   * Without this option all clients share all chats, and only requests to a loopback host are served (see `hosts`). Use
   * that for local development only.
   * @default no users
   */
  readonly principal?: (request: Request) => string | undefined | Promise<string | undefined>;
  /**
   * Returns true if the user may use this chat. It restricts access further: a user never reaches chats of another
   * user.
   * @default every user may use their own chats
   */
  readonly authorise?: (request: Request, access: ChatAccess) => boolean | Promise<boolean>;
  /**
   * The only principals that may answer approvals of turns that this handler starts. Without it, users approve the calls
   * of their own chats.
   * @default every principal except the agents of the turn
   */
  readonly approvers?: readonly string[];
  /**
   * Returns the text that users see for an error.
   * @default the general meaning of the error code, or that the chat cannot continue at the moment
   */
  readonly errorText?: ErrorFormatter;
  /**
   * Receives what an operator must fix: internal errors, and a LoopError with `data.turnId` for a turn that cannot
   * continue or failed, such as `REPLAY_MISMATCH`, `LOOP_NOT_FOUND` or `BACKEND_FAILED`. Clients see only
   * the text of `errorText`. Errors that it throws are ignored.
   * @default a warning of the process, which Node prints to stderr
   */
  readonly onError?: (thrown: unknown) => void;
  /**
   * True if a turn is cancelled when its last reader disconnects.
   * @default false
   */
  readonly abortOnDisconnect?: boolean;
  /**
   * The maximum size of a request body, in bytes.
   * @default 1048576
   */
  readonly maxBytes?: number;
  /**
   * Origins whose pages may send requests, in addition to pages of the handler's own host. Your server sends the CORS
   * headers.
   * @default []
   */
  readonly origins?: readonly string[];
  /**
   * The hosts that are served, such as `app.example` or `localhost:3000`.
   * @default any host with `principal`, loopback hosts without
   */
  readonly hosts?: readonly string[];
  /**
   * Times the keep-alive comments of idle streams.
   * @default no keep-alive comments
   */
  readonly clock?: Clock;
}

/** A fetch-style handler for the requests of the AI SDK's `DefaultChatTransport`. */
export type ChatHandler = (request: Request) => Promise<Response>;

const OPTION_KEYS = optionKeys<ChatOptions>({
  host: true,
  agent: true,
  principal: true,
  authorise: true,
  approvers: true,
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
 * Creates the handler. Mount it behind your own authentication.
 *
 * - `POST` accepts a user message or approval answers, and streams the assistant message.
 * - `POST {id, abort: true}` cancels the running turns of the chat.
 * - `GET …/CHAT/stream` reconnects to the message in progress; without one, the response has status 204.
 *
 * @throws {TypeError} If an option is unknown or invalid.
 *
 * @example
 * const handler = chatHandler({ host: rondo, agent: support, principal: (request) => userOf(request) });
 * createServer(nodeListener(handler)).listen(3000);
 */
export function chatHandler(options: ChatOptions): ChatHandler {
  assertKnownKeys(options, OPTION_KEYS, 'chatHandler has no option');
  const { maxBytes = DEFAULT_MAX_BYTES } = options;
  if (!(Number.isSafeInteger(maxBytes) && maxBytes > 0))
    throw new TypeError(`"maxBytes" must be a whole number greater than zero, not ${String(maxBytes)}.`);
  const host = hostOf(options.host);
  // A turn of an earlier process can only be continued with a registered agent.
  if (typeof options.agent !== 'string') host.registry.add(options.agent, CODE_ORIGIN);
  const { onError = warnOfError } = options;
  const report = (thrown: unknown): void => ignoringErrors(() => onError(thrown));
  const server = new ChatServer({ ...options, host, onError: report });
  return async (request) => {
    try {
      return await server.serve(request);
    } catch (thrown) {
      if (!(thrown instanceof HttpProblem)) report(thrown);
      return problemResponse(thrown);
    }
  };
}

/** The session of a chat that the request may use. */
interface AdmittedChat {
  readonly sessionId: string;
  readonly principal: string | undefined;
}

/** The options of a handler with its host. */
interface ServerOptions extends ChatOptions {
  readonly host: ChatHost;
  readonly onError: (thrown: unknown) => void;
}

/** Serves the requests of one handler and shares the streams of running turns among readers. */
class ChatServer {
  private readonly options: ServerOptions;
  private readonly assertAllowed: (request: Request) => void;
  /** Active streams, keyed by what started them: a message of a session, or a resumed turn. */
  private readonly turnStreams = new Map<string, TurnStream>();

  constructor(options: ServerOptions) {
    this.options = options;
    this.assertAllowed = createRequestCheck(options, options.principal === undefined);
  }

  async serve(request: Request): Promise<Response> {
    this.assertAllowed(request);
    const principal = await this.authenticate(request);
    if (request.method === 'GET') return this.reconnect(request, principal);
    const chatRequest = await readChatRequest(request, this.options.maxBytes ?? DEFAULT_MAX_BYTES);
    const chat = await this.admit(request, { chatId: chatRequest.chatId, principal });
    if (chatRequest.kind === 'stop') return this.stopTurns(chat);
    return chatRequest.kind === 'prompt' ? this.handlePrompt(chatRequest, chat) : this.handleAnswers(chatRequest, chat);
  }

  /**
   * Returns the authenticated user; undefined only without the option `principal`. Throws a 403 problem if there is
   * none.
   */
  private async authenticate(request: Request): Promise<string | undefined> {
    const { principal } = this.options;
    if (principal === undefined) return undefined;
    const user: unknown = await principal(request);
    if (typeof user === 'string' && user.trim() !== '' && user.length <= MAX_PRINCIPAL_CHARS && isWellFormed(user))
      return user;
    // guard: unknown-user-refused
    throw new HttpProblem(403, 'NOT_AUTHORISED', 'The request is not authenticated; sign in first.');
  }

  /** Returns the session of a chat. Throws a 403 problem if the user may not use it. */
  private async admit(request: Request, access: ChatAccess): Promise<AdmittedChat> {
    const { authorise, host } = this.options;
    if (authorise !== undefined && (await authorise(request, access)) !== true)
      throw new HttpProblem(403, 'NOT_AUTHORISED', 'You may not use this chat.');
    return { sessionId: await chatSession(host, access), principal: access.principal };
  }

  /** Starts a turn for a message and streams it. A message that was sent before streams the turn that it started. */
  private async handlePrompt(request: PromptRequest, { sessionId, principal }: AdmittedChat): Promise<Response> {
    const { host, agent: loop, approvers } = this.options;
    const { chatId, messageId, text: prompt, isRegeneration } = request;
    const key = compositeId(chatId, messageId, ...(isRegeneration ? await this.regenerationKey(sessionId) : []));
    const turn = {
      loop,
      input: { prompt },
      sessionId,
      key,
      ...(principal !== undefined && { principal }),
      ...(approvers !== undefined && { approvers }),
    };
    return this.respond(
      this.streamTurn(sessionId, /* guard: stream-bound-to-chat */ ['message', sessionId, key], (runOptions) =>
        host.run(turn, runOptions),
      ),
    );
  }

  /**
   * Returns key parts that distinguish regenerations. Retries share them until a turn of the session has ended.
   */
  private async regenerationKey(sessionId: string): Promise<readonly string[]> {
    const turns = await this.options.host.archive.turns(sessionId);
    return ['again', String(turns.filter(({ endedAt }) => endedAt !== undefined).length)];
  }

  /** Passes the answers to the host, which checks them against its pending approvals, and resumes the turn. */
  private async handleAnswers(
    request: AnswersRequest,
    { sessionId, principal = ANONYMOUS_PRINCIPAL }: AdmittedChat,
  ): Promise<Response> {
    const { host } = this.options;
    const { answers } = request;
    const pendingBefore = await host.archive.approvals(sessionId);
    const refused = new Set<string>();
    for (const { approvalId: id, approved, reason } of answers) {
      const answer = { id, approved, by: principal, sessionId, ...(reason !== undefined && { reason }) };
      if (!(await isAccepted(host.answer(answer)))) refused.add(id);
    }
    const turnId = await this.findAnsweredTurn(request, sessionId, pendingBefore);
    const pending = refused.size === 0 ? [] : await host.archive.approvals(sessionId);
    const progress = readerProgressOf(request, new Set(pending.map(({ id }) => id)));
    const leadingChunks = [...refused].map((approvalId): UiChunk => {
      return { type: 'data-rondo-refused', data: { approvalId }, transient: true };
    });
    // An accepted answer resumes the turn, queued behind a run in progress. Without one, the active stream is joined; the
    // turn is resumed only if there is none.
    const accepted = answers.flatMap(({ approvalId }) => (refused.has(approvalId) ? [] : [approvalId]));
    const active = [...this.turnStreams.values()].find((stream) => stream.turnId === turnId);
    const resume = (): TurnStream =>
      this.streamTurn(
        sessionId,
        ['turn', turnId, ...accepted],
        (runOptions) => host.resume(turnId, runOptions),
        turnId,
      );
    return this.respond(accepted.length > 0 ? resume() : (active ?? resume()), { progress, leadingChunks });
  }

  /**
   * Returns the turn that the answers are about: by a pending approval, or else by the id of the message. Throws a 404
   * problem if there is none.
   */
  private async findAnsweredTurn(
    { messageId, answers }: AnswersRequest,
    sessionId: string,
    pending: readonly Approval[],
  ): Promise<string> {
    const approval = pending.find(({ id }) => answers.some(({ approvalId }) => approvalId === id));
    if (approval !== undefined) return approval.turnId;
    const turns = await this.options.host.archive.turns(sessionId);
    if (turns.some(({ turnId }) => turnId === messageId)) return messageId;
    throw new HttpProblem(404, 'TURN_NOT_FOUND', 'The answers match no approval of this chat.');
  }

  private async reconnect(request: Request, principal: string | undefined): Promise<Response> {
    const [, segment] = /\/([^/]+)\/stream\/?$/.exec(new URL(request.url).pathname) ?? [];
    if (segment === undefined) throw new HttpProblem(404, 'TURN_NOT_FOUND', 'GET serves only …/CHAT/stream.');
    const { sessionId } = await this.admit(request, { chatId: parseChatId(decodePathSegment(segment)), principal });
    const { host } = this.options;
    const active = [...this.turnStreams.values()].find((stream) => stream.sessionId === sessionId);
    if (active !== undefined) return this.respond(active);
    // The turn was started outside of this handler. `resume` waits for the run in progress and returns its result.
    const running = (await host.archive.turns(sessionId)).find(({ status }) => status === 'running');
    if (running === undefined) return new Response(null, { status: 204 });
    const { turnId } = running;
    const resume = (runOptions: ChatRunOptions): Promise<TurnResult> => host.resume(turnId, runOptions);
    return this.respond(this.streamTurn(sessionId, ['turn', turnId], resume, turnId));
  }

  private async stopTurns({ sessionId }: AdmittedChat): Promise<Response> {
    const { host } = this.options;
    for (const { turnId, status } of await host.archive.turns(sessionId)) {
      if (status === 'running') await host.cancel(turnId, 'The user stopped it.');
    }
    return new Response(null, { status: 204 });
  }

  /** Runs a turn and streams it. A second request with the same key joins the active stream. */
  private streamTurn(
    sessionId: string,
    keyParts: readonly [kind: 'message' | 'turn', ...string[]],
    runTurn: (runOptions: ChatRunOptions) => Promise<TurnResult>,
    turnId?: string,
  ): TurnStream {
    const key = compositeId(...keyParts);
    const active = this.turnStreams.get(key);
    if (active !== undefined) return active;
    const { host, agent, errorText, onError } = this.options;
    const chunkOptions = { kindOf: toolKinds(host, agent), ...(errorText !== undefined && { errorText }) };
    const stream = new TurnStream(sessionId, host, chunkOptions, onError);
    this.turnStreams.set(key, stream);
    const remove = (): void => void this.turnStreams.delete(key);
    stream.run(runTurn, turnId).then(remove, remove);
    return stream;
  }

  private respond(
    stream: TurnStream,
    streamOptions: Pick<ChunkStreamOptions, 'progress' | 'leadingChunks'> = {},
  ): Response {
    const { abortOnDisconnect = false, clock } = this.options;
    stream.addReader();
    const onDisconnect = (): void => stream.removeReader(abortOnDisconnect);
    const headers = {
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache',
      'x-vercel-ai-ui-message-stream': 'v1',
      'x-accel-buffering': 'no',
    };
    return new Response(stream.log.stream({ ...streamOptions, clock, onDisconnect }), { headers });
  }
}

/** Returns the client's progress in the message. Approvals that are still pending are requested again. */
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

/**
 * Returns true if the host accepted the answer. A refused answer is journaled with its reason, and is not an HTTP
 * error.
 */
async function isAccepted(answering: Promise<unknown>): Promise<boolean> {
  try {
    await answering;
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
