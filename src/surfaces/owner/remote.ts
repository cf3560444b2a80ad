/** Asking the process that owns the store. What could not be asked at all is Unreached: then nothing has happened. */
import { type IncomingMessage, request } from 'node:http';
import { Fault } from '../../journal/errors.js';
import type { TraceEvent } from '../../protocol/trace.js';
import { UsageError } from '../settings.js';
import { type Desk, deskOf, type Hearing } from './desk.js';
import { fromWire, type Heard, type Line, type WireError } from './wire.js';

/** Nobody who owns the store listens there. */
export class Unreached extends Error {
  override readonly name = 'Unreached';
}

/** How long whoever listens may say nothing before it is asked all the same, in milliseconds. */
const SILENCE = 1000;

/** The longest line of an answer. */
const LONGEST = 256 * 1024 * 1024;

/** A desk in another process. */
export function remoteDesk(url: string, token: string): Desk {
  return deskOf(async (verb, args, hearing = {}) => {
    const response = await send(url, token, JSON.stringify({ verb, args }));
    await assertOurs(response);
    const answer = new Answer(hearing);
    try {
      for await (const piece of response.setEncoding('utf8') as AsyncIterable<string>) answer.take(piece);
    } catch (thrown) {
      throw answer.ended ? thrown : gone(answer.turn, thrown);
    }
    return answer.result(verb === 'run' || verb === 'resume');
  });
}

/**
 * The question itself goes out only once the owner has said that it listens: a connection that an owner cuts off before
 * that, because it was just closing, has asked nothing. Who says neither yes nor no is asked after a while.
 */
function send(url: string, token: string, body: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', expect: '100-continue' };
    const asking = request(`${url}/call`, { method: 'POST', headers, agent: false });
    let asked = false;
    const ask = (): void => {
      clearTimeout(waiting);
      asked = true;
      asking.end(body);
    };
    const waiting = setTimeout(ask, SILENCE);
    asking.once('continue', ask);
    asking.once('response', (response) => {
      clearTimeout(waiting);
      resolve(response);
    });
    asking.on('error', (thrown) => {
      clearTimeout(waiting);
      reject(asked ? gone(undefined, thrown) : new Unreached(thrown.message));
    });
    asking.flushHeaders();
  });
}

/** Whoever has the port now may be somebody else. */
async function assertOurs(response: IncomingMessage): Promise<void> {
  const { statusCode, headers } = response;
  if (statusCode === 200 && headers['x-rondo'] === 'owner') return;
  response.resume();
  if (statusCode === 413)
    throw new UsageError('The input is too large to be handed to the process that owns the store.');
  throw new Unreached(`The address of the owner answers with status ${statusCode}.`);
}

/** Takes an answer apart as it comes in. */
class Answer {
  private readonly hearing: Hearing;
  private readonly events: TraceEvent[] = [];
  private rest: string[] = [];
  private length = 0;
  private last: { readonly result?: unknown; readonly error?: WireError } | undefined;

  constructor(hearing: Hearing) {
    this.hearing = hearing;
  }

  get ended(): boolean {
    return this.last !== undefined;
  }

  /** The turn that the events are of, once one has come. */
  get turn(): string | undefined {
    return this.events[0]?.callId;
  }

  take(piece: string): void {
    const lines = piece.split('\n');
    for (const line of lines.slice(0, -1)) {
      this.line([...this.rest, line].join(''));
      this.rest = [];
      this.length = 0;
    }
    const begun = lines.at(-1) ?? '';
    this.rest.push(begun);
    this.length += begun.length;
    if (this.length > LONGEST) throw new Error('The owner of the store sent a line without end.');
  }

  private line(text: string): void {
    const line = JSON.parse(text) as Line;
    if ('event' in line || 'envelope' in line || 'delta' in line) this.hear(line);
    else this.last = line;
  }

  private hear(line: Heard): void {
    const { onEvent, onEnvelope, onDelta } = this.hearing;
    if ('envelope' in line) onEnvelope?.(line.envelope);
    else if ('delta' in line) onDelta?.(line.delta);
    else {
      this.events.push(line.event);
      onEvent?.(line.event);
    }
  }

  result(traced: boolean): unknown {
    if (this.last === undefined) throw gone(this.turn, undefined);
    if (this.last.error !== undefined) throw fromWire(this.last.error);
    return traced ? { ...(this.last.result as object), trace: this.events } : this.last.result;
  }
}

function gone(turn: string | undefined, cause: unknown): Fault {
  const next = turn === undefined ? 'Look at "rondo runs", and try again' : `Go on with: rondo resume ${turn}`;
  const message = `The process that owned the store went away before it answered. ${next}.`;
  return new Fault('STORE_FAILED', message, turn === undefined ? undefined : { turnId: turn }, cause);
}
