/** The entry types that only the kernel writes. */
import { LoopError } from '../base/errors.js';

const RESERVED_TYPES = /^(?:session|call|effect|timer|wait|signal|race|group|cancel|step)\./;

/** Returns true if only the kernel may write entries of this type. */
export function isReservedType(type: string): boolean {
  return RESERVED_TYPES.test(type);
}

/** Throws VALUE_INVALID if only the kernel may write entries of this type. `key` is for the message. */
export function assertNotReserved(type: string, key: string): void {
  if (!isReservedType(type)) return;
  const message = `Cannot record ${type} at ${key}: types of this prefix are reserved for the kernel.`;
  throw new LoopError('VALUE_INVALID', message, { key, type });
}
