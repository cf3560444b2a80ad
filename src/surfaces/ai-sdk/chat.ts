/**
 * The back end of `useChat`: a fetch-style handler whose chats are sessions of a host. A message of the user is a turn, an
 * answered approval resumes one, and both are durable: a client that goes away stops nothing. The client's messages are
 * read as chat-request.ts says; everything it is told comes from the journal.
 *
 * Mount it behind your own authentication: `principal` says who asks, and `authorise` whether that person may use the
 * chat. A chat id is a session id, so without `authorise` whoever reaches the handler reaches every session of the host.
 */
import type { Clock } from '../../journal/clock.js';
import { LoopError } from '../../journal/errors.js';
import type { DefinedLoop } from '../../loops/defined.js';
import type { Approval } from '../../protocol/approval.js';
import type { TurnResult } from '../../protocol/trace.js';
import { type Answers, chatIdOf, type Prompt, readChatRequest, type Stop } from './chat-request.js';
import type { UiChunk } from './chunk.js';
import type { Known, Reading } from './chunk-log.js';
import { Problem, problemResponse } from './problem.js';
import { type ChatHost, type Driven, Telling } from './telling.js';
import type { ErrorText, KindOf } from './tool-calls.js';

/** Who asks for what. */
export interface ChatAccess {
  readonly chatId: string;
  readonly principal: string | undefined;
}

export interface ChatOptions {
  readonly host: ChatHost;
  /** The loop that answers, usually an agent: it gets `{prompt}`. */
  readonly agent: string | DefinedLoop;
  /** Who asks, as your server knows it: the turn runs in this name, and answers are given in it. */
  readonly principal?: (request: Request) => string | undefined | Promise<string | undefined>;
  /** Whether the one who asks may use this chat. */
  readonly authorise?: (request: Request, access: ChatAccess) => boolean | Promise<boolean>;
  /** What users are shown of an error; what its code means, unless told. */
  readonly errorText?: ErrorText;
  /** Hears what went wrong in the machinery, which clients are not told. */
  readonly onError?: (thrown: unknown) => void;
  /** Whether a turn is cancelled when the last client that reads it goes away; it goes on unless told. */
  readonly abortOnDisconnect?: boolean;
  /** How long a request may be; 1 MiB unless told. */
  readonly maxBytes?: number;
  /** With it, a stream that is quiet for long is kept open with comments. */
  readonly clock?: Clock;
}

/** Answers requests of `DefaultChatTransport`. */
export type ChatHandler = (request: Request) => Promise<Response>;

const OPTIONS: ReadonlySet<string> = new Set(
  'host agent principal authorise errorText onError abortOnDisconnect maxBytes clock'.split(' '),
);
const MAX_BYTES = 1024 * 1024;
const SOMEBODY = 'chat user';

/**
 * Makes the handler. `POST` takes a message or answers and streams what follows; `POST {id, abort: true}` stops what
 * runs; `GET …/CHAT/stream` streams the message that is being written, or answers 204.
 */
export function chatHandler(options: ChatOptions): ChatHandler {
  const unknown = Object.keys(options).find((key) => !OPTIONS.has(key));
  if (unknown !== undefined)
    throw new TypeError(`chatHandler has no option "${unknown}"; it has ${[...OPTIONS].join(', ')}.`);
  const chats = new Chats(options);
  return async (request) => {
    try {
      return await chats.serve(request);
    } catch (thrown) {
      if (!(thrown instanceof Problem)) options.onError?.(thrown);
      return problemResponse(thrown);
    }
  };
}

/** What the names are that the model of an agent may call, for `uiMessages` to show a history as it was streamed. */
export function toolKinds(host: Pick<ChatHost, 'registry'>, agent: string | DefinedLoop): KindOf {
  const definition = typeof agent === 'string' ? host.registry.find(agent)?.definition : agent.definition;
  const spec = definition?.composite?.agent;
  const [tools, handoffs] = [new Set(spec?.tools), new Set(spec?.handoffs)];
  return (name) => {
    if (handoffs.has(name)) return 'handoff';
    return tools.has(name) ? host.registry.find(name)?.definition.kind : undefined;
  };
}

class Chats {
  private readonly options: ChatOptions;
  /** What is being told, by what began it: the key of a message, or the turn that goes on. */
  private readonly tellings = new Map<string, Telling>();

  constructor(options: ChatOptions) {
    this.options = options;
  }

  async serve(request: Request): Promise<Response> {
    if (request.method === 'GET') return this.reconnect(request);
    if (request.method !== 'POST') throw new Problem(405, 'METHOD_NOT_ALLOWED', 'There is POST, and GET of a stream.');
    const asked = await readChatRequest(request, this.options.maxBytes ?? MAX_BYTES);
    const principal = await this.admit(request, asked.chatId);
    if (asked.kind === 'stop') return this.stop(asked);
    return asked.kind === 'prompt' ? this.prompt(asked, principal) : this.answers(asked, principal);
  }

  private async admit(request: Request, chatId: string): Promise<string | undefined> {
    const { principal, authorise } = this.options;
    const who = await principal?.(request);
    if (authorise === undefined || (await authorise(request, { chatId, principal: who })) === true) return who;
    throw new Problem(403, 'NOT_AUTHORISED', 'This chat is not yours to use.');
  }

  /** A message that was sent before is the turn that it began. */
  private async prompt({ chatId, messageId, text, again }: Prompt, principal: string | undefined): Promise<Response> {
    const { host, agent: loop } = this.options;
    const key = `${chatId}:${messageId}${again ? await this.attempt(chatId) : ''}`;
    const turn = {
      loop,
      input: { prompt: text },
      sessionId: chatId,
      key,
      ...(principal !== undefined && { principal }),
    };
    return this.respond(this.told(chatId, key, (driven) => host.run(turn, driven)));
  }

  /** Tells one wish for another answer from the next: it is the same as long as nothing has ended. */
  private async attempt(chatId: string): Promise<string> {
    const turns = await this.options.host.archive.turns(chatId);
    return `:again:${turns.filter(({ endedAt }) => endedAt !== undefined).length}`;
  }

  /** Gives the answers to the host, which alone knows what was asked, and goes on with the turn. */
  private async answers(asked: Answers, principal = SOMEBODY): Promise<Response> {
    const { host } = this.options;
    const { chatId, answers } = asked;
    const before = await host.archive.approvals(chatId);
    const refused = new Set<string>();
    for (const { approvalId: id, approved, reason } of answers) {
      const said = reason === undefined ? {} : { reason };
      const taken = await accepted(host.answer({ id, approved, by: principal, sessionId: chatId, ...said }));
      if (!taken) refused.add(id);
    }
    const turnId = await this.turnOf(asked, before);
    const pending = refused.size === 0 ? [] : await host.archive.approvals(chatId);
    const known = knownOf(asked, new Set(pending.map(({ id }) => id)));
    const first = [...refused].map((approvalId): UiChunk => {
      return { type: 'data-rondo-refused', data: { approvalId }, transient: true };
    });
    // With an answer to go on with, the turn is driven anew, behind whatever drives it now; else it is only watched.
    const news = answers.flatMap(({ approvalId }) => (refused.has(approvalId) ? [] : [approvalId]));
    const watched = [...this.tellings.values()].find((telling) => telling.turnId === turnId);
    const resume = (): Telling =>
      this.told(chatId, [turnId, ...news].join(' '), (driven) => host.resume(turnId, driven), turnId);
    return this.respond(news.length > 0 ? resume() : (watched ?? resume()), { known, first });
  }

  private async turnOf({ chatId, messageId, answers }: Answers, pending: readonly Approval[]): Promise<string> {
    const about = pending.find(({ id }) => answers.some(({ approvalId }) => approvalId === id));
    if (about !== undefined) return about.turnId;
    const turns = await this.options.host.archive.turns(chatId);
    if (turns.some(({ turnId }) => turnId === messageId)) return messageId;
    throw new Problem(404, 'TURN_NOT_FOUND', 'The answers are about nothing that this chat has asked.');
  }

  private async reconnect(request: Request): Promise<Response> {
    const [, named] = /\/([^/]+)\/stream\/?$/.exec(new URL(request.url).pathname) ?? [];
    if (named === undefined) throw new Problem(404, 'TURN_NOT_FOUND', 'There is only GET …/CHAT/stream.');
    const chatId = chatIdOf(decoded(named));
    await this.admit(request, chatId);
    const { host } = this.options;
    const telling = [...this.tellings.values()].find((one) => one.chatId === chatId);
    if (telling !== undefined) return this.respond(telling);
    // Somebody else in this process drives it: it is watched, and how it ended is known once it has.
    const running = (await host.archive.turns(chatId)).find(({ status }) => status === 'running');
    if (running === undefined) return new Response(null, { status: 204 });
    const { turnId } = running;
    return this.respond(this.told(chatId, turnId, (driven) => host.resume(turnId, driven), turnId));
  }

  private async stop({ chatId }: Stop): Promise<Response> {
    const { host } = this.options;
    for (const { turnId, status } of await host.archive.turns(chatId)) {
      if (status === 'running') await host.cancel(turnId, 'The user stopped it.');
    }
    return new Response(null, { status: 204 });
  }

  /** Drives a turn and tells it; the same one only once at a time. */
  private told(chatId: string, key: string, drive: (driven: Driven) => Promise<TurnResult>, turnId?: string): Telling {
    const known = this.tellings.get(key);
    if (known !== undefined) return known;
    const { host, agent, errorText, onError } = this.options;
    const shown = { kindOf: toolKinds(host, agent), ...(errorText !== undefined && { errorText }) };
    const telling = new Telling(chatId, host, shown, (thrown) => onError?.(thrown));
    this.tellings.set(key, telling);
    const forget = (): void => void this.tellings.delete(key);
    telling.tell(drive, turnId).then(forget, forget);
    return telling;
  }

  private respond(telling: Telling, reading: Pick<Reading, 'known' | 'first'> = {}): Response {
    const { abortOnDisconnect = false, clock } = this.options;
    telling.join();
    const left = (): void => telling.leave(abortOnDisconnect);
    const headers = {
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache',
      'x-vercel-ai-ui-message-stream': 'v1',
      'x-accel-buffering': 'no',
    };
    return new Response(telling.log.stream({ ...reading, clock, left }), { headers });
  }
}

/** What the client has of the message; what it was asked and nobody has answered is asked again. */
function knownOf({ steps, tools, approvals, answers }: Answers, pending: ReadonlySet<string>): Known {
  return {
    steps,
    tools: new Set(tools),
    approvals: new Set(approvals.filter((id) => !pending.has(id))),
    owed: new Set(answers.map(({ toolCallId }) => toolCallId)),
  };
}

/** Whether an answer was taken. One that was not is in the journal with its reason, and no error of the client's. */
async function accepted(given: Promise<unknown>): Promise<boolean> {
  try {
    await given;
    return true;
  } catch (thrown) {
    if (thrown instanceof LoopError) return false;
    throw thrown;
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}
