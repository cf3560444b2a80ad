/**
 * Finds signals with the same secret. A signature does not cover the path of a request, so a captured delivery for one
 * signal is authentic for every other signal with its secret.
 */
import type { HostedLoopDocument } from '../../protocol/hosted-loop.js';

/** A secret that several signals refer to. */
export interface SharedSecret {
  /** `env:NAME`. */
  readonly reference: string;
  /** The signals, as `LOOP/SIGNAL`. */
  readonly signals: readonly string[];
}

/** Returns the first secret that more than one signal of the documents refers to; undefined if there is none. */
export function sharedSecretOf(documents: readonly HostedLoopDocument[]): SharedSecret | undefined {
  const signalsByReference = new Map<string, string[]>();
  for (const { id, signals = {} } of documents) {
    for (const [name, { verify }] of Object.entries(signals)) {
      if (verify === undefined) continue;
      const known = signalsByReference.get(verify.secret);
      if (known === undefined) signalsByReference.set(verify.secret, [`${id}/${name}`]);
      else known.push(`${id}/${name}`);
    }
  }
  for (const [reference, signals] of signalsByReference) if (signals.length > 1) return { reference, signals };
  return undefined;
}
