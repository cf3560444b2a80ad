/**
 * The handshake: owner and client prove to each other that they have read the owner's record, by a keyed hash over two random
 * numbers, before either sends anything else. The secret itself is never sent, so whatever listens at the address learns nothing.
 *
 *   owner  → client   { rondo: PROTOCOL, nonce }
 *   client → owner    { nonce, proof }
 *   owner  → client   { proof }
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Channel } from './channel.js';

/** Raised when what is sent changes its meaning: processes of different versions refuse each other. */
export const PROTOCOL_VERSION = 1;

const NONCE_PATTERN = /^[0-9a-f]{32}$/;
const MAX_HANDSHAKE_LINE_CHARS = 1000;
/** How long a connection may stay unproved. */
const HANDSHAKE_TIMEOUT_MS = 10_000;

/** Why a handshake failed. */
export class HandshakeError extends Error {
  override readonly name = 'HandshakeError';
  readonly reason: 'closed' | 'proof' | 'version';

  constructor(reason: HandshakeError['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

interface HandshakeMessage {
  readonly rondo?: unknown;
  readonly nonce?: unknown;
  readonly proof?: unknown;
}

function createNonce(): string {
  return randomBytes(16).toString('hex');
}

function proofOf(secret: string, role: 'owner' | 'client', nonces: readonly [owner: string, client: string]): string {
  return createHmac('sha256', Buffer.from(secret, 'hex'))
    .update(`rondo.store.v${PROTOCOL_VERSION} ${role} ${nonces.join(' ')}`)
    .digest('hex');
}

function isExpectedProof(given: unknown, expected: string): boolean {
  if (typeof given !== 'string' || given.length !== expected.length) return false;
  return timingSafeEqual(Buffer.from(given), Buffer.from(expected));
}

/** Hands out the messages of a handshake in order; `next` rejects once the channel closes. */
function readHandshakeMessages(channel: Channel): { next(): Promise<HandshakeMessage>; end(): void } {
  const { maxLineChars } = channel;
  const arrived: HandshakeMessage[] = [];
  let waiting: { resolve(greeting: HandshakeMessage): void; reject(error: Error): void } | undefined;
  let closed = false;
  channel.maxLineChars = MAX_HANDSHAKE_LINE_CHARS;
  channel.onMessage = (message) => {
    const greeting = (typeof message === 'object' && message !== null ? message : {}) as HandshakeMessage;
    if (waiting === undefined) arrived.push(greeting);
    else waiting.resolve(greeting);
    waiting = undefined;
    if (arrived.length > 3) channel.destroy();
  };
  channel.onClose = () => {
    closed = true;
    waiting?.reject(new HandshakeError('closed', 'The connection was closed.'));
  };
  return {
    next: () =>
      new Promise((resolve, reject) => {
        const first = arrived.shift();
        if (first !== undefined) resolve(first);
        else if (closed) reject(new HandshakeError('closed', 'The connection was closed.'));
        else waiting = { resolve, reject };
      }),
    end: () => {
      channel.maxLineChars = maxLineChars;
      channel.onMessage = () => {};
      channel.onClose = () => {};
    },
  };
}

/** The client's part; rejects unless the other side has proved that it is the owner. */
export async function authenticateAsClient(channel: Channel, secret: string): Promise<void> {
  const talk = readHandshakeMessages(channel);
  const { rondo, nonce } = await talk.next();
  if (rondo !== PROTOCOL_VERSION)
    throw new HandshakeError('version', `It speaks version ${String(rondo).slice(0, 20)}.`);
  if (typeof nonce !== 'string' || !NONCE_PATTERN.test(nonce)) throw new HandshakeError('proof', 'It is not an owner.');
  const nonces = [nonce, createNonce()] as const;
  channel.send({ nonce: nonces[1], proof: proofOf(secret, 'client', nonces) });
  const { proof } = await talk.next();
  // guard: owner-proves-secret
  if (!isExpectedProof(proof, proofOf(secret, 'owner', nonces)))
    throw new HandshakeError('proof', 'It has another secret.');
  talk.end();
}

/** The owner's part; rejects, with the channel closed, unless the other side has proved that it may connect. */
export async function authenticateAsOwner(channel: Channel, secret: string): Promise<void> {
  const talk = readHandshakeMessages(channel);
  const tooLate = setTimeout(() => channel.destroy(), HANDSHAKE_TIMEOUT_MS).unref();
  try {
    const nonce = createNonce();
    channel.send({ rondo: PROTOCOL_VERSION, nonce });
    const answer = await talk.next();
    if (typeof answer.nonce !== 'string' || !NONCE_PATTERN.test(answer.nonce))
      throw new HandshakeError('proof', 'No nonce.');
    const nonces = [nonce, answer.nonce] as const;
    // guard: client-proves-secret
    if (!isExpectedProof(answer.proof, proofOf(secret, 'client', nonces)))
      throw new HandshakeError('proof', 'Wrong proof.');
    talk.end();
    channel.send({ proof: proofOf(secret, 'owner', nonces) });
  } catch (thrown) {
    channel.destroy();
    throw thrown;
  } finally {
    clearTimeout(tooLate);
  }
}
