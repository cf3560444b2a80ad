/** Messages about a process that does not answer: which process it is, its state, and what to do. */
import { Fault } from '../../../base/errors.js';
import { REPORT_AFTER_MS } from '../wire/response-watchdog.js';
import { type ProcessId, type ProcessState, processStateOf } from './process.js';

const REPORT_AFTER_SECONDS = REPORT_AFTER_MS / 1000;

/** Returns the state of a process as a sentence, and what to do about it. */
function adviceFor(pid: number, state: ProcessState): string {
  if (state === 'stopped') {
    return `It is stopped: continue it with "kill -CONT ${pid}", or end it with "kill -9 ${pid}".`;
  }
  if (state === 'gone') return 'It has ended: try again.';
  if (state === 'unknown') return 'It runs in another container, so its state is unknown here.';
  return `It is busy or blocked: wait for it, or end it with "kill ${pid}".`;
}

/** Describes an unresponsive owner of a database. */
export function describeUnresponsiveOwner(database: string, { pid }: ProcessId, state: ProcessState): string {
  const who = pid === process.pid ? `This process (${pid})` : `Process ${pid}`;
  return `${who} owns ${database} and has not answered for ${REPORT_AFTER_SECONDS} seconds. ${adviceFor(pid, state)}`;
}

/** Describes an unresponsive process that works on a session. */
export function describeUnresponsiveHolder({ pid }: ProcessId, state: ProcessState): string {
  return `Process ${pid} works on this session and has not answered for ${REPORT_AFTER_SECONDS} seconds. ${adviceFor(pid, state)}`;
}

const TAKEOVER_NOTE = 'Nothing that was acknowledged is lost; another process then takes over.';

/** Returns the Fault for an owner that is given up. */
export function unresponsiveOwnerFault(database: string, owner: ProcessId, state: ProcessState): Fault {
  const message = `${describeUnresponsiveOwner(database, owner, state)} ${TAKEOVER_NOTE}`;
  return new Fault('STORE_OWNED', message, { path: database, pid: owner.pid, state });
}

/** Returns the Fault for a process that works on a session and is given up. */
export function unresponsiveHolderFault(holder: ProcessId, state: ProcessState): Fault {
  return new Fault('SESSION_BUSY', describeUnresponsiveHolder(holder, state), { pid: holder.pid, state });
}

/** Returns the Fault for a store whose owner is unreachable or unknown. `reason` says why, without a final period. */
export function unreachableOwnerFault(database: string, owner: ProcessId | undefined, reason: string): Fault {
  const state = owner === undefined ? 'unknown' : processStateOf(owner);
  const who = owner === undefined ? 'another process' : `process ${owner.pid}`;
  const advice = owner === undefined ? 'End that process, or wait for it.' : adviceFor(owner.pid, state);
  const message = `${database} is owned by ${who}, which cannot be reached: ${reason}. ${advice}`;
  return new Fault('STORE_OWNED', message, { path: database, pid: owner?.pid ?? null, state });
}
