/**
 * Finds the key of a signal. The reference `env:NAME` comes from a document, so it must not choose any variable: by
 * default only names that end with `_SECRET` are read, and two signals of a loop never have one key.
 */
import { LoopError } from '../../base/errors.js';
import { ownProperty } from '../../base/own-property.js';
import { areSameKey, signingKeyOf } from '../../host/hosted/verify-signal.js';
import type { HostedLoopDocument, HostedSignal, SignalVerification } from '../../protocol/hosted-loop.js';

/** A reference to a secret: the name of an environment variable. */
export type SecretReference = `env:${string}`;

/** Returns the secret of a reference; undefined if there is none. */
export type SecretLookup = (reference: SecretReference) => string | undefined;

/** How the deliveries of one signal are verified. */
export interface SignalKey {
  readonly key: Uint8Array;
  readonly windowMs: number | undefined;
}

const REFERENCE = /^env:[A-Za-z_][A-Za-z0-9_]{0,199}$/;
/** Keys and tokens of other services (`OPENAI_API_KEY`, `GITHUB_TOKEN`) and guessable variables (`HOME`) do not match. */
const SECRET_VARIABLE = /^[A-Z][A-Z0-9_]*_SECRET$/;

/** Reads a secret from the environment. Throws CONFIG_INVALID if the name does not end with `_SECRET`. */
export function environmentSecret(reference: SecretReference): string | undefined {
  const name = reference.slice('env:'.length);
  // guard: secret-variable-named-so
  if (!SECRET_VARIABLE.test(name)) {
    const advice = 'rename it, such as PAID_SECRET, or use the option "secret" of signalHandler';
    throw invalid(`The variable ${name} is not read, because its name does not end with _SECRET: ${advice}.`);
  }
  return process.env[name];
}

/**
 * Returns the key of a signal; undefined if the loop does not declare it, or declares no verification. Throws
 * CONFIG_INVALID if there is no usable secret.
 */
export function signalKeyOf(document: HostedLoopDocument, name: string, lookUp: SecretLookup): SignalKey | undefined {
  const place = `${document.id}/${name}`;
  const verify = verificationOf(ownProperty(document.signals, name));
  // guard: unverified-signal-refused
  if (verify === undefined) return undefined;
  // guard: signal-method-known
  if (verify.method !== 'hmac-sha256') throw invalid(`The signal ${place} declares an unknown method of verification.`);
  const key = keyOf(place, verify, lookUp);
  for (const [other, signal] of Object.entries(document.signals ?? {})) {
    if (other === name || signal.verify === undefined) continue;
    // guard: signal-secret-not-shared
    if (hasKey(signal.verify, key, lookUp)) {
      const effect = 'a captured delivery for one would be authentic for the other';
      throw invalid(`The signals "${name}" and "${other}" of the loop ${document.id} have the same secret: ${effect}.`);
    }
  }
  return { key, windowMs: verify.windowMs };
}

function verificationOf(signal: unknown): SignalVerification | undefined {
  return ownProperty(signal, 'verify') as HostedSignal['verify'];
}

function keyOf(place: string, { secret: reference }: SignalVerification, lookUp: SecretLookup): Uint8Array {
  // guard: secret-reference-checked
  if (!isReference(reference)) throw invalid(`The secret of the signal ${place} must be "env:NAME".`);
  const secret = lookUp(reference);
  if (typeof secret !== 'string' || secret === '')
    throw invalid(`The secret ${reference} of the signal ${place} is not set: no delivery is accepted.`);
  try {
    return signingKeyOf(secret);
  } catch (thrown) {
    if (!(thrown instanceof LoopError)) throw thrown;
    throw invalid(`${reference} of the signal ${place}: ${thrown.message}`);
  }
}

/** True if a signal has this key. A signal without a usable secret has none. */
function hasKey(verify: SignalVerification, key: Uint8Array, lookUp: SecretLookup): boolean {
  try {
    return areSameKey(keyOf('', verify, lookUp), key);
  } catch {
    return false;
  }
}

function isReference(text: unknown): text is SecretReference {
  return typeof text === 'string' && REFERENCE.test(text);
}

function invalid(message: string): LoopError {
  return new LoopError('CONFIG_INVALID', message);
}
