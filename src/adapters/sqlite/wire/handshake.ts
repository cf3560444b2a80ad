/**
 * The handshake: before any other message, owner and client prove by an HMAC over two nonces that they have read the
 * owner file. The secret itself is never sent, so an impostor at the address learns nothing.
 *
 *   owner  → client   { rondo: PROTOCOL_VERSION, nonce }
 *   client → owner    { nonce, proof }
 *   owner  → client   { proof }
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Channel } from './channel.js';

/**
 * Version of the protocol, raised with every incompatible change. Processes with different versions refuse each other.
 */
export const PROTOCOL_VERSION = 2;

const NONCE_PATTERN = /^[0-9a-f]{32}$/;
const MAX_HANDSHAKE_LINE_CHARS = 1000;
/** How long a connection may stay unauthenticated. */
const HANDSHAKE_TIMEOUT_MS = 10_000;

/** Thrown if a handshake fails. */
export class HandshakeError extends Error {
  override readonly name = 'HandshakeError';
  /**
   * `closed`: the connection was closed. `proof`: the other side did not prove that it knows the secret. `version`: the
   * owner has another protocol version.
   */
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

function isExpectedProof(proof: unknown, expected: string): boolean {
  if (typeof proof !== 'string' || proof.length !== expected.length) return false;
  return timingSafeEqual(Buffer.from(proof), Buffer.from(expected));
}

/**
 * Takes over a channel to read the messages of a handshake in order. `next` rejects once the channel closes. `end`
 * restores the limit of the channel and removes the handlers.
 */
function readHandshakeMessages(channel: Channel): { next(): Promise<HandshakeMessage>; end(): void } {
  const { maxLineChars } = channel;
  const arrived: HandshakeMessage[] = [];
  let waiter: { resolve(message: HandshakeMessage): void; reject(error: Error): void } | undefined;
  let isClosed = false;
  channel.maxLineChars = MAX_HANDSHAKE_LINE_CHARS;
  channel.onMessage = (received) => {
    const message = (typeof received === 'object' && received !== null ? received : {}) as HandshakeMessage;
    if (waiter === undefined) arrived.push(message);
    else waiter.resolve(message);
    waiter = undefined;
    if (arrived.length > 3) channel.destroy();
  };
  channel.onClose = () => {
    isClosed = true;
    waiter?.reject(new HandshakeError('closed', 'The connection was closed.'));
  };
  return {
    next: () =>
      new Promise((resolve, reject) => {
        const first = arrived.shift();
        if (first !== undefined) resolve(first);
        else if (isClosed) reject(new HandshakeError('closed', 'The connection was closed.'));
        else waiter = { resolve, reject };
      }),
    end: () => {
      channel.maxLineChars = maxLineChars;
      channel.onMessage = () => {};
      channel.onClose = () => {};
    },
  };
}

/**
 * Runs the client's side of the handshake. Rejects unless the other side has the same version and proves that it knows
 * the secret. Has no timeout, and leaves it to the caller to close the channel.
 */
export async function authenticateAsClient(channel: Channel, secret: string): Promise<void> {
  const messages = readHandshakeMessages(channel);
  const { rondo, nonce } = await messages.next();
  if (rondo !== PROTOCOL_VERSION)
    throw new HandshakeError(
      'version',
      `Its protocol version is ${String(rondo).slice(0, 20)}, not ${PROTOCOL_VERSION}.`,
    );
  if (typeof nonce !== 'string' || !NONCE_PATTERN.test(nonce)) throw new HandshakeError('proof', 'It is not an owner.');
  const nonces = [nonce, createNonce()] as const;
  channel.send({ nonce: nonces[1], proof: proofOf(secret, 'client', nonces) });
  const { proof } = await messages.next();
  // guard: owner-proves-secret
  if (!isExpectedProof(proof, proofOf(secret, 'owner', nonces)))
    throw new HandshakeError('proof', 'It has another secret.');
  messages.end();
}

/**
 * Runs the owner's side of the handshake. Closes the channel and rejects unless the client proves in time that it knows
 * the secret.
 */
export async function authenticateAsOwner(channel: Channel, secret: string): Promise<void> {
  const messages = readHandshakeMessages(channel);
  const timeout = setTimeout(() => channel.destroy(), HANDSHAKE_TIMEOUT_MS).unref();
  try {
    const nonce = createNonce();
    channel.send({ rondo: PROTOCOL_VERSION, nonce });
    const answer = await messages.next();
    if (typeof answer.nonce !== 'string' || !NONCE_PATTERN.test(answer.nonce))
      throw new HandshakeError('proof', 'No nonce.');
    const nonces = [nonce, answer.nonce] as const;
    // guard: client-proves-secret
    if (!isExpectedProof(answer.proof, proofOf(secret, 'client', nonces)))
      throw new HandshakeError('proof', 'Wrong proof.');
    messages.end();
    channel.send({ proof: proofOf(secret, 'owner', nonces) });
  } catch (error) {
    channel.destroy();
    throw error;
  } finally {
    clearTimeout(timeout);
  }
}
