/** The processes that hold leases, as the database knows them: the next owner waits for those that live. */
import { type Driver, text, textOf, whole, wholeOf } from './driver.js';
import { type ProcessId, stateOf, thisProcess } from './owner/process.js';

/** The processes that held leases under the last owner, by their ids. */
export function peersIn(driver: Driver): ReadonlyMap<string, ProcessId> {
  const columns = `${textOf('id')}, ${wholeOf('pid')}, ${textOf('start')}`;
  const rows = driver.prepare(`SELECT ${columns} FROM peers`).all();
  return new Map(rows.map((row) => [text(row.id), { pid: whole(row.pid), start: text(row.start) }]));
}

/** True if another process that worked under the last owner lives: it has used the store until now, and waits for the next one. */
export function isAwaited(driver: Driver): boolean {
  const self = thisProcess();
  const others = [...peersIn(driver).values()].filter(({ pid }) => pid !== self.pid);
  return others.some((peer) => peer.pid > 0 && stateOf(peer) === 'running');
}
